//! Names for readers. They are shared by all runs of a plan, because even a million runs have only a
//! few different names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names for readers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Labels {
    /// The plan's name for the model.
    pub model: Arc<str>,
    /// The plan's name for the scenario.
    pub scenario: Arc<str>,
    /// The cell's values on axes other than endpoint, model, scenario, batch_size and qps.
    pub axes: AxisLabels,
}

/// Values of axes as text, sorted by axis. Files store them as a table of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisLabels(Arc<[(Arc<str>, Arc<str>)]>);

impl AxisLabels {
    /// Creates labels from axes and values in any order.
    pub fn new(axes: impl IntoIterator<Item = (Arc<str>, Arc<str>)>) -> AxisLabels {
        let mut axes: Vec<_> = axes.into_iter().collect();
        axes.sort();
        AxisLabels(axes.into())
    }

    /// The axes and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(axis, value)| (&**axis, &**value))
    }

    /// The axes and their values as owned texts.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect()
    }
}

impl Default for AxisLabels {
    fn default() -> AxisLabels {
        AxisLabels(Arc::new([]))
    }
}

impl Serialize for AxisLabels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for AxisLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let axes = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(AxisLabels::new(axes.into_iter().map(|(axis, value)| (axis.into(), value.into()))))
    }
}
