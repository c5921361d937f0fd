//! Describes in a few lines a comparison in which nothing could be tested: the reasons, and what would make a
//! test possible. Tables would only repeat the same reasons many times.

use indexmap::{IndexMap, IndexSet};

use crate::analysis::comparison::{ADVISED, CellAnswer, Family, LeftOut, Outcome, Test, allowed};
use crate::units::text::counted;

use super::estimate::titled;
use super::format::{fill, plain};

/// Returns whether the tables of a family would contain no results: the family has several cells, but no cell
/// has a test, a result that does not need a test, or more failed requests than its baseline.
pub(super) fn is_untested(family: &Family) -> bool {
    let says_nothing =
        |test: &Test| matches!(test.outcome, Outcome::Refused | Outcome::Unknown) && test.margin.is_none();
    let is_bare = |cell: &CellAnswer| cell.tests.iter().all(says_nothing) && cell.guardrail.outcome != Outcome::Worse;
    family.tests == 0 && family.cells.len() > 1 && family.cells.iter().all(is_bare)
}

/// Renders why no test was possible, and what would make tests possible.
pub(super) fn text(family: &Family, see: f64) -> String {
    // Metrics that cannot exist are no tests of the family.
    let tests = || family.cells.iter().flat_map(|cell| &cell.tests).filter(|test| test.in_family);
    let mut out = fill("\n", 2, &format!("Why none of the {} tests could be made:", tests().count()));
    let refused: Vec<&Test> = tests().filter(|test| test.outcome == Outcome::Refused).collect();
    if let (Some(least), Some(most)) =
        (refused.iter().map(|test| test.rounds).min(), refused.iter().map(|test| test.rounds).max())
    {
        let have = if least == most { counted(most, "repeat") } else { format!("{least} to {most} repeats") };
        out.push_str(&line(refused.len(), &format!("{have} on both sides: too few for a test")));
    }
    let mut reasons: IndexMap<String, Vec<&Test>> = IndexMap::new();
    for test in tests().filter(|test| test.outcome == Outcome::Unknown) {
        reasons.entry(reason(&test.words)).or_default().push(test);
    }
    for (reason, of) in &reasons {
        let metrics: IndexSet<String> = of.iter().map(|test| titled(&test.metric, "")).collect();
        let metrics = metrics.iter().map(|metric| metric.trim()).collect::<Vec<_>>().join(", ");
        out.push_str(&line(of.len(), &format!("{metrics}: {reason}")));
    }
    let (invalid, without) = left_out(family);
    if invalid > 0 {
        let runs = counted(invalid, "run");
        out.push_str(&fill("", 2, &format!("{runs} excluded as invalid: `--include-invalid` includes such runs")));
    }
    if without > 0 {
        out.push_str(&fill("", 2, &format!("{} without a result", counted(without, "run"))));
    }
    let guards = || family.cells.iter().map(|cell| &cell.guardrail);
    let [arms, baselines] =
        [guards().map(|one| one.arm.failed).sum::<u64>(), guards().map(|one| one.baseline.failed).sum()];
    if arms + baselines > 0 {
        let errors = format!("failed requests: {arms}, {baselines} of the baseline; no cell is shown to fail more");
        out.push_str(&fill("", 2, &errors));
    }
    out.push_str(&fill("\n", 2, &to_do(family, &refused, see)));
    out.push_str(&fill("", 2, "For every value: `--format markdown` or `--format json`"));
    out
}

fn line(count: usize, why: &str) -> String {
    fill("  ", 6, &plain(&format!("{count}: {why}")))
}

/// Returns the reason why a metric has no value, in a form that is the same for many metrics: `n/a: n=78 <
/// 368 requests`, for example, becomes a reason that begins with `fewer than 368 requests`.
fn reason(words: &str) -> String {
    let bare = words.strip_prefix("n/a: ").unwrap_or(words);
    match bare.strip_prefix("n=").and_then(|rest| rest.split_once(" < ")) {
        Some((_, fewest)) => {
            // A reason of some rounds ends like `36 requests, in 1 of 4 rounds`.
            let (fewest, rounds) = fewest.split_once(", ").unwrap_or((fewest, ""));
            let rounds = if rounds.is_empty() { String::new() } else { format!(", {rounds}") };
            let fewest = fewest.strip_suffix(" requests").unwrap_or(fewest);
            format!("fewer than {fewest} requests in a run{rounds}: a longer `phases: {{ measure }}` yields more")
        }
        None => bare.to_owned(),
    }
}

/// Counts the runs that were excluded as invalid, and those without a result. The baseline's runs, with which
/// several arms are compared, are counted once.
fn left_out(family: &Family) -> (usize, usize) {
    let of_cell = |cell: &CellAnswer| {
        let place = (cell.sweep.clone(), cell.name.clone());
        let one = move |run: &LeftOut| (place.clone(), run.arm.clone(), run.repeat, run.reason.starts_with("invalid"));
        cell.left_out.iter().map(one).collect::<Vec<_>>()
    };
    let runs: IndexSet<_> = family.cells.iter().flat_map(of_cell).collect();
    let invalid = runs.iter().filter(|(.., is_invalid)| *is_invalid).count();
    (invalid, runs.len() - invalid)
}

/// Describes what would make tests possible, and how many repeats are needed to detect a difference of the
/// size `see`. If runs are invalid, further repeats would be invalid too, so the first step is to remove the
/// causes.
fn to_do(family: &Family, refused: &[&Test], see: f64) -> String {
    let needed = || refused.iter().filter_map(|test| test.repeats_needed);
    let (Some(least), Some(most)) = (needed().min(), needed().max()) else {
        let mut excluded = family.cells.iter().flat_map(|cell| &cell.left_out);
        let again = match excluded.any(|run| run.reason.starts_with("given up")) {
            true => "; given-up runs are measured again only with `run --redo given-up`",
            false => "",
        };
        return format!("To do: remove the reasons above, and run the plan again{again}");
    };
    let plans = if family.by == "time" { "both plans" } else { "the plan" };
    let seen = match (least, most) {
        _ if most <= ADVISED => String::new(),
        (least, most) if least == most => format!(" (to detect {}, {most})", allowed(see)),
        (least, most) => format!(" (to detect {}, {least} to {most}, depending on metric and load)", allowed(see)),
    };
    // Only the measured repeats are known here: the plan may declare more, if `--only` chose some of them.
    let more = format!("`repeats: {ADVISED}` in {plans}, and all of them measured; existing results are kept{seen}");
    let mut excluded = family.cells.iter().flat_map(|cell| &cell.left_out);
    match excluded.any(|run| run.reason.starts_with("invalid")) {
        true => format!(
            "To do: remove the causes of the invalid runs, and measure them again with `run --redo invalid`; if there \
             are still too few repeats, {more}"
        ),
        false => format!("To do: {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_reason_of_some_rounds_is_a_sentence() {
        let more = "a longer `phases: { measure }` yields more";
        assert_eq!(reason("n/a: n=3 < 6 requests"), format!("fewer than 6 requests in a run: {more}"));
        let some = format!("fewer than 6 requests in a run, in 1 of 2 rounds: {more}");
        assert_eq!(reason("n/a: n=3 < 6 requests, in 1 of 2 rounds"), some);
    }
}
