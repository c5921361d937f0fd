//! The samples scraped during a run, by series, and the figures of each canonical series.

use std::collections::BTreeMap;

use crate::rows::{Facts, Sample};
use crate::telemetry::canonical::{Canonical, Kind, Over, canonical};
use crate::telemetry::round_trip;

use super::figure::ServerFigure;
use super::round_trips::RoundTrips;
use super::series::{Series, Together};

/// The source of GPU metrics.
const GPU: &str = "gpu";
/// Suffixes of the names of a histogram's two series in the samples.
const SUM: &str = ".sum";
const COUNT: &str = ".count";

/// The points of one series on one page: the instant, in seconds, and the value.
pub(super) type Points = Vec<(f64, f64)>;

/// The observations that a histogram counted in the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counted {
    /// The mean of the observations, in the histogram's unit.
    pub(super) mean: f64,
    /// Number of observations.
    pub(super) count: f64,
}

/// The samples scraped during a run, by series.
pub(super) struct Scraped<'a> {
    /// Points by canonical name with suffix, and by page.
    values: BTreeMap<&'a str, BTreeMap<u32, Points>>,
    /// For each page: the instants at which the page was read. `failed` contains the instants at
    /// which reading failed, with the reason.
    read: BTreeMap<u32, Vec<f64>>,
    failed: BTreeMap<u32, Vec<(f64, &'a str)>>,
    /// Round trips to the server.
    pub(super) round_trips: RoundTrips,
    window: [f64; 2],
}

impl<'a> Scraped<'a> {
    pub(super) fn of(samples: &'a [Sample], facts: &Facts) -> Scraped<'a> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let window = [facts.windows.measure_start_ns, facts.windows.measure_end_ns].map(seconds);
        let trips =
            samples.iter().filter(|sample| sample.source == round_trip::SOURCE && sample.name == round_trip::NAME);
        let round_trips = RoundTrips::of(trips.map(|sample| (seconds(sample.at_ns), sample.value)), window);
        let twice = read_twice(samples, facts);
        let mut scraped =
            Scraped { values: BTreeMap::new(), read: BTreeMap::new(), failed: BTreeMap::new(), round_trips, window };
        for sample in samples {
            let Some(url) = sample.url else { continue };
            let at = seconds(sample.at_ns);
            match (sample.source.as_str(), sample.name.as_str()) {
                ("scrape", "up") if sample.value == 1.0 => scraped.read.entry(url).or_default().push(at),
                ("scrape", "up") => {
                    let why = sample.error.as_deref().unwrap_or("no response");
                    scraped.failed.entry(url).or_default().push((at, why));
                }
                ("scrape" | "raw", _) => {}
                (GPU, _) if twice == Some(url) => {}
                (_, name) => {
                    scraped.values.entry(name).or_default().entry(url).or_default().push((at, sample.value));
                }
            }
        }
        scraped
    }

    /// Returns the series of a name on all pages that have it; `None` if no page does.
    pub(super) fn series(&self, name: &str, canonical: &Canonical) -> Option<Together> {
        let series: Vec<Series> = self.on_pages(name, canonical).map(|(_, series)| series).collect();
        (!series.is_empty()).then(|| Together::new(series, canonical.over, self.window))
    }

    /// Returns the series of a name by page.
    pub(super) fn on_pages(&self, name: &str, canonical: &Canonical) -> impl Iterator<Item = (u32, Series)> {
        self.values.get(name).into_iter().flatten().map(move |(url, points)| {
            let about = (self.read(*url), self.failed(*url));
            let falls = match (canonical.kind, canonical.source) {
                (Kind::Gauge, _) => None,
                (_, GPU) => Some("it wrapped, or its driver was reset"),
                _ => Some("the server was restarted"),
            };
            (*url, Series::new(points, falls, about, self.window))
        })
    }

    /// Returns the series of a name on one page alone.
    pub(super) fn alone(&self, page: u32, name: &str) -> Option<Together> {
        let canonical = canonical(name)?;
        let (_, series) = self.on_pages(name, canonical).find(|(url, _)| *url == page)?;
        Some(Together::new(vec![series], canonical.over, self.window))
    }

    /// Returns the points of a series that are in the window; an error if anything in the window is
    /// unknown.
    pub(super) fn inside(&self, series: &Series) -> Result<Vec<(f64, f64)>, String> {
        let [start, end] = self.window;
        Ok(series.known()?.iter().copied().filter(|(at, _)| *at >= start && *at <= end).collect())
    }

    /// Returns the values of a name by page, as scraped over the whole run.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = (u32, &Points)> {
        self.values.get(name).into_iter().flatten().map(|(url, points)| (*url, points))
    }

    /// Returns the names of the scraped series; names of histograms include the suffix.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.values.keys().copied()
    }

    /// Returns when a page was read.
    pub(super) fn read(&self, page: u32) -> &[f64] {
        self.read.get(&page).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns when a page could not be read, and why.
    pub(super) fn failed(&self, page: u32) -> &[(f64, &'a str)] {
        self.failed.get(&page).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether nothing was scraped.
    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.failed.is_empty()
    }

    /// Returns the number and the mean of the observations that a histogram counted in the window; `None` if
    /// no page has the histogram.
    pub(super) fn histogram(&self, key: &str) -> Option<Result<Counted, String>> {
        let canonical = canonical(key)?;
        let sum = self.series(&format!("{key}{SUM}"), canonical)?;
        let count = self.series(&format!("{key}{COUNT}"), canonical)?;
        Some(sum.growth().and_then(|sum| match count.growth()? {
            0.0 => Err("nothing was counted in the window".to_owned()),
            count => Ok(Counted { mean: sum / count, count }),
        }))
    }

    /// Returns the figures of a series over the window; empty if no page has it.
    pub(super) fn of_series(&self, canonical: &Canonical) -> Vec<ServerFigure> {
        let Canonical { key, unit, kind, over, doc, .. } = *canonical;
        match kind {
            // `derived` handles these series.
            Kind::Counter if key.starts_with("cpu_") || key == "gpu_energy_joules" => Vec::new(),
            Kind::Gauge if over == Over::AnyBit || key == "process_start_time" => Vec::new(),
            Kind::Gauge => self.series(key, canonical).map_or_else(Vec::new, |series| {
                let of = |what: &str, value| ServerFigure::new(format!("{key}_{what}"), unit, told(doc, what), value);
                vec![of("mean", series.mean()), of("max", series.max())]
            }),
            Kind::Counter => self.series(key, canonical).map_or_else(Vec::new, |series| {
                vec![ServerFigure::new(key, unit, told(doc, "growth"), series.growth())]
            }),
            Kind::Histogram => {
                let Some(counted) = self.histogram(key) else { return Vec::new() };
                let mean = counted.map(|counted| counted.mean);
                vec![ServerFigure::new(format!("{key}_mean"), unit, told(doc, "mean"), mean)]
            }
        }
    }
}

/// Returns the page index of this machine's own GPUs if another page reports GPUs too. Then only the
/// other pages' GPUs count, so that no GPU counts twice.
fn read_twice(samples: &[Sample], facts: &Facts) -> Option<u32> {
    let here = facts.telemetry.as_ref()?.gpus.as_ref()?.page;
    let is_other = |sample: &Sample| sample.source == GPU && sample.url.is_some_and(|url| url != here);
    samples.iter().any(is_other).then_some(here)
}

/// Returns the documentation of a figure of a series.
fn told(doc: &str, what: &str) -> String {
    let doc = doc.trim_end_matches('.');
    match what {
        "mean" => format!("{doc}: mean over the window."),
        "max" => format!("{doc}: maximum in the window."),
        _ => format!("{doc}: in the window."),
    }
}
