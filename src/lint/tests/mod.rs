//! The rules over small plans.
