//! `--class NAME`: restricts figures to one class of a mix, measured in runs of the whole mix.

use std::collections::BTreeSet;

use clap::Args;

use crate::cli::failure::Failure;

/// The class that `--class` selects; without this flag, figures cover all requests.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OneClass {
    /// Use only the requests of this mix class (the name of a scenario in a mix)
    #[arg(long = "class", value_name = "NAME")]
    pub name: Option<String>,
}

impl OneClass {
    /// Rejects a class that is not among `classes`, the classes of all runs.
    pub(super) fn check<'a>(&self, classes: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let Some(name) = &self.name else { return Ok(()) };
        let known: BTreeSet<&str> = classes.collect();
        if known.contains(name.as_str()) {
            return Ok(());
        }
        let quoted: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
        Err(Failure::Usage(match known.is_empty() {
            true => format!(
                "--class {name}: there are no classes, because no run uses a mix; write a scenario like mixed: {{ mix: \
                 [{{ scenario: chat, share: 0.8 }}, {{ scenario: code, share: 0.2 }}] }}"
            ),
            false => format!("--class {name}: unknown class; the classes are {}", quoted.join(", ")),
        }))
    }
}
