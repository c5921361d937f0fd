//! The elements of a sweep's axes as written: lists, ranges, zips, conditional values, and the rules
//! that exclude, extend and add cells. `read` parses them, and `grid` builds cells from them.

pub mod range;
pub mod read;
pub mod schema;

use serde::Serialize;

use crate::plan::model::scalar::Scalar;
use crate::plan::model::table::Table;
use crate::plan::model::take::Take;
use crate::units::Decimal;

pub use crate::plan::model::matrix::range::{By, Range};

/// One axis of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Axis {
    /// A list of values; a single value is a list with one element.
    Values(Vec<Item>),
    /// Several lists of equal length that vary together: the first value of each, the second of each,
    /// and so on.
    Zip(Zip),
}

/// Several lists of equal length as one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Zip {
    /// The lists, by the names of their axes.
    #[serde(rename = "zip")]
    pub lists: Table<List>,
    /// The cells to which the axis applies; `None` if it applies to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

/// A list of a zip; a single value is a list with one element.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct List(pub Vec<Item>);

/// A value of an axis, or several values written as one element.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The values that the element represents.
    pub what: What,
    /// The cells to which the element applies; `None` if it applies to all.
    pub when: Option<Condition>,
}

/// The values that an element of an axis represents.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// One value, or a list of values under one condition.
    Values(Vec<Scalar>),
    /// The numbers of a range.
    Range(Range),
    /// One point of an axis group: a value for each of several axes, by name.
    Fields(Table<Scalar>),
    /// A load derived from an earlier sweep.
    Taken(Take),
}

/// A condition on cells: every given field must match. A field that a cell lacks never matches.
pub(crate) type Condition = Table<Filter>;

/// The values of an axis that match; any of these is sufficient.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filter(pub Vec<Pick>);

/// One value, or all values within bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Pick {
    /// This value.
    One(Scalar),
    /// Every number between two bounds, including the bounds.
    Within {
        /// The minimum; `None` for no bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Decimal>,
        /// The maximum; `None` for no bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Decimal>,
    },
}

/// Additional fields for matching cells.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// The cells to extend: every given field must match.
    pub when: Condition,
    /// The additional fields.
    pub with: Table<Scalar>,
}

impl Axis {
    /// Creates an axis of one value.
    pub fn one(value: Scalar) -> Axis {
        Axis::Values(vec![Item { what: What::Values(vec![value]), when: None }])
    }

    /// An upper bound on the number of values of the axis, computed without creating any value.
    pub fn len(&self) -> usize {
        let sum = |items: &[Item]| items.iter().map(Item::len).sum();
        match self {
            Axis::Values(items) => sum(items),
            Axis::Zip(zip) => zip.lists.values().map(|list| sum(&list.0)).max().unwrap_or_default(),
        }
    }

    /// Whether the axis has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of values that must be held in memory to iterate over the axis, computed without creating
    /// any value.
    pub fn weight(&self) -> usize {
        let sum = |items: &[Item]| -> usize { items.iter().map(Item::weight).sum() };
        match self {
            Axis::Values(items) => sum(items),
            Axis::Zip(zip) => zip.lists.values().map(|list| sum(&list.0)).sum(),
        }
    }
}

impl Item {
    /// Number of points of the axis that the element represents.
    pub fn len(&self) -> usize {
        match &self.what {
            What::Values(values) => values.len(),
            What::Range(range) => range.len(),
            What::Fields(_) | What::Taken(_) => 1,
        }
    }

    /// Whether the element represents no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn weight(&self) -> usize {
        match &self.what {
            What::Fields(fields) => fields.len(),
            What::Values(_) | What::Range(_) | What::Taken(_) => self.len(),
        }
    }
}

impl Filter {
    /// Whether a value matches any element of the filter.
    pub fn matches(&self, value: &Scalar) -> bool {
        self.0.iter().any(|pick| pick.matches(value))
    }
}

impl Pick {
    /// Whether a value matches.
    pub fn matches(&self, value: &Scalar) -> bool {
        match (self, value) {
            (Pick::One(one), value) => one == value,
            (Pick::Within { from, to }, Scalar::Number(number)) => {
                from.is_none_or(|from| from <= *number) && to.is_none_or(|to| *number <= to)
            }
            (Pick::Within { .. }, Scalar::Bool(_) | Scalar::Text(_)) => false,
        }
    }
}

impl std::fmt::Display for Pick {
    /// Formats the value or the bounds as written in a plan.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pick::One(value) => value.fmt(f),
            Pick::Within { from: Some(from), to: Some(to) } => write!(f, "{{ from: {from}, to: {to} }}"),
            Pick::Within { from: Some(from), to: None } => write!(f, "{{ from: {from} }}"),
            Pick::Within { from: None, to: Some(to) } => write!(f, "{{ to: {to} }}"),
            Pick::Within { from: None, to: None } => f.write_str("{}"),
        }
    }
}
