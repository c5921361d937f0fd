//! A row of bars that shows a series at a glance.

use crate::analysis::Pulse;

use super::format::digits;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar for each value, scaled from 0 to the largest value.
fn bars(values: &[f64]) -> String {
    let known: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    with_gaps(&known)
}

/// Like [`bars`], with a blank for unknown values.
pub(super) fn with_gaps(values: &[Option<f64>]) -> String {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let eighth = if most > 0.0 { (value / most * BARS.len() as f64).ceil() as usize } else { 0 };
        BARS[eighth.clamp(1, BARS.len()) - 1]
    };
    values.iter().map(|value| value.map_or(' ', bar)).collect()
}

/// The load over a run: requests in flight, requests sent, and the position of the window.
pub(super) fn load(pulse: &Pulse) -> String {
    let most = |values: &[f64]| digits(values.iter().copied().fold(0.0, f64::max));
    let length = pulse.part_s * pulse.in_flight.len() as f64;
    let window: String = (0..pulse.window[1]).map(|at| if at < pulse.window[0] { ' ' } else { '─' }).collect();
    format!(
        "load over {} s\n  in flight  {}  at most {}\n  sent/s     {}  at most {}\n  window     {window}\n",
        digits(length),
        bars(&pulse.in_flight),
        most(&pulse.in_flight),
        bars(&pulse.sent_per_s),
        most(&pulse.sent_per_s),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_a_whole_bar_and_nothing_the_lowest() {
        assert_eq!(bars(&[0.0, 0.1, 1.0, 4.0, 7.9, 8.0]), "▁▁▁▄██");
        assert_eq!(bars(&[0.0, 0.0]), "▁▁");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_run_at_a_glance() {
        let pulse = Pulse {
            part_s: 0.5,
            window: [2, 5],
            in_flight: vec![1.0, 4.0, 8.0, 8.0, 8.0, 2.0],
            sent_per_s: vec![10.0, 10.0, 20.0, 20.0, 20.0, 0.0],
            tokens_per_s: None,
            ttft_ms: Vec::new(),
            e2e_ms: Vec::new(),
            failed: Vec::new(),
        };
        insta::assert_snapshot!(load(&pulse), @r#"
        load over 3.00 s
          in flight  ▁▄███▂  at most 8.00
          sent/s     ▄▄███▁  at most 20.0
          window       ───
        "#);
    }
}
