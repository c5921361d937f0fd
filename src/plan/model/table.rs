//! Tables of a plan.

use indexmap::IndexMap;

/// A table whose order is the file's order.
pub type Table<T> = IndexMap<String, T>;
