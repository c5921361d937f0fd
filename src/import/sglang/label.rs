//! Reads the name that a command gives to its run.

use crate::import::arguments::Arguments;

/// Returns the value of an option that names the run, which becomes the name of the sweep; `None` if the
/// option is not given.
pub(super) fn label(arguments: &Arguments, option: &str) -> Option<String> {
    let said = arguments.text(option)?;
    arguments.needless(&said.origin, "it is the name of the sweep");
    Some(said.value)
}
