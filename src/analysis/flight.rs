//! Requests in flight over the window, which are the queue as seen by the client.

use crate::rows::{Facts, Measured, Outcome};

use super::window;

/// When requests began and ended. A request begins when it is due, so waiting for an in-flight cap is
/// included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flight {
    /// Beginning of the window, in seconds.
    pub from: f64,
    /// End of the window, in seconds.
    pub to: f64,
    /// Beginning and end of each request, including those from before the window, in seconds.
    pub spans: Vec<(f64, f64)>,
}

impl Flight {
    /// Collects all requests of a run, of every phase.
    pub fn of(rows: &[Measured], facts: &Facts) -> Flight {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let span = |row: &Measured| {
            (seconds(row.scheduled_ns), seconds(window::request(row, facts).end_ns().max(row.scheduled_ns)))
        };
        Flight {
            from: seconds(facts.windows.measure_start_ns),
            to: seconds(facts.windows.measure_end_ns),
            spans: rows.iter().map(span).collect(),
        }
    }

    /// Returns the requests that would be in flight if no client had timed out. Timeouts hide the
    /// growing queue of a server that does not keep up. `None` if only few requests time out (5 % of
    /// those due in the window, or less), because the reason `errors` covers these.
    pub(crate) fn unserved(&self, rows: &[Measured]) -> Option<Flight> {
        const FEW: f64 = 0.05;
        let gave_up = |row: &Measured| matches!(row.outcome, Outcome::Timeout | Outcome::Stalled);
        let inside = |(begin, _): &(f64, f64)| (self.from..self.to).contains(begin);
        let lost = self.spans.iter().zip(rows).filter(|(span, row)| inside(span) && gave_up(row)).count();
        if lost as f64 <= FEW * self.arrived() as f64 {
            return None;
        }
        let ends = |(span, row): (&(f64, f64), &Measured)| if gave_up(row) { (span.0, f64::INFINITY) } else { *span };
        Some(Flight { spans: self.spans.iter().zip(rows).map(ends).collect(), ..*self })
    }

    /// Returns the length of the window in seconds.
    pub fn seconds(&self) -> f64 {
        self.to - self.from
    }

    /// Returns the number of requests that were due inside the window.
    pub fn arrived(&self) -> u64 {
        self.spans.iter().filter(|(begin, _)| (self.from..self.to).contains(begin)).count() as u64
    }

    /// Returns the time averages of the requests in flight over `parts` equal parts of the window; empty
    /// if the window has no length.
    pub fn averages(&self, parts: usize) -> Vec<f64> {
        let width = self.seconds() / parts as f64;
        if width <= 0.0 {
            return Vec::new();
        }
        // Change in the number of requests in flight from the next part on, and its time-weighted effect
        // within the part.
        let (mut next, mut area) = (vec![0.0; parts + 1], vec![0.0; parts]);
        let mut step = |at: f64, sign: f64| {
            let place = ((at - self.from) / width).max(0.0);
            let part = place as usize;
            if part < parts {
                area[part] += sign * (1.0 - (place - part as f64));
                next[part + 1] += sign;
            }
        };
        for (begin, end) in &self.spans {
            step(*begin, 1.0);
            step(*end, -1.0);
        }
        let mut held = 0.0;
        area.iter()
            .zip(&next)
            .map(|(area, change)| {
                held += change;
                held + area
            })
            .collect()
    }

    /// Returns the requests in flight at the borders of `parts` equal parts of the window, including its
    /// beginning and end; empty if the window has no length.
    pub fn levels(&self, parts: usize) -> Vec<f64> {
        let width = self.seconds() / parts as f64;
        if width <= 0.0 {
            return Vec::new();
        }
        let mut change = vec![0.0; parts + 2];
        // The first border at or after an instant.
        let border = |at: f64| (((at - self.from) / width).ceil().max(0.0) as usize).min(parts + 1);
        for (begin, end) in &self.spans {
            change[border(*begin)] += 1.0;
            change[border(*end)] -= 1.0;
        }
        let mut held = 0.0;
        change[..=parts]
            .iter()
            .map(|change| {
                held += change;
                held
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_averaged_and_counted() {
        let flight = Flight { from: 0.0, to: 4.0, spans: vec![(-1.0, 0.5), (0.0, 4.0), (1.5, 3.5), (3.0, 9.0)] };
        assert_eq!(flight.averages(4), [1.5, 1.5, 2.0, 2.5]);
        assert_eq!(flight.levels(4), [2.0, 1.0, 2.0, 3.0, 1.0]);
        assert_eq!(flight.arrived(), 3);
        let nothing = Flight::default();
        assert!(nothing.averages(4).is_empty() && nothing.levels(4).is_empty());
    }
}
