//! What a stage of a sweep is to do.

use super::super::environment::Looks;
use super::super::stages::Stages;
use super::super::workspace::Workspace;
use super::announce::announce;
use super::args::RunArgs;
use super::decisions::decide;
use crate::cli::failure::Failure;
use crate::sweep::resume::{Decision, Wishes};

/// What a stage is to do.
pub(super) struct Stage {
    /// For each run what is to be done with it; none where that is nothing of this stage.
    pub(super) decisions: Vec<Option<Decision>>,
    /// What servers said.
    pub(super) looks: Looks,
    /// A line for each server that is another one now.
    changes: Vec<String>,
}

impl Stage {
    /// The next one, by what is there; servers are asked what they are.
    pub(super) fn next(
        args: &RunArgs,
        workspace: &Workspace,
        (wishes, stages): (Wishes, &Stages),
    ) -> Result<Stage, Failure> {
        let decisions = decide(workspace, &args.selection, wishes)?;
        let looks = Looks::take(workspace, &decisions, args.plan_folder(), |_| true);
        let mut stage = Stage { decisions, looks, changes: Vec::new() };
        stage.settle(workspace, stages)?;
        Ok(stage)
    }

    /// The same anew after another look at the folder; what servers said stays.
    pub(super) fn decide_again(
        &mut self,
        args: &RunArgs,
        workspace: &Workspace,
        (wishes, stages): (Wishes, &Stages),
    ) -> Result<(), Failure> {
        self.decisions = decide(workspace, &args.selection, wishes)?;
        self.settle(workspace, stages)
    }

    /// What servers said, what is measured again, and what has to wait change what is to be done.
    fn settle(&mut self, workspace: &Workspace, stages: &Stages) -> Result<(), Failure> {
        self.changes = self.looks.apply(workspace, &mut self.decisions)?;
        workspace.reopen(&mut self.decisions);
        stages.hold(workspace, &mut self.decisions);
        Ok(())
    }

    /// Says what it is going to do.
    pub(super) fn announce(&self, args: &RunArgs, workspace: &Workspace) {
        announce(args, workspace, &self.decisions, &self.looks);
        args.tell(&self.changes);
    }
}
