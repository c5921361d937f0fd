//! The network between client and server: round trips that were measured during a run, on separate
//! connections.

use crate::telemetry::canonical::Unit;

use super::figure::ServerFigure;

/// Minimum number of round trips in the window, because a single one may be an exception.
const LEAST: usize = 3;

/// The round trips of a run, in seconds.
pub(super) struct RoundTrips {
    before: Option<f64>,
    window: Option<Result<f64, String>>,
}

impl RoundTrips {
    /// Creates the round trips from instants and durations in seconds. The round trip under load is the
    /// median of the window, because a handshake that was lost and resent takes longer than one round trip.
    pub(super) fn of(all: impl Iterator<Item = (f64, f64)>, [start, end]: [f64; 2]) -> RoundTrips {
        let all: Vec<(f64, f64)> = all.collect();
        let before = all.iter().filter(|(at, _)| *at <= 0.0).map(|(_, took)| *took).reduce(f64::min);
        let mut inside: Vec<f64> =
            all.iter().filter(|(at, _)| *at >= start && *at <= end).map(|(_, took)| *took).collect();
        inside.sort_by(f64::total_cmp);
        let middle = match inside.len() {
            count if count < LEAST => {
                Err(format!("{count} round trips were measured in the window, and {LEAST} are needed"))
            }
            count if count % 2 == 1 => Ok(inside[count / 2]),
            count => Ok((inside[count / 2 - 1] + inside[count / 2]) / 2.0),
        };
        RoundTrips { before, window: (!all.is_empty()).then_some(middle) }
    }

    /// Returns the duration of a round trip under load, in milliseconds; `None` if no round trip was
    /// measured, as in runs of earlier versions.
    pub(super) fn under_load_ms(&self) -> Option<Result<f64, String>> {
        Some(self.window.clone()?.map(|seconds| seconds * 1e3))
    }

    /// Returns the round trips before the load and under load as figures.
    pub(super) fn figures(&self) -> Vec<ServerFigure> {
        let figure = |name: &str, doc: &str, value| ServerFigure::new(name, Unit::Seconds, doc, value);
        let Some(window) = self.window.clone() else { return Vec::new() };
        let before = self.before.ok_or_else(|| "none was measured before the load".to_owned());
        let docs = [
            "Round trip to the server just before the load: the shortest TCP handshake.",
            "Round trip to the server under load: the median of the TCP handshakes in the window.",
        ];
        vec![figure("round_trip_seconds_before", docs[0], before), figure("round_trip_seconds_median", docs[1], window)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_of_the_window_counts() {
        let trips = |all: &[(f64, f64)]| RoundTrips::of(all.iter().copied(), [1.0, 4.0]);
        let of = trips(&[(0.0, 0.010), (0.5, 9.0), (1.0, 0.011), (2.0, 0.5), (3.0, 0.013), (4.0, 0.015), (5.0, 9.0)]);
        assert!((of.under_load_ms().unwrap().unwrap() - 14.0).abs() < 1e-9, "of 11, 500, 13 and 15 ms");
        let values: Vec<f64> = of.figures().into_iter().map(|figure| figure.value.unwrap()).collect();
        assert!((values[0] - 0.010).abs() < 1e-9 && (values[1] - 0.014).abs() < 1e-9, "{values:?}");
        let few = trips(&[(0.0, 0.010), (1.0, 0.011), (2.0, 0.012)]).under_load_ms().unwrap().unwrap_err();
        assert!(few.starts_with("2 round trips"), "{few}");
        assert_eq!(trips(&[]).under_load_ms(), None);
        assert!(trips(&[]).figures().is_empty());
        assert!(trips(&[(2.0, 0.010)]).figures()[0].value.is_err());
    }
}
