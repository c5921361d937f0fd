//! `--set` and `--allow-outside`: changes to the plan for one call. Shared by every command that takes a
//! plan.

use std::path::Path;

use clap::Args;

use crate::cli::failure::Failure;
use crate::plan::{self, Files, Format, Loaded, Options, PlanErrors};

/// The changes to a plan for one call.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Changes {
    /// Set a value of the plan for this call, like vars.measure=60s or sweeps.a.matrix.batch_size=[1,8]; may be given
    /// several times
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Let the plan use files outside its folder: fragments, data, and secrets
    #[arg(long)]
    allow_outside: bool,
    /// The number of processes that send the load together; `None` if the command does not set it.
    #[arg(skip)]
    workers: Option<u32>,
}

impl Changes {
    /// Reads and checks a plan with these changes.
    pub(super) fn load(&self, plan: &Path) -> Result<Loaded, PlanErrors> {
        plan::load_with(plan, &self.options())
    }

    /// Parses and checks the text of a plan with these changes.
    pub(super) fn parse(
        &self,
        plan: &Path,
        text: &str,
        format: Format,
        files: &dyn Files,
    ) -> Result<Loaded, PlanErrors> {
        plan::parse_with(plan, text, format, &self.options(), files)
    }

    fn options(&self) -> Options {
        Options { set: self.set.clone(), allow_outside: self.allow_outside, workers: self.workers }
    }

    /// Sets the number of processes that send the load of every run.
    pub(crate) fn spread(&mut self, workers: Option<u32>) {
        self.workers = workers;
    }

    /// Whether the plan may use files outside its folder.
    pub(crate) fn allow_outside(&self) -> bool {
        self.allow_outside
    }

    /// Whether the changes set a value.
    pub(crate) fn set_something(&self) -> bool {
        !self.set.is_empty()
    }

    /// Returns the paths of the values that are set, without the values themselves, which may be
    /// secret.
    pub(super) fn set_paths(&self) -> Vec<String> {
        let path = |set: &String| set.split_once('=').map_or(set.as_str(), |(path, _)| path).trim().to_owned();
        self.set.iter().map(path).collect()
    }

    /// Returns the changes without the values that are set.
    pub(crate) fn without_set(&self) -> Changes {
        Changes { set: Vec::new(), ..self.clone() }
    }

    /// Returns the changes with further values, each like `phases.measure=60s`.
    pub(super) fn with_set(&self, more: &[String]) -> Changes {
        let set = self.set.iter().chain(more).cloned().collect();
        Changes { set, ..self.clone() }
    }

    /// Rejects the changes if there is no plan to apply them to.
    pub(super) fn need(&self, plan: Option<&Path>) -> Result<(), Failure> {
        match plan {
            None if !self.set.is_empty() => Err(Failure::Usage("--set needs a plan: give its path".to_owned())),
            None if self.allow_outside => Err(Failure::Usage("--allow-outside needs a plan: give its path".to_owned())),
            _ => Ok(()),
        }
    }

    /// Returns the changes as flags of a command line, each with a leading blank. `quoted` quotes a value
    /// for the shell.
    pub(super) fn typed(&self, quoted: impl Fn(&str) -> String) -> String {
        let set = self.set.iter().map(|set| format!(" --set {}", quoted(set)));
        set.chain(self.allow_outside.then(|| " --allow-outside".to_owned())).collect()
    }
}
