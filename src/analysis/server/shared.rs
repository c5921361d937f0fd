//! Checks whether a process other than the server's own used its GPUs.

use crate::rows::{Facts, GpuReadings, OtherProcess};

use super::finding::{Finding, suspect};

/// Maximum number of processes that are named; the rest are counted.
const NAMED: usize = 3;

/// Returns the findings from the readings of this machine's GPUs; `None` if they were not read.
pub(super) fn judge(facts: &Facts) -> Finding {
    let Some(gpus) = facts.telemetry.as_ref().and_then(|telemetry| telemetry.gpus.as_ref()) else { return Ok(None) };
    match gpus {
        GpuReadings { unknown: Some(why), .. } => Err(why.clone()),
        GpuReadings { others, .. } if others.is_empty() => Ok(None),
        GpuReadings { others, readings, .. } => Ok(suspect(text(others, *readings))),
    }
}

fn text(others: &[OtherProcess], readings: u64) -> String {
    let mut most: Vec<&OtherProcess> = others.iter().collect();
    most.sort_by_key(|other| (std::cmp::Reverse(other.readings), other.pid));
    let named = most.iter().take(NAMED).map(|OtherProcess { pid, name, readings: found }| {
        let name = if name.is_empty() { "a process" } else { name };
        format!("{name} (pid {pid}, at {found} of {readings} readings)")
    });
    let more = most.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "processes other than the server were on its GPUs: {}{more}; end them, give them another GPU, or name \
         the server's own under `telemetry: {{ gpus: {{ devices: … }} }}`",
        named.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::state::State;
    use crate::rows::Telemetry;

    fn facts(gpus: Option<GpuReadings>) -> Facts {
        Facts { telemetry: Some(Telemetry { gpus, ..Telemetry::default() }), ..Facts::default() }
    }

    fn other(pid: u32, name: &str, readings: u64) -> OtherProcess {
        OtherProcess { pid, name: name.to_owned(), readings }
    }

    #[test]
    fn others_are_named_with_how_often_they_were_there() {
        let others = vec![other(7, "", 1), other(9, "train", 8), other(3, "a", 1), other(8, "b", 1), other(10, "c", 1)];
        let found = judge(&facts(Some(GpuReadings { readings: 8, others, ..GpuReadings::default() })));
        let (state, text) = found.unwrap().unwrap();
        assert_eq!(state, State::Suspect);
        let told = "processes other than the server were on its GPUs: train (pid 9, at 8 of 8 readings), a (pid \
                    3, at 1 of 8 readings), a process (pid 7, at 1 of 8 readings) and 2 more; ";
        assert!(text.starts_with(told), "{text}");
    }

    #[test]
    fn nothing_is_claimed_that_was_not_seen() {
        assert_eq!(judge(&facts(None)), Ok(None));
        assert_eq!(judge(&facts(Some(GpuReadings { readings: 8, ..GpuReadings::default() }))), Ok(None));
        let unknown = GpuReadings { unknown: Some("a container".to_owned()), ..GpuReadings::default() };
        assert_eq!(judge(&facts(Some(unknown))), Err("a container".to_owned()));
    }
}
