//! A server's description of itself, which is recorded with every run, and the comparison of two such
//! descriptions.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server's description of itself. Facts that the server does not report are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprint {
    /// The detected engine, as plans name it.
    pub engine: Option<String>,
    /// The version of the engine, as the server reports it.
    pub version: Option<String>,
    /// The model behind the requested id: its name or path if the server reports one, otherwise the id as
    /// listed.
    pub model: Option<String>,
    /// Maximum number of tokens of a prompt and its response together.
    pub context_length: Option<u64>,
    /// Flags that the server reports, by the names it uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flags: BTreeMap<String, String>,
}

/// A fact for which a server reports a different value than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The fact: `engine`, `version` or `model`.
    pub what: &'static str,
    /// The previous value.
    pub was: String,
    /// The current value.
    pub is: String,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} instead of {}", self.what, self.is, self.was)
    }
}

impl Fingerprint {
    /// Whether the server reported no facts.
    pub fn is_empty(&self) -> bool {
        *self == Fingerprint::default()
    }

    /// Returns the engine and version in short form; `None` if neither is known.
    pub fn program(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.engine, &self.version].into_iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// Returns the engine, version, model and context length in short form; `None` if nothing is known.
    pub fn in_words(&self) -> Option<String> {
        let model = self.model.as_ref().map(|model| format!("model {model}"));
        let context = self.context_length.map(|tokens| format!("context of {tokens} tokens"));
        let parts: Vec<String> = [self.program(), model, context].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the facts that differ in `now`: engine, release or served model. A fact that is missing
    /// from either fingerprint does not count as a difference.
    pub fn changed(&self, now: &Fingerprint) -> Vec<Changed> {
        let pairs = [
            ("engine", &self.engine, &now.engine, (|was, is| was == is) as fn(&str, &str) -> bool),
            ("version", &self.version, &now.version, same_release),
            ("model", &self.model, &now.model, |was, is| was == is),
        ];
        let differs = pairs.into_iter().filter_map(|(what, was, is, same)| {
            let (was, is) = (was.as_ref()?, is.as_ref()?);
            (!same(was, is)).then(|| Changed { what, was: was.clone(), is: is.clone() })
        });
        differs.collect()
    }

    /// Whether this fingerprint has the previous value of every changed fact, which means that the earlier
    /// server is back.
    pub fn is_what_was(&self, changed: &[Changed]) -> bool {
        let is_what_was = |Changed { what, was, .. }: &Changed| match *what {
            "engine" => self.engine.as_ref() == Some(was),
            "version" => self.version.as_ref() == Some(was),
            _ => self.model.as_ref() == Some(was),
        };
        changed.iter().all(is_what_was)
    }
}

/// Whether two versions belong to the same release. Different builds of a release match (`v0.11.0+cu128`,
/// `0.11.0`), but development builds of different commits do not. Trailing zeros are ignored.
pub fn same_release(one: &str, other: &str) -> bool {
    release(one) == release(other)
}

/// Returns a version without its build information.
fn release(version: &str) -> String {
    let version = version.trim().to_ascii_lowercase();
    let version = version.strip_prefix('v').unwrap_or(&version);
    let (public, local) = version.split_once('+').unwrap_or((version, ""));
    let mut release = without_zeros(public).to_owned();
    // Only the commit identifies the code of a development build: 0.11.1.dev12+gabc1234.cu128.
    if public.contains("dev") {
        let is_commit =
            |part: &&str| part.strip_prefix('g').is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if let Some(commit) = local.split('.').find(is_commit) {
            release.push('+');
            release.push_str(commit);
        }
    }
    release
}

/// Shortens `0.33.0` to `0.33`; versions with other characters (`0.33.0rc1`) are not changed.
fn without_zeros(version: &str) -> &str {
    let is_plain = version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain {
        return version;
    }
    let mut rest = version;
    while let Some(shorter) = rest.strip_suffix(".0") {
        rest = shorter;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_one_release_are_alike() {
        for (one, other) in [
            ("v0.11.0+cu128", "0.11.0"),
            ("0.11.0", " 0.11.0\n"),
            ("0.33", "0.33.0"),
            ("0.11.1.dev12+gabc1234.cu128", "0.11.1.dev12+gabc1234"),
            ("V1.0", "1"),
            ("b6123-4a5b6c7", "b6123-4a5b6c7"),
        ] {
            assert!(same_release(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn other_releases_and_development_builds_differ() {
        for (one, other) in [
            ("0.11.0", "0.11.1"),
            ("0.11.1.dev12+gabc", "0.11.1"),
            ("0.11.1.dev12+gabc", "0.11.1.dev12+gabd"),
            ("0.11.1.dev12", "0.11.1.dev13"),
            ("0.11.0rc1", "0.11.0"),
            ("0.11.0.post1", "0.11.0"),
            ("0.1", "0.10"),
            ("b6123-4a5b6c7", "b6124-4a5b6c8"),
        ] {
            assert!(!same_release(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn what_is_unknown_does_not_differ() {
        let known = Fingerprint {
            engine: Some("vllm".to_owned()),
            version: Some("0.11.0+cu128".to_owned()),
            model: Some("llama".to_owned()),
            ..Fingerprint::default()
        };
        assert_eq!(known.changed(&Fingerprint::default()), []);
        assert_eq!(Fingerprint::default().changed(&known), []);
        let other = Fingerprint { version: Some("0.12.0".to_owned()), context_length: Some(1), ..known.clone() };
        let changed = known.changed(&other);
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0].to_string(), "version 0.12.0 instead of 0.11.0+cu128");
        let model = Fingerprint { model: Some("qwen".to_owned()), ..known.clone() };
        assert_eq!(known.changed(&model)[0].what, "model");
    }
}
