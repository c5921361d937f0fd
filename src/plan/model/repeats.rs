//! How often each cell of a sweep is run: a number of times, or until its means are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::model::compare::MetricName;
use crate::plan::model::shorthand::OneOrMany;
use crate::units::Share;

/// How often each cell is run.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// The most repeats of a cell; all of them where there is no `until`.
    #[schemars(range(min = 1), example = 12)]
    pub at_most: u32,
    /// End the repeats of a cell as soon as each mean over its runs is known this well, from the third on: 2% where the 95 % interval of
    /// the mean lies within 2 % of it. Which repeats are left out follows from what was measured.
    #[serde(default)]
    #[schemars(example = &"2%")]
    pub until: Option<Share>,
    /// The metrics whose means have to be known, by the names of `compare`. Default: output throughput and the percentiles that the
    /// plan's `slo` limits; without an `slo` output throughput and the medians of TTFT and E2E; of starts how long they took.
    #[serde(default)]
    pub metrics: OneOrMany<MetricName>,
}

impl Repeats {
    /// So many of each cell.
    pub fn times(count: u32) -> Repeats {
        Repeats { at_most: count, until: None, metrics: OneOrMany::default() }
    }
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats::times(1)
    }
}

/// A number is written as one.
impl Serialize for Repeats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[serde_with::skip_serializing_none]
        #[derive(Serialize)]
        struct Table<'a> {
            until: Option<Share>,
            at_most: u32,
            metrics: Option<&'a OneOrMany<MetricName>>,
        }
        let metrics = Some(&self.metrics).filter(|metrics| !metrics.is_empty());
        match (self.until, metrics) {
            (None, None) => self.at_most.serialize(serializer),
            (until, metrics) => Table { until, at_most: self.at_most, metrics }.serialize(serializer),
        }
    }
}
