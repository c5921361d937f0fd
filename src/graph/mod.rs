//! RunSpecs → Graph: what waits for what.
