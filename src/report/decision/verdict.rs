//! The decision, which is the first lines of a record.

use super::decided::Decided;
use super::evidence::Evidence;
use super::markdown::{code, inert, quote, sentence};
use super::standing::{Outcome, Standing};
use crate::report::capacity::objective;

pub(super) fn text(evidence: &Evidence, standing: &Standing, decided: &Decided) -> String {
    let load = decided.configuration.load_words().map(|load| format!(", {load}")).unwrap_or_default();
    let mut out = format!("**Accepted: {}{load}**\n\n", code(&decided.name));
    let limits = evidence.objective().map(|slo| inert(&objective(slo))).unwrap_or_default();
    let words = inert(&standing.words);
    let first = match standing.outcome {
        Outcome::Holds => format!("It meets the objective ({limits}): {words}"),
        Outcome::Misses => format!("**It misses the objective** ({limits}): {words}"),
        Outcome::Undecided => format!("**Undecided: it is not shown to meet the objective** ({limits}): {words}"),
        Outcome::NotJudged => "**Nothing was judged:** the plan has no objective".to_owned(),
    };
    out.push_str(&format!("{}\n", sentence(&first)));
    if decided.outcome != standing.outcome {
        out.push_str(&format!("When it was accepted, {}.\n", decided.outcome.then()));
    }
    let by = decided.by.as_ref().map(|by| format!(" by {}", inert(by))).unwrap_or_default();
    out.push_str(&format!("\nDecided on {}{by}, because:\n\n{}", inert(&decided.on), quote(&decided.because)));
    out
}
