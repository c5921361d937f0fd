//! Rows → numbers. Pure: no I/O.
