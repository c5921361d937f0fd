//! The integration tests: one binary, through the built program.

mod mock;
