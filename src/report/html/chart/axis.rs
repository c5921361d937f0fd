//! Axes: the positions of values and of ticks. The scale is applied before drawing, so every axis is linear
//! in positions.

use crate::report::format::digits;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// A linear scale.
    Plain,
    /// A logarithmic scale.
    Log,
    /// For shares below 1: the logarithm of the distance to 1, so that p99 and p99.9 are as far apart as
    /// p90 and p99.
    Tail,
}

impl Scale {
    /// Returns the position of a value on this scale.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Scale::Plain => value,
            Scale::Log => value.ln(),
            Scale::Tail => -(1.0 - value).log10(),
        }
    }
}

/// An axis of a chart.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The title of the axis, with the unit.
    pub(super) title: String,
    /// The scale of the axis.
    pub(super) scale: Scale,
    /// The two ends of the axis, as positions.
    pub(super) ends: [f64; 2],
    /// The positions of the ticks, with their labels.
    pub(super) ticks: Vec<(f64, String)>,
}

/// Minimum ratio of the heaviest to the lightest load at which the axis becomes logarithmic.
const WIDE: f64 = 16.0;

/// Maximum number of ticks on an axis of loads.
const MOST_LOADS: usize = 9;

impl Axis {
    /// Creates a linear axis from 0 to slightly above `most`.
    pub(crate) fn from_zero(title: impl Into<String>, most: f64) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let step = step(most, 5.0);
        let top = most * 1.06;
        let ticks = (0..).map(|n| f64::from(n) * step).take_while(|value| *value <= top);
        let ticks = ticks.map(|value| (value, short(value, step))).collect();
        Axis { title: title.into(), scale: Scale::Plain, ends: [0.0, top], ticks }
    }

    /// Creates an axis of measured loads, with a tick at each load if there is enough space. The axis starts
    /// at 0, or is logarithmic if the loads are far apart.
    pub(crate) fn of_loads(title: &str, loads: &[f64]) -> Axis {
        let mut loads: Vec<f64> = loads.iter().copied().filter(|load| load.is_finite() && *load > 0.0).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let (least, most) = (loads.first().copied().unwrap_or(1.0), loads.last().copied().unwrap_or(1.0));
        let every = loads.len().div_ceil(MOST_LOADS).max(1);
        let shown = loads.iter().rev().step_by(every).copied();
        if most / least >= WIDE {
            let scale = Scale::Log;
            let ticks = shown.map(|load| (scale.place(load), load.to_string())).collect();
            let (from, to) = (scale.place(least), scale.place(most));
            let room = (to - from) * 0.05;
            return Axis { title: format!("{title}, log scale"), scale, ends: [from - room, to + room], ticks };
        }
        let apart = most * 1.05 / 12.0;
        let mut ticks: Vec<(f64, String)> = vec![];
        for load in shown {
            if ticks.last().is_none_or(|(last, _)| last - load >= apart) {
                ticks.push((load, load.to_string()));
            }
        }
        Axis { title: title.to_owned(), scale: Scale::Plain, ends: [0.0, most * 1.05], ticks }
    }

    /// Creates a logarithmic axis of ratios whose ideal value is 1. It extends from 1 (or the lowest ratio
    /// below 1) to the highest ratio, but at least to `most`.
    pub(crate) fn of_multiples(title: &str, all: impl Iterator<Item = f64> + Clone, most: f64) -> Axis {
        let scale = Scale::Log;
        let known = || all.clone().filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let (least, most) = (known().fold(1.0, f64::min), known().fold(most, f64::max));
        let (from, to) = (scale.place(least), scale.place(most));
        let room = (to - from) * 0.06;
        let ends = [from - room, to + room];
        let at = |power: i32| [1.0, 2.0, 3.0, 5.0].map(|times| times * 10f64.powi(power));
        let mut ticks: Vec<(f64, String)> = (-3..9)
            .flat_map(at)
            .map(|value| (scale.place(value), digits_of(value)))
            .filter(|(place, _)| (ends[0]..=ends[1]).contains(place))
            .collect();
        // If there are too many ticks, only every second, third, … tick is kept, starting with the lowest.
        let every = ticks.len().div_ceil(MOST_LOADS).max(1);
        let mut number = 0..;
        ticks.retain(|_| number.next().is_some_and(|number| number % every == 0));
        Axis { title: title.to_owned(), scale, ends, ticks }
    }

    /// Creates a logarithmic axis of ratios that is symmetric around 1.
    pub(crate) fn of_ratios(title: &str, all: impl Iterator<Item = f64>) -> Axis {
        let scale = Scale::Log;
        let far = all.filter(|ratio| ratio.is_finite() && *ratio > 0.0).map(|ratio| scale.place(ratio).abs());
        let far = (far.fold(0.02, f64::max) * 1.15).min(scale.place(1e6));
        let step = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 9.0, 99.0, 999.0, 99_999.0];
        // The right tick is at 1 + step, and the left tick at the inverse, which is equally far from 1.
        let step = step.into_iter().rev().find(|step| scale.place(1.0 + step) <= far * 0.9).unwrap_or(0.01);
        let half = [
            (scale.place(1.0 + step), ratio_text(1.0 + step)),
            (-scale.place(1.0 + step), ratio_text(1.0 / (1.0 + step))),
        ];
        let ticks = half.into_iter().chain([(0.0, "1".to_owned())]).collect();
        Axis { title: title.to_owned(), scale, ends: [-far, far], ticks }
    }

    /// Creates an axis of differences that is symmetric around 0.
    pub(crate) fn of_differences(title: &str, all: impl Iterator<Item = f64>) -> Axis {
        let far = all.filter(|value| value.is_finite()).map(f64::abs).fold(0.0, f64::max);
        let far = if far > 0.0 { far * 1.15 } else { 1.0 };
        let step = step(far, 2.0);
        let ticks = (-3..=3).map(|n| f64::from(n) * step).filter(|value| value.abs() <= far);
        let ticks = ticks.map(|value| (value, short(value, step))).collect();
        Axis { title: title.to_owned(), scale: Scale::Plain, ends: [-far, far], ticks }
    }

    /// Creates a linear axis from 0 to `most`, with the given ticks.
    pub(crate) fn of_places(title: String, most: f64, ticks: Vec<(f64, String)>) -> Axis {
        let room = most * 0.01;
        Axis { title, scale: Scale::Plain, ends: [-room, most + room], ticks }
    }

    /// Creates an axis of shares of requests that gives more space to the slowest requests. `n` is the
    /// largest number of requests of any line.
    pub(crate) fn of_tail(title: &str, n: u64) -> Axis {
        let scale = Scale::Tail;
        let most = scale.place(n as f64 / (n as f64 + 1.0));
        let known = [(0.0, "0"), (0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];
        let ticks = known.into_iter().map(|(share, name)| (scale.place(share), name.to_owned()));
        let ticks = ticks.filter(|(place, _)| *place <= most).collect();
        Axis { title: title.to_owned(), scale, ends: [0.0, most * 1.03], ticks }
    }

    /// Whether a value lies on the axis.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let place = self.scale.place(value);
        place.is_finite() && (self.ends[0]..=self.ends[1]).contains(&place)
    }

    /// Returns the label of the tick at a position; empty if there is no tick.
    pub(super) fn tick(&self, place: f64) -> String {
        let reach = (self.ends[1] - self.ends[0]) * 1e-6;
        let found = self.ticks.iter().find(|(at, _)| (at - place).abs() <= reach);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten, so that about `wanted` steps add up to `most`.
fn step(most: f64, wanted: f64) -> f64 {
    let raw = most / wanted;
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= raw * 0.999).unwrap_or(raw)
}

/// Formats a tick's value with as many decimals as the step between ticks has.
fn short(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 || step < 1e-4 {
        return format!("{value:.1e}");
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// Formats a number with few digits, such as 0.5, 3 or 200, without trailing zeros.
fn digits_of(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ratio_text(ratio: f64) -> String {
    if ratio >= 10.0 {
        digits(ratio)
    } else {
        format!("{ratio:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn lengths_begin_at_zero_and_end_above_the_longest() {
        let axis = Axis::from_zero("output, tok/s", 3407.0);
        assert_eq!(texts(&axis), ["0", "1000", "2000", "3000"]);
        assert!(axis.holds(3407.0) && axis.ends[0] == 0.0);
        assert_eq!(texts(&Axis::from_zero("", 0.03)), ["0", "0.01", "0.02", "0.03"]);
        assert!(Axis::from_zero("", 0.0).holds(0.0));
        assert!(Axis::from_zero("", f64::NAN).holds(0.5));
    }

    #[test]
    fn loads_far_apart_are_spread_by_logarithms() {
        let axis = Axis::of_loads("batch size", &[1.0, 4.0, 16.0, 64.0]);
        assert_eq!(axis.scale, Scale::Log);
        assert!(axis.title.ends_with("log scale"));
        let near = Axis::of_loads("qps", &[25.0, 50.0]);
        assert_eq!((near.scale, texts(&near)), (Scale::Plain, vec!["50", "25"]));
        assert_eq!(near.ends[0], 0.0);
        assert_eq!(Axis::of_loads("qps", &[]).ends[0], 0.0);
    }

    #[test]
    fn ratios_lie_around_one() {
        let axis = Axis::of_ratios("", [0.9, 1.3].into_iter());
        assert_eq!(texts(&axis), ["1.25", "0.8", "1"]);
        assert!(axis.holds(0.75) && axis.holds(1.3));
        assert!(Axis::of_ratios("", [f64::INFINITY, 0.0].into_iter()).holds(1.0));
    }

    #[test]
    fn multiples_begin_at_one() {
        let axis = Axis::of_multiples("", [1.2, 2.5].into_iter(), 3.4);
        assert_eq!(texts(&axis), ["1", "2", "3"]);
        assert!(axis.holds(1.0) && axis.holds(3.4) && !axis.holds(0.5));
        let wide = Axis::of_multiples("", [0.8, 900.0, f64::NAN, 0.0].into_iter(), 3.4);
        assert!(wide.holds(0.8) && wide.holds(900.0) && wide.ticks.len() <= MOST_LOADS, "{:?}", texts(&wide));
        assert!(Axis::of_multiples("", std::iter::empty(), 3.4).holds(3.0));
    }

    #[test]
    fn the_slowest_requests_are_stretched() {
        let axis = Axis::of_tail("", 1_000);
        assert_eq!(texts(&axis), ["0", "p50", "p90", "p99", "p99.9"]);
        assert!(axis.holds(1_000.0 / 1_001.0) && axis.holds(0.0) && !axis.holds(1.0));
    }
}
