//! The parts of an exporter's table.

/// The source of one canonical series in one exporter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// The canonical name.
    pub canonical: &'static str,
    /// The metric on its page; for a counter with or without `_total`, for a histogram without `_sum`.
    pub metric: &'static str,
    /// Labels and their allowed values, if only some series of the metric apply; a series without the
    /// label has an empty value.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// Factor that converts its values to the canonical unit.
    pub factor: f64,
    /// Whether it is added to the previous source, rather than used as its fallback.
    pub adds: bool,
}

/// One exporter.
#[derive(Debug, Clone, Copy)]
pub struct Exporter {
    /// Its display name.
    pub title: &'static str,
    /// The version and location that the table was read from.
    pub source: &'static str,
    /// The metric that identifies a page of this exporter, if its names are not specific.
    pub only_with: Option<&'static str>,
    /// Its series.
    pub series: &'static [Source],
    /// Histograms that it counts at a different moment than usual ([`Moment::usual`]).
    pub counted: &'static [(&'static str, Moment)],
}

/// When a server counts a request's time in a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// With its first token, or just before.
    FirstToken,
    /// When it ends.
    End,
}

impl Moment {
    /// Returns when most servers count the canonical histogram `key`: the time to the first token with
    /// that token, all others at the end.
    pub fn usual(key: &str) -> Moment {
        if key == "ttft_seconds" { Moment::FirstToken } else { Moment::End }
    }
}

/// A series identified by its name alone.
pub(super) const fn plain(canonical: &'static str, metric: &'static str) -> Source {
    scaled(canonical, metric, 1.0)
}

/// A series in another unit.
pub(super) const fn scaled(canonical: &'static str, metric: &'static str, factor: f64) -> Source {
    Source { canonical, metric, labels: &[], factor, adds: false }
}

/// The series of a metric with these labels.
pub(super) const fn labelled(
    canonical: &'static str,
    metric: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Source {
    Source { canonical, metric, labels, factor: 1.0, adds: false }
}

/// A series that is added to the previous one.
pub(super) const fn plus(canonical: &'static str, metric: &'static str) -> Source {
    Source { canonical, metric, labels: &[], factor: 1.0, adds: true }
}
