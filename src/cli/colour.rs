//! Whether colour is used.

use clap::{Args, ValueEnum};

/// Whether colour is used.
#[derive(Debug, Clone, Copy, Args)]
pub struct Colour {
    /// When to use colour
    #[arg(long = "color", value_enum, value_name = "WHEN", default_value = "auto")]
    pub when: When,
}

/// When something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether `stream` gets colour.
    pub fn on(self, stream: &impl std::io::IsTerminal) -> bool {
        match self.when {
            When::Always => true,
            When::Never => false,
            When::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}
