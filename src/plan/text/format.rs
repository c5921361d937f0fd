//! The formats of plans.

use std::path::Path;

/// The format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
}

impl Format {
    /// Determines the format from the file extension: .yaml, .yml or .toml.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            // `freeze` writes .lock files, which are in YAML.
            "yaml" | "yml" | "lock" => Some(Format::Yaml),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }
}
