//! The name that a command gives its run.

use crate::import::arguments::Arguments;

/// What the sweep is called.
pub(super) fn label(arguments: &Arguments, option: &str) -> Option<String> {
    let said = arguments.text(option)?;
    arguments.needless(&said.origin, "it is the name of the sweep");
    Some(said.value)
}
