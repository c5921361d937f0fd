//! Parses the text of a LoadGen configuration in the same way as LoadGen: words between spaces, `KEY =
//! VALUE`.
//!
//! LoadGen (`loadgen/test_settings_internal.cc`, `TestSettings::FromConfig`) ignores a line without ` = `
//! between spaces, uses the last value if there are several, and fails if a value is not a number.

use super::known::SCENARIOS;
use crate::import::error::ImportError;
use crate::import::notes::Notes;
use crate::import::text::one_line;

/// One setting: `MODEL.SCENARIO.NAME = VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// The model's name in LoadGen, or `*`.
    pub(super) model: String,
    /// `Server`, `Offline`, `SingleStream`, `MultiStream`, or `*`.
    pub(super) scenario: String,
    /// The setting's name.
    pub(super) name: String,
    /// The number, as written.
    pub(super) text: String,
    /// The number.
    pub(super) value: f64,
    /// The line of the setting, from 1; 0 if it is LoadGen's own setting.
    pub(super) line: usize,
}

impl Setting {
    /// Returns the setting without its value.
    pub(super) fn key(&self) -> String {
        format!("{}.{}.{}", self.model, self.scenario, self.name)
    }

    /// Whether this is the setting with this name, of this model and scenario.
    pub(super) fn is_of(&self, model: &str, scenario: &str, name: &str) -> bool {
        self.model == model && self.scenario == scenario && self.name == name
    }
}

/// Whether a text looks like a LoadGen configuration, that is, one of its lines is a setting of a LoadGen
/// scenario.
pub(super) fn is_conf(text: &str) -> bool {
    text.lines().take(2_000).any(|line| {
        let mut words = line.split_whitespace();
        let (key, equals, value) = (words.next(), words.next(), words.next());
        let scenario =
            key.filter(|key| !key.starts_with('#')).and_then(|key| parts(key)).map(|(_, scenario, _)| scenario);
        let is_known = scenario.is_some_and(|scenario| scenario == "*" || SCENARIOS.contains(&scenario));
        is_known && equals == Some("=") && value.is_some_and(|value| number(value).is_some())
    })
}

/// Reads the settings of a file; of two settings with the same key, the later one wins.
pub(super) fn read(file: &str, text: &str, notes: &Notes) -> Result<Vec<Setting>, ImportError> {
    let mut all = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let end = words.iter().position(|word| *word == "#").filter(|end| *end < 2).unwrap_or(words.len());
        setting(file, number + 1, &words[..end], &mut all, notes)?;
    }
    Ok(all)
}

fn setting(file: &str, line: usize, words: &[&str], all: &mut Vec<Setting>, notes: &Notes) -> Result<(), ImportError> {
    let (key, values) = match words {
        [] => return Ok(()),
        [first, ..] if first.starts_with('#') => return Ok(()),
        [key, "=", values @ ..] if !values.is_empty() => (*key, values),
        [key, equals, ..] if *equals != "=" => {
            return Err(wrong(file, line, &format!("`{}` is not followed by ` = `", one_line(key))));
        }
        _ => {
            let why = "LoadGen ignores this line: it reads `KEY = VALUE` with a space on each side of `=`";
            notes.missing(&one_line(&words.join(" ")), why, line);
            return Ok(());
        }
    };
    notes.setting(key, line);
    let Some((model, scenario, name)) = parts(key) else {
        let why = "LoadGen reads only keys MODEL.SCENARIO.NAME and ignores this one";
        notes.missing(&one_line(&words.join(" ")), why, line);
        return Ok(());
    };
    if let Some(bad) = values.iter().find(|value| number(value).is_none()) {
        return Err(wrong(file, line, &format!("`{}` is not a number", one_line(bad))));
    }
    // If a line or a file sets several values, the last one wins.
    let text = values.last().map_or("", |value| value);
    let setting = Setting {
        model: model.to_owned(),
        scenario: scenario.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
        value: number(text).unwrap_or_default(),
        line,
    };
    if let Some(at) = all.iter().position(|known| known.is_of(model, scenario, name)) {
        let earlier = all.remove(at);
        let what = format!("{} = {}", earlier.key(), earlier.text);
        notes.missing(&what, &format!("line {line} sets it again, and the last value wins"), earlier.line);
    }
    all.push(setting);
    Ok(())
}

fn wrong(file: &str, line: usize, what: &str) -> ImportError {
    ImportError::shape(format!("{file}:{line}"), what, "write MODEL.SCENARIO.NAME = NUMBER")
}

/// Returns the model, the scenario and the name in a key; `None` if the key has another form.
fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let (before, name) = key.rsplit_once('.')?;
    let (model, scenario) = before.rsplit_once('.')?;
    (!model.is_empty() && !scenario.is_empty() && !name.is_empty()).then_some((model, scenario, name))
}

/// Parses a number in the same way as C's `strtoul` and `strtod`, for the forms that occur in configurations.
fn number(text: &str) -> Option<f64> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match hex {
        Some(digits) => u64::from_str_radix(digits, 16).ok()? as f64,
        None => text.parse::<f64>().ok()?,
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::secrets::Secrets;

    #[test]
    fn lines_are_read_as_loadgen_reads_them() {
        let text = "# all times in ms\n*.Server.target_qps = 0.5\n\n  m.*.min_duration = 0x10 20\n*.Server.mode=2\n*.Server.target_qps = 2\n";
        let secrets = Secrets::default();
        let notes = Notes::new(&secrets);
        let all = read("user.conf", text, &notes).unwrap();
        let seen: Vec<(String, f64, usize)> = all.iter().map(|one| (one.key(), one.value, one.line)).collect();
        assert_eq!(seen, [("m.*.min_duration".to_owned(), 20.0, 4), ("*.Server.target_qps".to_owned(), 2.0, 6)]);
        assert_eq!(notes.listed.borrow().iter().map(|one| one.lines[0]).collect::<Vec<_>>(), [5, 2]);
        let error = read("user.conf", "\n*.Server.target_qps = fast\n", &notes).unwrap_err().to_string();
        assert!(error.starts_with("user.conf:2: `fast` is not a number"), "{error}");
    }

    #[test]
    fn its_look_tells_it() {
        assert!(is_conf("# x\n*.Offline.min_duration = 600000\n"));
        assert!(!is_conf("vllm bench serve --model a.b.c = 3\n") && !is_conf("a.b.c = x\n") && !is_conf("a.b.c = 3\n"));
    }
}
