//! What people read while and after a sweep runs.
