//! Tables of a plan.

use indexmap::IndexMap;

/// A table whose entries keep the order of the file.
pub type Table<T> = IndexMap<String, T>;
