//! A stage of a sweep.

use super::super::environment::Looks;
use super::super::stages::Stages;
use super::super::workspace::Workspace;
use super::announce::announce;
use super::args::RunArgs;
use super::decisions::{decide, has_all};
use crate::cli::failure::Failure;
use crate::sweep::resume::{Decision, Wishes};

/// The work of a stage.
pub(super) struct Stage {
    /// The decision for each run; `None` if the run is not part of this stage.
    pub(super) decisions: Vec<Option<Decision>>,
    /// The self-descriptions of the servers.
    pub(super) looks: Looks,
    /// A line for each server that has changed.
    changes: Vec<String>,
}

impl Stage {
    /// Returns the next stage, based on the current results, after querying the servers.
    pub(super) fn next(
        args: &RunArgs,
        workspace: &Workspace,
        (wishes, stages): (Wishes, &Stages),
    ) -> Result<Stage, Failure> {
        let decisions = decide(workspace, &args.selection, wishes)?;
        has_all(args, workspace, &decisions)?;
        let looks = Looks::take(workspace, &decisions, args.plan_folder(), |_| true);
        let mut stage = Stage { decisions, looks, changes: Vec::new() };
        stage.settle(workspace, stages)?;
        Ok(stage)
    }

    /// Makes the decisions again, based on the current contents of the folder; the servers' reports are kept.
    pub(super) fn decide_again(
        &mut self,
        args: &RunArgs,
        workspace: &Workspace,
        (wishes, stages): (Wishes, &Stages),
    ) -> Result<(), Failure> {
        self.decisions = decide(workspace, &args.selection, wishes)?;
        self.settle(workspace, stages)
    }

    /// Adjusts the decisions: runs whose servers have changed are measured again, repeats that may be needed
    /// after all are decided again, and runs that have to wait are removed.
    fn settle(&mut self, workspace: &Workspace, stages: &Stages) -> Result<(), Failure> {
        self.changes = self.looks.apply(workspace, &mut self.decisions)?;
        workspace.reopen(&mut self.decisions);
        stages.hold(workspace, &mut self.decisions);
        Ok(())
    }

    /// Announces the work of the stage.
    pub(super) fn announce(&self, args: &RunArgs, workspace: &Workspace) {
        announce(args, workspace, &self.decisions, &self.looks);
        args.tell(&self.changes);
    }
}
