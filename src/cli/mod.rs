//! The program: arguments, one file per command, failures as text and exit code.
