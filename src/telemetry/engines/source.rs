//! The parts of an exporter's table.

/// The source of one canonical series in one exporter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// The canonical name.
    pub canonical: &'static str,
    /// The metric on the exporter's page; for a counter with or without `_total`, for a histogram
    /// without `_sum`.
    pub metric: &'static str,
    /// Labels and their allowed values, if only some series of the metric apply; a series without the
    /// label has an empty value.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// Factor that converts the values to the canonical unit.
    pub factor: f64,
    /// Whether this source is added to the previous one, rather than used as its fallback.
    pub adds: bool,
}

/// One exporter.
#[derive(Debug, Clone, Copy)]
pub struct Exporter {
    /// The display name of the exporter.
    pub title: &'static str,
    /// The version and location from which the table was taken.
    pub source: &'static str,
    /// The metric that identifies a page of this exporter, if its names are not specific.
    pub only_with: Option<&'static str>,
    /// The series of the exporter.
    pub series: &'static [Source],
    /// Histograms that the exporter counts at a different moment than usual ([`Moment::usual`]).
    pub counted: &'static [(&'static str, Moment)],
}

/// When a server counts a request's time in a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// With the first token of the request, or just before.
    FirstToken,
    /// When the request ends.
    End,
}

impl Moment {
    /// Returns when most servers count the canonical histogram `key`: the time to the first token with
    /// that token, and all other histograms at the end.
    pub fn usual(key: &str) -> Moment {
        if key == "ttft_seconds" { Moment::FirstToken } else { Moment::End }
    }
}

/// Creates a series that is identified by its name alone.
pub(super) const fn plain(canonical: &'static str, metric: &'static str) -> Source {
    scaled(canonical, metric, 1.0)
}

/// Creates a series in another unit.
pub(super) const fn scaled(canonical: &'static str, metric: &'static str, factor: f64) -> Source {
    Source { canonical, metric, labels: &[], factor, adds: false }
}

/// Creates the series of a metric with these labels.
pub(super) const fn labelled(
    canonical: &'static str,
    metric: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Source {
    Source { canonical, metric, labels, factor: 1.0, adds: false }
}

/// Creates a series that is added to the previous one.
pub(super) const fn plus(canonical: &'static str, metric: &'static str) -> Source {
    Source { canonical, metric, labels: &[], factor: 1.0, adds: true }
}
