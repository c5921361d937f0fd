//! Changes every field of every public example, and then random parts. Checks that no setting is lost
//! silently, nothing panics, no secret is shown, and the result is a plan or an error.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fixtures::{Fixture, fixtures};
use crate::import::{ImportError, Imported};
use crate::plan::Format;
use crate::plan::foreign::{self, Placed};

/// A key that must never be shown.
const SECRET: &str = "sk-live-Zz9-0123456789abcdefgh";
/// Secrets that are too short to be recognized by their form. Only a name or an address next to them
/// identifies them.
const SHORT: [&str; 4] = ["q7w", "Zq9", "xk4z", "qzx"];
/// Texts in which a name or an address marks the placeholder `KEY` as a secret. Each text becomes a whole
/// value in a file, or a word of a command.
const HOLDING: [&str; 10] = [
    "http://bob:KEY@h:1/v1",
    "http://h:1/v1?key=KEY&x=KEY",
    "https://KEY@h/v1#KEY",
    "owner=me,token=KEY",
    "a=1;password=KEY",
    "{\"x\":{\"auth_token\":\"KEY\"}}",
    "[{\"api_key\":[\"KEY\"]}]",
    "Authorization: Bearer KEY",
    "vllm serve m --api-key KEY",
    "curl -H X-Api-Key:KEY http://h",
];
/// Number of random inputs per tool in a test run; `SWEEPLINE_IMPORT_MUTATIONS` overrides it.
const MUTATIONS: u64 = 60;
/// Of this many fields, one is changed in a test run; with `SWEEPLINE_WHOLE=1`, as in the measured suite, all
/// are.
const SAMPLE: usize = 12;
/// Number of short secrets per example in a test run; with `SWEEPLINE_WHOLE=1`, it is a quarter of the random inputs.
const SHORT_SECRETS: u64 = 5;

/// Whether every sample is drawn, as in the measured suite.
fn is_whole() -> bool {
    std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1")
}

/// Selects the fields of all examples that are changed in a test run.
struct Sample {
    every: usize,
    seen: usize,
}

impl Sample {
    fn new() -> Sample {
        Sample { every: if is_whole() { 1 } else { SAMPLE }, seen: 0 }
    }

    /// Whether the next field is one of them.
    fn takes(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.every)
    }
}

/// Returns the result of an import as text, in which every change is visible.
fn outcome(made: &Result<Imported, ImportError>) -> String {
    match made {
        Ok(made) => format!("{}\n{:?}\n{:?}\n{:?}", made.plan, made.missing, made.differs, made.needless),
        Err(error) => error.to_string(),
    }
}

/// Returns the values of a file in YAML, JSON or TOML.
fn values(fixture: &Fixture) -> Option<Value> {
    let name = fixture.path.to_string_lossy();
    let is_toml = name.ends_with(".toml");
    let is_tree = is_toml || [".yaml", ".yml", ".json"].iter().any(|ending| name.contains(ending));
    let format = if is_toml { Format::Toml } else { Format::Yaml };
    is_tree.then(|| {
        json(&foreign::tree(&fixture.text, format, 100_000).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}")))
    })
}

fn json(placed: &Placed) -> Value {
    match &placed.value {
        foreign::Value::Null => Value::Null,
        foreign::Value::Bool(value) => (*value).into(),
        foreign::Value::Number(digits) => serde_json::from_str(digits).unwrap(),
        foreign::Value::Text(text) => text.as_str().into(),
        foreign::Value::List(items) => items.iter().map(json).collect(),
        foreign::Value::Table(entries) => {
            Value::Object(entries.iter().map(|(key, placed)| (key.clone(), json(placed))).collect())
        }
    }
}

/// Adds the pointers of all values to `found`, except for nulls and for tables and lists that are not empty.
fn leaves(value: &Value, at: String, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            entries.iter().for_each(|(key, value)| leaves(value, format!("{at}/{}", escaped(key)), found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(number, value)| leaves(value, format!("{at}/{number}"), found));
        }
        Value::Null => {}
        _ => found.push(at),
    }
}

/// Returns another value of the same kind.
fn other(value: &Value) -> Value {
    match value {
        Value::Bool(value) => (!value).into(),
        Value::Number(number) => number
            .as_u64()
            .map_or_else(|| (number.as_f64().unwrap_or(0.0) * 2.0 + 0.5).into(), |whole| (whole + 1).into()),
        Value::String(text) => match text.parse::<u64>() {
            Ok(whole) => (whole + 1).to_string().into(),
            Err(_) => format!("{text}x").into(),
        },
        _ => Value::from("other"),
    }
}

/// Removes a value from its table or list.
fn without(root: &Value, at: &str) -> Value {
    let mut root = root.clone();
    let Some((parent, key)) = at.rsplit_once('/') else { return root };
    match root.pointer_mut(parent) {
        Some(Value::Object(entries)) => drop(entries.shift_remove(&key.replace("~1", "/").replace("~0", "~"))),
        Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
        _ => {}
    }
    root
}

/// Returns the variants of a script with one changed word, each with the original word.
fn changed_words(text: &str) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    let mut is_value = false;
    for (at, word) in words(text) {
        let with = |new: String| format!("{}{new}{}", &text[..at], &text[at + word.len()..]);
        let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._/-:@,".contains(c));
        if let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty() && !word.contains('=')) {
            changed.push((word.to_owned(), with(format!("--zz-{option}"))));
            is_value = true;
            continue;
        }
        if is_value && is_plain {
            let new = word.parse::<u64>().map_or_else(|_| format!("{word}x"), |number| (number + 1).to_string());
            changed.push((word.to_owned(), with(new)));
        }
        is_value = false;
    }
    changed
}

/// Returns the variants of a file of `KEY = NUMBER` lines with one number changed or removed, each with the
/// key.
fn changed_settings(text: &str) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((key, number)) =
            line.split_once(" = ").and_then(|(key, value)| Some((key, value.parse::<f64>().ok()?)))
        else {
            continue;
        };
        changed.push((key.to_owned(), text.replacen(line, &format!("{key} = {}", number + 1.0), 1)));
        // The line is kept, so that the other line numbers do not change.
        changed.push((format!("{key} is removed"), text.replacen(line, "", 1)));
    }
    changed
}

/// Returns the words of a text, separated by blanks and without comments, each with its position.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim_start().starts_with('#') {
            let mut at = 0;
            for word in line.split([' ', '\t', '\n', '\r']) {
                if !word.is_empty() {
                    found.push((start + at, word));
                }
                at += word.len() + 1;
            }
        }
        start += line.len();
    }
    found
}

#[test]
fn every_field_of_every_example_is_in_the_plan_or_in_the_list() {
    let mut silent = Vec::new();
    let mut sample = Sample::new();
    for fixture in fixtures() {
        match values(&fixture) {
            Some(root) => {
                // Line numbers are omitted, so that only the change itself is visible.
                let name = format!("{}.json", fixture.path.to_string_lossy());
                let made = |root: &Value| outcome(&fixture.import_as(&root.to_string(), &name));
                let before = made(&root);
                let mut all = Vec::new();
                leaves(&root, String::new(), &mut all);
                for at in all {
                    if !sample.takes() {
                        continue;
                    }
                    let mut changed = root.clone();
                    let place = changed.pointer_mut(&at).unwrap();
                    *place = other(place);
                    if made(&changed) == before {
                        silent.push(format!("{}: {at} may be anything", fixture.name()));
                    }
                    if made(&without(&root, &at)) == before {
                        silent.push(format!("{}: {at} may be removed", fixture.name()));
                    }
                }
            }
            None => {
                let before = outcome(&fixture.import(&fixture.text));
                for (word, text) in changed_words(&fixture.text).into_iter().chain(changed_settings(&fixture.text)) {
                    if sample.takes() && outcome(&fixture.import(&text)) == before {
                        silent.push(format!("{}: {word} may be anything", fixture.name()));
                    }
                }
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// In each tool's examples, at least 95 % of all settings are mapped. Settings that sweepline applies anyway
/// count as mapped, because nothing is lost.
#[test]
fn of_each_tool_nearly_all_settings_are_mapped() {
    let mut tools: BTreeMap<String, (usize, usize, Vec<String>)> = BTreeMap::new();
    for fixture in fixtures() {
        let made = fixture.import(&fixture.text).unwrap_or_else(|error| panic!("{}: {error}", fixture.name()));
        let (mapped, missing, listed) = tools.entry(fixture.tool.clone()).or_default();
        *mapped += made.counts.mapped;
        *missing += made.counts.missing;
        listed.extend(made.missing);
    }
    for (tool, (mapped, missing, listed)) in tools {
        println!("{tool}: {mapped} settings mapped, {missing} not");
        assert!(mapped >= 19 * missing, "{tool}: {mapped} mapped, {missing} not:\n{}", listed.join("\n"));
    }
}

/// Pseudorandom numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides.max(1) as u64) as usize
    }
}

/// Returns a random value that is difficult for readers.
fn odd(dice: &mut Dice) -> Value {
    let all = [
        "null",
        "true",
        "-1",
        "0",
        "1e300",
        "0.0000001",
        "18446744073709551615",
        "\"\"",
        "\"{{ x }}\"",
        "\"{% x\"",
        "[]",
        "{}",
        "[[1]]",
        "[null]",
        "{\"a\": {\"b\": 1}}",
        "\"inf\"",
        "\"nan\"",
        "\"a b\\nc\"",
        "\"\\u0000\"",
        "\"http://h:1/v1\"",
        "\"é: #\"",
        "[1, \"x\"]",
        "\"1,2,4\"",
        "\"none\"",
        "\"on\"",
    ];
    serde_json::from_str(all[dice.roll(all.len())]).unwrap()
}

fn mutated(root: &Value, dice: &mut Dice) -> String {
    let mut root = root.clone();
    for _ in 0..=dice.roll(4) {
        let mut all = Vec::new();
        leaves(&root, String::new(), &mut all);
        // An empty pointer means that the whole file is a single value, which contains nothing to change.
        all.retain(|at| !at.is_empty());
        if all.is_empty() {
            break;
        }
        let mut at = all[dice.roll(all.len())].clone();
        // The root itself is not changed.
        if at.is_empty() {
            break;
        }
        for _ in 0..dice.roll(3) {
            at = at.rsplit_once('/').map(|(parent, _)| parent.to_owned()).filter(|at| !at.is_empty()).unwrap_or(at);
        }
        match dice.roll(5) {
            0 => root = without(&root, &at),
            1 => {
                let place = root.pointer_mut(&at).unwrap();
                *place = Value::Array(vec![place.clone(), odd(dice)]);
            }
            2 => {
                let (parent, _) = at.rsplit_once('/').unwrap_or_default();
                let key = ["api_key", "headers", "token", "password", "zz", "Authorization"][dice.roll(6)];
                let value = if key == "headers" { serde_json::json!({ "X-Odd": SECRET }) } else { SECRET.into() };
                let value = if key == "zz" { odd(dice) } else { value };
                if let Some(Value::Object(entries)) = root.pointer_mut(parent) {
                    entries.insert(key.to_owned(), value);
                }
            }
            _ => *root.pointer_mut(&at).unwrap() = odd(dice),
        }
    }
    root.to_string()
}

fn mutated_text(text: &str, dice: &mut Dice) -> String {
    let pool = [
        "--",
        "=",
        "''",
        "-1",
        "0",
        "1e300",
        "inf",
        "nan",
        "{}",
        "'{\"a\": 1}'",
        "{{x",
        "$A",
        "\"",
        "\n",
        "\\\n",
        ";",
        "--zz",
        "é",
        "1,2,4",
        "[1]",
        "none",
        "--api-key",
        "http://h",
        "\u{e000}",
        "[",
        ":",
        "#",
    ];
    let mut text = text.to_owned();
    for _ in 0..=dice.roll(4) {
        let all = words(&text);
        if all.is_empty() {
            break;
        }
        let (at, word) = all[dice.roll(all.len())];
        let end = at + word.len();
        text = match dice.roll(5) {
            0 => format!("{}{}", &text[..at], &text[end..]),
            1 => format!("{} {word}{}", &text[..end], &text[end..]),
            2 => format!("{}--api-key {SECRET} {}", &text[..at], &text[at..]),
            3 => format!("{}{} {}", &text[..at], pool[dice.roll(pool.len())], &text[at..]),
            _ => format!("{}{}{}", &text[..at], pool[dice.roll(pool.len())], &text[end..]),
        };
    }
    text
}

/// Returns the text of an example with a short secret, in a place where a name or an address identifies it.
fn with_short_secret(fixture: &Fixture, root: Option<&Value>, secret: &str, dice: &mut Dice) -> Option<String> {
    let holding = HOLDING[dice.roll(HOLDING.len())].replace("KEY", secret);
    if let Some(root) = root {
        let mut root = root.clone();
        let mut all = Vec::new();
        leaves(&root, String::new(), &mut all);
        let at = all.get(dice.roll(all.len()))?.clone();
        match (dice.roll(3), at.rsplit_once('/').and_then(|(parent, _)| root.pointer_mut(parent))) {
            (0, Some(Value::Object(entries))) => {
                let key = ["api_key", "token", "password", "auth", "x-secret"][dice.roll(5)];
                entries.insert(key.to_owned(), secret.into());
            }
            (1, Some(Value::Object(entries))) => {
                entries.insert("zz".to_owned(), serde_json::json!({ "deep": [{ "client_secret": secret }] }));
            }
            _ => *root.pointer_mut(&at).unwrap() = holding.into(),
        }
        return Some(root.to_string());
    }
    // Replaces or extends the word after an option. The secret is quoted so that a shell reads it as one
    // word.
    let all = words(&fixture.text);
    let options: Vec<usize> = (1..all.len()).filter(|at| all[at - 1].1.starts_with("--")).collect();
    let (at, word) = all[*options.get(dice.roll(options.len()))?];
    let quoted = format!("'{holding}'");
    let new = [quoted.as_str(), &format!("{word} --api-key {secret}"), &format!("{word} --metadata {quoted}")]
        [dice.roll(3)]
    .to_owned();
    Some(format!("{}{new}{}", &fixture.text[..at], &fixture.text[at + word.len()..]))
}

#[test]
fn a_short_secret_in_a_place_that_tells_it_is_in_no_output() {
    let number = std::env::var("SWEEPLINE_IMPORT_MUTATIONS").ok().map_or(MUTATIONS, |text| text.parse().unwrap());
    let number = if is_whole() { number.div_ceil(4) } else { SHORT_SECRETS };
    let (mut plans, mut wrong) = (0, Vec::new());
    for fixture in fixtures() {
        let tree = values(&fixture);
        for seed in 0..number {
            let mut dice = Dice(seed);
            let secret = SHORT[dice.roll(SHORT.len())];
            let Some(text) = with_short_secret(&fixture, tree.as_ref(), secret, &mut dice) else { continue };
            let name = fixture.path.to_string_lossy();
            let made = match &tree {
                Some(_) => fixture.import_as(&text, &format!("{name}.json")),
                None => fixture.import(&text),
            };
            if let Err(ImportError::Plan { errors, .. }) = &made {
                panic!("{}, seed {seed}, an invalid plan: {}\n{text}", fixture.name(), errors.render(false));
            }
            plans += u64::from(made.is_ok());
            let said = outcome(&made);
            if said.contains(secret) {
                wrong.push(format!("{}, seed {seed}, {secret}: {said}\n{text}", fixture.name()));
            }
            let values = made.iter().flat_map(|made| made.plan.lines()).filter_map(|line| line.split("  # ").next());
            let mut sent = values.filter(|line| !line.starts_with('#') && !line.starts_with("notes:"));
            if sent.any(|line| line.contains("***")) {
                wrong.push(format!("{}, seed {seed}, sent: {said}\n{text}", fixture.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(plans > 100, "too few of them are plans to show anything: {plans}");
}

#[test]
fn whatever_an_example_becomes_it_is_a_plan_or_an_error_and_keeps_its_secrets() {
    let number = std::env::var("SWEEPLINE_IMPORT_MUTATIONS").ok().map_or(MUTATIONS, |text| text.parse().unwrap());
    let mut tools: BTreeMap<String, Vec<Fixture>> = BTreeMap::new();
    fixtures().into_iter().for_each(|fixture| tools.entry(fixture.tool.clone()).or_default().push(fixture));
    for (tool, all) in tools {
        let trees: Vec<Option<Value>> = all.iter().map(values).collect();
        let mut plans = 0;
        for seed in 0..number {
            let mut dice = Dice(seed);
            let at = dice.roll(all.len());
            let (fixture, name) = (&all[at], format!("{}.json", all[at].path.to_string_lossy()));
            let (text, made) = match &trees[at] {
                Some(root) => {
                    let text = mutated(root, &mut dice);
                    let made = fixture.import_as(&text, &name);
                    (text, made)
                }
                None => {
                    let text = mutated_text(&fixture.text, &mut dice);
                    let made = fixture.import(&text);
                    (text, made)
                }
            };
            if let Err(ImportError::Plan { errors, .. }) = &made {
                panic!("{tool}, seed {seed}, an invalid plan: {}\n{text}", errors.render(false));
            }
            plans += u64::from(made.is_ok());
            assert!(!outcome(&made).contains(SECRET), "{tool}, seed {seed}: {}\n{text}", outcome(&made));
        }
        println!("{tool}: {number} changed inputs, {plans} of them plans");
        assert!(plans * 20 > number, "{tool}: too few of them are plans to show anything: {plans}");
    }
}
