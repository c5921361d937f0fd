//! The server under test: launch and stop.
