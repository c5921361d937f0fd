//! What the user writes, read into a `Plan`: all mistakes of a file in one pass, each at its place with its remedy.

pub mod model;
pub mod path;
pub mod scenario;
pub mod shorthand;

pub use model::*;
pub use path::Step;
