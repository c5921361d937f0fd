//! The types that an exporter's table consists of.

/// The metric of an exporter that provides a canonical series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// The canonical name.
    pub canonical: &'static str,
    /// Name of the metric on the exporter's page. The name of a counter may omit `_total`; the name of a
    /// histogram has no `_sum`.
    pub metric: &'static str,
    /// Labels and their allowed values, if only some series of the metric apply. A missing label has an
    /// empty value.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// Factor that converts the values to the canonical unit.
    pub factor: f64,
    /// Whether this metric is added to the previous metric of the table, instead of being a fallback for
    /// it.
    pub adds: bool,
}

/// An exporter, with the metrics that provide its canonical series.
#[derive(Debug, Clone, Copy)]
pub struct Exporter {
    /// The display name of the exporter.
    pub title: &'static str,
    /// The version and the source files from which the table was taken.
    pub source: &'static str,
    /// The metric that identifies a page of this exporter, if other exporters use the same metric names;
    /// otherwise `None`.
    pub only_with: Option<&'static str>,
    /// The series of the exporter.
    pub series: &'static [Source],
    /// Histograms to which the exporter adds a request at a different moment than usual
    /// ([`Moment::usual`]).
    pub counted: &'static [(&'static str, Moment)],
}

/// When a server adds a request to a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// When the first token of the request is generated, or just before.
    FirstToken,
    /// When the request ends.
    End,
}

impl Moment {
    /// Returns the moment at which most servers add a request to the canonical histogram `key`: with the
    /// first token for the time to first token, and at the end for all other histograms.
    pub fn usual(key: &str) -> Moment {
        if key == "ttft_seconds" { Moment::FirstToken } else { Moment::End }
    }
}

/// Returns the source of a series whose metric has the canonical unit and is identified by its name alone.
pub(super) const fn plain(canonical: &'static str, metric: &'static str) -> Source {
    scaled(canonical, metric, 1.0)
}

/// Returns the source of a series whose metric has another unit; `factor` converts its values to the
/// canonical unit.
pub(super) const fn scaled(canonical: &'static str, metric: &'static str, factor: f64) -> Source {
    Source { canonical, metric, labels: &[], factor, adds: false }
}

/// Returns the source of a series for which only the metric's series with these labels are used.
pub(super) const fn labelled(
    canonical: &'static str,
    metric: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Source {
    Source { canonical, metric, labels, factor: 1.0, adds: false }
}

/// Returns a further source of a series, whose metric is added to the previous metric of that series.
pub(super) const fn plus(canonical: &'static str, metric: &'static str) -> Source {
    Source { canonical, metric, labels: &[], factor: 1.0, adds: true }
}
