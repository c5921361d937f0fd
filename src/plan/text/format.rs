//! In what a plan is written.

use std::path::Path;

/// In what a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
}

impl Format {
    /// By the ending of the file's name: .yaml, .yml or .toml.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            // What `freeze` writes is a plan in YAML.
            "yaml" | "yml" | "lock" => Some(Format::Yaml),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }
}
