//! One series of one page over a run, and the same series of several pages combined.

use crate::telemetry::canonical::Over;

/// One series over the window.
pub(crate) struct Series {
    /// Instants in seconds and values, in order.
    points: Vec<(f64, f64)>,
    /// Why the series is unusable; `None` if it is usable.
    unknown: Option<String>,
}

impl Series {
    /// Creates the series from the points of a page; `read` and `failed` are the instants at which the page was
    /// read and at which reading it failed. A counter that appears on a page later was 0 when the page was last
    /// read without it, and it must never fall. `falls` states what a fall means; it is `None` for a gauge.
    pub(super) fn new(
        points: &[(f64, f64)],
        falls: Option<&str>,
        (read, failed): (&[f64], &[(f64, &str)]),
        [start, end]: [f64; 2],
    ) -> Series {
        let is_counter = falls.is_some();
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let (true, Some((first, _))) = (is_counter, points.first().copied())
            && let Some(before) = read.iter().copied().filter(|at| *at < first).reduce(f64::max)
        {
            points.insert(0, (before, 0.0));
        }
        // The range from the scrape before the window to the scrape after it.
        let from = points.iter().map(|point| point.0).filter(|at| *at <= start).reduce(f64::max);
        let to = points.iter().map(|point| point.0).filter(|at| *at >= end).reduce(f64::min);
        let is_about = |at: f64| from.is_none_or(|from| at > from) && to.is_none_or(|to| at < to);
        let gaps: Vec<&str> = failed.iter().filter(|(at, _)| is_about(*at)).map(|(_, why)| *why).collect();
        let inside =
            points.iter().filter(|(at, _)| from.is_none_or(|from| *at >= from) && to.is_none_or(|to| *at <= to));
        let values: Vec<f64> = inside.map(|(_, value)| *value).collect();
        let fell = falls.filter(|_| values.windows(2).any(|pair| pair[1] < pair[0]));
        let missing = read.iter().filter(|at| is_about(**at) && !points.iter().any(|point| point.0 == **at)).count();
        let unknown = match (gaps.first(), from.zip(to)) {
            (Some(why), _) => Some(format!("{} in the window failed ({why})", scrapes(gaps.len()))),
            (None, None) => Some("the window is not between two scrapes".to_owned()),
            (None, Some(_)) => match (fell, missing) {
                (Some(why), _) => Some(format!("the counter fell in the window: {why}")),
                (None, 0) => None,
                (None, missing) => Some(format!("{} in the window did not have it", scrapes(missing))),
            },
        };
        Series { points, unknown }
    }

    /// Returns the points of the series; an error if anything in the window is unknown.
    pub(super) fn known(&self) -> Result<&[(f64, f64)], String> {
        self.unknown.clone().map_or(Ok(&self.points), Err)
    }

    /// Returns the value at an instant between two points.
    fn at(&self, instant: f64) -> Option<f64> {
        let behind = self.points.partition_point(|point| point.0 < instant);
        let &(to, last) = self.points.get(behind)?;
        if to == instant {
            return Some(last);
        }
        let &(from, first) = self.points.get(behind.checked_sub(1)?)?;
        Some(first + (last - first) * (instant - from) / (to - from))
    }
}

fn scrapes(count: usize) -> String {
    if count == 1 { "1 scrape".to_owned() } else { format!("{count} scrapes") }
}

/// One series on all pages that have it.
pub(crate) struct Together {
    series: Vec<Series>,
    over: Over,
    window: [f64; 2],
}

impl Together {
    pub(super) fn new(series: Vec<Series>, over: Over, window: [f64; 2]) -> Together {
        Together { series, over, window }
    }

    /// Returns instants and values from the beginning of the window to its end.
    pub(super) fn course(&self) -> Result<Vec<(f64, f64)>, String> {
        if let Some(why) = self.series.iter().find_map(|series| series.unknown.clone()) {
            return Err(why);
        }
        let [start, end] = self.window;
        if end <= start {
            return Err("the window has no length".to_owned());
        }
        let of_points = self.series.iter().flat_map(|series| &series.points).map(|point| point.0);
        let mut instants: Vec<f64> = of_points.filter(|at| *at > start && *at < end).chain([start, end]).collect();
        instants.sort_by(f64::total_cmp);
        instants.dedup();
        let course = instants.into_iter().map(|at| Some((at, self.at(at)?)));
        course.collect::<Option<_>>().ok_or_else(|| "the window is not between two scrapes".to_owned())
    }

    fn at(&self, instant: f64) -> Option<f64> {
        let values: Vec<f64> = self.series.iter().map(|series| series.at(instant)).collect::<Option<_>>()?;
        match self.over {
            Over::Sum => Some(values.iter().sum()),
            Over::Mean => Some(values.iter().sum::<f64>() / values.len() as f64),
            Over::Max | Over::AnyBit => values.into_iter().reduce(f64::max),
        }
    }

    /// Returns the trapezoidal integral over the window.
    pub(super) fn integral(&self) -> Result<f64, String> {
        let course = self.course()?;
        Ok(course.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum())
    }

    /// Returns the mean over time.
    pub(super) fn mean(&self) -> Result<f64, String> {
        Ok(self.integral()? / (self.window[1] - self.window[0]))
    }

    /// Returns the largest value.
    pub(super) fn max(&self) -> Result<f64, String> {
        let largest = self.course()?.into_iter().map(|point| point.1).reduce(f64::max);
        largest.ok_or_else(|| "no scrape lies in the window".to_owned())
    }

    /// Returns how much the series grew over the window.
    pub(super) fn growth(&self) -> Result<f64, String> {
        let course = self.course()?;
        let (first, last) = (course.first(), course.last());
        let ends = first.zip(last).ok_or_else(|| "no scrape lies in the window".to_owned());
        ends.map(|(first, last)| last.1 - first.1)
    }

    /// Returns the share of the scrapes in the window whose value is `wanted`.
    pub(super) fn share(&self, wanted: impl Fn(f64) -> bool) -> Result<f64, String> {
        self.course()?;
        let [start, end] = self.window;
        let values = self.series.iter().flat_map(|series| &series.points);
        let values: Vec<f64> = values.filter(|point| point.0 >= start && point.0 <= end).map(|point| point.1).collect();
        match values.len() {
            0 => Err("no scrape lies in the window".to_owned()),
            all => Ok(values.into_iter().filter(|value| wanted(*value)).count() as f64 / all as f64),
        }
    }
}
