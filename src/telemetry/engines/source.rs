//! What a table of an exporter is made of.

/// Where one exporter has one canonical series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// The canonical name.
    pub canonical: &'static str,
    /// The metric on its page; of a counter with or without `_total`, of a histogram without `_sum`.
    pub metric: &'static str,
    /// Labels and what each may be, where not every series of the metric is meant; a series without the label has it empty.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// What its values are multiplied by, to be in the canonical unit.
    pub factor: f64,
    /// Whether it is added to the source before it, rather than taken where that is not there.
    pub adds: bool,
}

/// What is known of one exporter.
#[derive(Debug, Clone, Copy)]
pub struct Exporter {
    /// What people call it.
    pub title: &'static str,
    /// The version that the table was read from, and where.
    pub source: &'static str,
    /// The metric without which a page is not this exporter's, where its names are anybody's.
    pub only_with: Option<&'static str>,
    /// Its series.
    pub series: &'static [Source],
    /// Histograms that it counts at another moment than others do ([`Moment::usual`]).
    pub counted: &'static [(&'static str, Moment)],
}

/// When a server counts a request's time in a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// With its first token, or a moment before.
    FirstToken,
    /// When it ends.
    End,
}

impl Moment {
    /// When most servers count the canonical histogram `key`: the time to the first token with that token, all others at the end.
    pub fn usual(key: &str) -> Moment {
        if key == "ttft_seconds" { Moment::FirstToken } else { Moment::End }
    }
}

/// A series by its name alone.
pub(super) const fn plain(canonical: &'static str, metric: &'static str) -> Source {
    scaled(canonical, metric, 1.0)
}

/// A series in another unit.
pub(super) const fn scaled(canonical: &'static str, metric: &'static str, factor: f64) -> Source {
    Source { canonical, metric, labels: &[], factor, adds: false }
}

/// Those of a metric whose labels are these.
pub(super) const fn labelled(
    canonical: &'static str,
    metric: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Source {
    Source { canonical, metric, labels, factor: 1.0, adds: false }
}

/// A series that is added to the one before it.
pub(super) const fn plus(canonical: &'static str, metric: &'static str) -> Source {
    Source { canonical, metric, labels: &[], factor: 1.0, adds: true }
}
