//! A run of conversations by turn: the requests of each turn are measured as if they were a separate
//! run.

use std::collections::BTreeSet;

use crate::rows::{Facts, Measured, Replay};

use super::measure::{RunMetrics, measure_taken};
use super::window;

/// Returns the turns of a run's window, from 0, in order; empty if there are no conversations.
pub fn turns(rows: &[Measured], facts: &Facts) -> Vec<u32> {
    let turns: BTreeSet<u32> = window::members(rows, facts).filter_map(|row| row.turn()).collect();
    turns.into_iter().collect()
}

/// Computes the metrics of one turn: all metrics of a run except those that need all requests
/// together.
pub fn measure_turn<R: Replay + ?Sized>(run: &R, turn: u32, facts: &Facts) -> Result<RunMetrics, R::Error> {
    measure_taken(run, |row| row.turn() == Some(turn), facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::gaps::{Events, Gaps};
    use crate::analysis::measure::measure;
    use crate::analysis::synthetic::Run;
    use crate::rows::Records;

    #[test]
    fn turns_add_up_to_the_run_and_are_told_apart() {
        let (mut records, facts) = Run::default().make();
        let rows: Vec<Measured> = records.iter().map(|record| Measured::from(&record.row)).collect();
        assert!(turns(&rows, &facts).is_empty());
        for (at, record) in records.iter_mut().enumerate() {
            record.row.turn = Some(at as u32 % 3);
            record.row.sent_ns =
                record.row.sent_ns.map(|at_ns| at_ns.saturating_sub([0, 5_000_000, 10_000_000][at % 3]));
        }
        let run: Records = records.into_iter().collect();
        let events = Events::of(&run, &facts, &[]).unwrap();
        let gaps = Gaps::of(&run, &facts, &events).unwrap();
        let whole = measure(run.rows(), (&events, &gaps), &facts);
        let all = turns(run.rows(), &facts);
        assert_eq!(all, [0, 1, 2]);
        let parts: Vec<RunMetrics> = all.iter().map(|turn| measure_turn(&run, *turn, &facts).unwrap()).collect();
        let sum = |of: fn(&RunMetrics) -> u64| parts.iter().map(of).sum::<u64>();
        assert_eq!(sum(|part| part.counts.requests), whole.counts.requests);
        assert_eq!(sum(|part| part.itl.n), whole.itl.n);
        let ttft: Vec<f64> = parts.iter().map(|part| part.ttft.mean.unwrap()).collect();
        assert!(ttft[0] + 4.0 < ttft[1] && ttft[1] + 4.0 < ttft[2], "{ttft:?}");
    }
}
