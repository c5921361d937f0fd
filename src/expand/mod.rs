//! Plan → RunSpecs: matrix, order, identity.

pub mod spec;

pub use spec::*;
