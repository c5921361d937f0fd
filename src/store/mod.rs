//! The results folder: layout, commit, lock, verify, list.
