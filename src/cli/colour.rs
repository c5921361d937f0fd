//! Use of color in output.

use clap::{Args, ValueEnum};

/// Whether output is colored.
#[derive(Debug, Clone, Copy, Args)]
pub struct Colour {
    /// When to use color
    #[arg(long = "color", value_enum, value_name = "WHEN", default_value = "auto")]
    pub when: When,
}

/// When color is used.
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
    /// Whether output to `stream` is colored.
    pub fn on(self, stream: &impl std::io::IsTerminal) -> bool {
        match self.when {
            When::Always => true,
            When::Never => false,
            When::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}
