//! Renders the earlier decisions.

use super::decided::Decided;
use super::markdown::{code, inert, quote};

pub(super) fn text(earlier: &[Decided]) -> String {
    let mut out = "## Earlier decisions\n\n".to_owned();
    if earlier.is_empty() {
        out.push_str("None.\n");
    }
    for Decided { configuration, name, outcome, because, by, on } in earlier.iter().rev() {
        let by = by.as_ref().map(|by| format!(", by {}", inert(by))).unwrap_or_default();
        let load = configuration.load_words().map(|load| format!(", {load}")).unwrap_or_default();
        let head = format!("{}{by}: {}{load} was accepted; {}, because:", inert(on), code(name), outcome.then());
        out.push_str(&format!("{head}\n\n{}\n", quote(because)));
    }
    out
}
