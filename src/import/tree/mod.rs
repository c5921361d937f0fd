//! A configuration file in YAML, JSON or TOML as a tree of values with their lines. Values that were read
//! are marked, and unread values are listed at the end, so that no field is lost silently.

mod at;
mod build;

use std::cell::Cell;

use serde_json::Value as Json;

use super::error::ImportError;
use super::json::json;
use super::notes::Notes;
use super::options::Fate;
use super::text::one_line;
use crate::plan::foreign::{self, Placed, Value};

pub(super) use at::At;

/// A limit that is higher than the number of values in any configuration.
const MOST_VALUES: usize = 200_000;

/// A value of the file.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// The path of the value: `load.stages[0].rate`; empty for the file itself.
    path: String,
    /// The line, from 1; 0 if unknown.
    line: usize,
    value: Kind,
    /// Whether the value was read; meaningless for tables and lists.
    taken: Cell<bool>,
}

/// The kind of a value.
#[derive(Debug, Clone)]
enum Kind {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Item>),
    Table(Vec<(String, Item)>),
}

/// How a field that the reader does not read is handled. The path has no indices, and `*` in it stands for
/// any single key. Fields below the path are handled in the same way.
pub(super) type Known = (&'static str, Fate);

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Json,
    Yaml,
    Toml,
    /// The format is detected: a table in YAML, or something else.
    Unknown,
    Script,
}

fn writing(name: &str, text: &str) -> Writing {
    let ending = name.rsplit('/').next().unwrap_or_default().rsplit_once('.').map(|(_, ending)| ending);
    if is_condition(text) {
        return Writing::Script;
    }
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) && ending != Some("toml") {
        return Writing::Json;
    }
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("yaml" | "yml") => Writing::Yaml,
        Some("toml") => Writing::Toml,
        Some("sh" | "bash" | "conf") => Writing::Script,
        _ if name.contains(".yaml.") || name.contains(".yml.") => Writing::Yaml,
        _ => Writing::Unknown,
    }
}

/// Whether a text begins with a shell's condition, `[ -n "$X" ] && …`, rather than a JSON list.
fn is_condition(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let inside = text.strip_prefix("[[ ").or_else(|| text.strip_prefix("[ ")).map(str::trim_start);
    inside.is_some_and(|inside| {
        let is_test = inside.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        is_test || text.starts_with("[[ ") || ["!", "$", "\"$", "'$"].iter().any(|begin| inside.starts_with(begin))
    })
}

/// Returns the tree of a file; `None` if the file contains commands rather than a table or a list.
pub(super) fn parse(name: &str, text: &str) -> Result<Option<Item>, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let how = writing(name, text);
    let format = if how == Writing::Toml { crate::plan::Format::Toml } else { crate::plan::Format::Yaml };
    let of_node = |node: &Placed| Item::of_node(node, String::new());
    match how {
        Writing::Script => Ok(None),
        Writing::Json => {
            let value = json(name, text)?;
            // JSON is also YAML, and the YAML parser reports lines. Text that this parser rejects is read
            // without lines.
            let node = foreign::tree(text, format, MOST_VALUES).ok();
            Ok(Some(node.map_or_else(|| Item::of_json(&value, String::new()), |node| of_node(&node))))
        }
        Writing::Unknown => {
            let node = foreign::tree(text, format, MOST_VALUES).ok();
            Ok(node.filter(|node| matches!(node.value, Value::Table(_))).map(|node| of_node(&node)))
        }
        Writing::Yaml | Writing::Toml => {
            let node = foreign::tree(text, format, MOST_VALUES).map_err(|wrong| {
                let place = format!("{name}:{}", wrong.line);
                ImportError::shape(place, one_line(&wrong.message), one_line(&wrong.remedy))
            })?;
            Ok(Some(of_node(&node)))
        }
    }
}

impl Item {
    fn new(path: String, line: usize, value: Kind) -> Item {
        Item { path, line, value, taken: Cell::new(false) }
    }

    fn of_node(node: &Placed, path: String) -> Item {
        let value = match &node.value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::Text(text) => Kind::Text(text.clone()),
            Value::List(items) => {
                let one = |(at, item)| Item::of_node(item, format!("{path}[{at}]"));
                Kind::List(items.iter().enumerate().map(one).collect())
            }
            Value::Table(entries) => {
                let one = |(key, node): &(String, Placed)| (key.clone(), Item::of_node(node, joined(&path, key)));
                Kind::Table(entries.iter().map(one).collect())
            }
        };
        Item::new(path, node.line, value)
    }

    /// Returns a tree without lines.
    pub(super) fn of_json(value: &Json, path: String) -> Item {
        let kind = match value {
            Json::Null => Kind::Null,
            Json::Bool(value) => Kind::Bool(*value),
            Json::Number(number) => Kind::Number(number.to_string()),
            Json::String(text) => Kind::Text(text.clone()),
            Json::Array(items) => {
                let one = |(at, item)| Item::of_json(item, format!("{path}[{at}]"));
                Kind::List(items.iter().enumerate().map(one).collect())
            }
            Json::Object(entries) => {
                let one = |(key, value): (&String, &Json)| (key.clone(), Item::of_json(value, joined(&path, key)));
                Kind::Table(entries.iter().map(one).collect())
            }
        };
        Item::new(path, 0, kind)
    }

    /// Returns the value as JSON.
    pub(super) fn json(&self) -> Json {
        match &self.value {
            Kind::Null => Json::Null,
            Kind::Bool(value) => (*value).into(),
            Kind::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
            Kind::Text(text) => text.as_str().into(),
            Kind::List(items) => items.iter().map(Item::json).collect(),
            Kind::Table(entries) => {
                Json::Object(entries.iter().map(|(key, item)| (key.clone(), item.json())).collect())
            }
        }
    }

    /// Returns the value of a table's entry for format detection, without marking it as read.
    pub(super) fn peek(&self, key: &str) -> Option<&Item> {
        match &self.value {
            Kind::Table(entries) => entries.iter().find(|(known, _)| known == key).map(|(_, item)| item),
            _ => None,
        }
    }

    /// Whether a table has all these keys.
    pub(super) fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.peek(key).is_some())
    }

    /// Returns the keys of a table.
    pub(super) fn keys(&self) -> Vec<&str> {
        match &self.value {
            Kind::Table(entries) => entries.iter().map(|(key, _)| key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the entries of a list, or of a table without its keys.
    pub(super) fn children(&self) -> Vec<&Item> {
        match &self.value {
            Kind::List(items) => items.iter().collect(),
            Kind::Table(entries) => entries.iter().map(|(_, item)| item).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns a text value, for format detection.
    pub(super) fn word(&self) -> Option<&str> {
        match &self.value {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the value is a switch that is on, for format detection.
    pub(super) fn is_true(&self) -> bool {
        matches!(self.value, Kind::Bool(true))
    }

    /// Whether the value is a table.
    pub(super) fn is_table(&self) -> bool {
        matches!(self.value, Kind::Table(_))
    }

    /// Whether the value is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.value, Kind::List(_))
    }

    /// Marks everything in the value as read.
    pub(super) fn take(&self) {
        self.leaves(&mut |leaf| leaf.taken.set(true));
    }

    /// Counts every value as a setting of the source, and collects secrets.
    pub(super) fn enter(&self, notes: &Notes) {
        notes.secrets.add_json(&self.json());
        self.leaves(&mut |leaf| notes.setting(&leaf.path, leaf.line));
    }

    /// Returns the value for reading.
    pub(super) fn at<'a>(&'a self, notes: &'a Notes<'a>) -> At<'a> {
        At { item: self, notes }
    }

    /// Lists the unread values, either with their reason in `known`, or as unknown.
    pub(super) fn list_rest(&self, known: &[Known], notes: &Notes) {
        let at = At { item: self, notes };
        let fate = known.iter().find(|(pattern, _)| matches(pattern, &self.path)).map(|(_, fate)| *fate);
        let is_untouched = self.is_untouched();
        match (&self.value, fate) {
            _ if self.is_taken() => {}
            (_, Some(Fate::Needless(why))) => at.rest(|one| one.needless(why)),
            (_, Some(Fate::Lost(why))) => at.rest(|one| one.missing(why)),
            (_, Some(Fate::Read)) => at.rest(|one| one.needless("it has no effect with the other fields")),
            // A table that is entirely unknown gets one sentence, unless a part of it is known.
            (_, None) if is_untouched && !self.path.is_empty() && !self.is_known_inside(known) => {
                at.missing("unknown field");
            }
            (Kind::List(_) | Kind::Table(_), None) => {
                self.children().iter().for_each(|child| child.list_rest(known, notes));
            }
            (_, None) => at.missing("unknown field"),
        }
    }

    fn is_known_inside(&self, known: &[Known]) -> bool {
        self.children()
            .iter()
            .any(|child| known.iter().any(|(pattern, _)| matches(pattern, &child.path)) || child.is_known_inside(known))
    }

    /// Visits every value except nonempty tables and lists. A null does not set anything.
    fn leaves<'a>(&'a self, see: &mut dyn FnMut(&'a Item)) {
        match &self.value {
            Kind::Null => {}
            Kind::List(items) if !items.is_empty() => items.iter().for_each(|item| item.leaves(see)),
            Kind::Table(entries) if !entries.is_empty() => entries.iter().for_each(|(_, item)| item.leaves(see)),
            _ => see(self),
        }
    }

    fn all(&self, test: impl Fn(&Item) -> bool) -> bool {
        let mut holds = true;
        self.leaves(&mut |leaf| holds &= test(leaf));
        holds
    }

    /// Whether everything in the value was read.
    pub(crate) fn is_taken(&self) -> bool {
        self.all(|leaf| leaf.taken.get())
    }

    /// Whether nothing in the value was read.
    fn is_untouched(&self) -> bool {
        self.all(|leaf| !leaf.taken.get())
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Whether a path matches a pattern, which has no indices and in which `*` stands for any single
/// key.
fn matches(pattern: &str, path: &str) -> bool {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let (mut wanted, mut found) = (pattern.split('.'), plain.split('.'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::secrets::Secrets;

    #[test]
    fn what_nobody_takes_is_listed_with_its_line() {
        let text = "load:\n  rate: 5\n  stages: [{ rate: 1 }, { rate: 2, odd: x }]\nserver:\n  a: 1\n  b: { c: 2 }\nskip: no\n";
        let root = parse("x.yaml", text).unwrap().unwrap();
        let secrets = Secrets::default();
        let notes = Notes::new(&secrets);
        root.enter(&notes);
        let at = root.at(&notes);
        assert_eq!(at.get("load").unwrap().get("rate").unwrap().whole().unwrap().value, 5);
        let stages = at.get("load").unwrap().get("stages").unwrap();
        let rates: Vec<String> =
            stages.list().iter().map(|stage| stage.get("rate").unwrap().text().unwrap().origin).collect();
        assert_eq!(rates, ["load.stages[0].rate, line 3", "load.stages[1].rate, line 3"]);
        root.list_rest(&[("skip", Fate::Needless("it is off"))], &notes);
        let said: Vec<String> = notes.listed.borrow().iter().map(crate::import::write::sentence).collect();
        assert_eq!(
            said,
            [
                "load.stages[1].odd = \"x\" (line 3): unknown field",
                "server = {\"a\":1,\"b\":{\"c\":2}} (line 4): unknown field",
                "skip = \"no\" (line 7): it is off"
            ]
        );
        assert_eq!((notes.counts().mapped, notes.counts().missing), (4, 3));
    }

    #[test]
    fn the_three_forms_are_one_tree() {
        let json = "{\n\"a\": {\"b\": [1, 2.5, null, true]},\n\"c\": \"x\"}";
        let yaml = "a:\n  b: [1, 2.5, null, true]\nc: x\n";
        let toml = "c = 'x'\n[a]\nb = [1, 2.5]\n";
        let tree = |name: &str, text: &str| parse(name, text).unwrap().unwrap();
        assert_eq!(tree("x.json", json).json(), tree("x.yaml", yaml).json());
        assert_eq!(tree("-", yaml).peek("c").unwrap().line, 3);
        assert_eq!(tree("x.json", json).peek("c").unwrap().line, 3);
        assert_eq!(tree("x.toml", toml).peek("c").unwrap().word(), Some("x"));
        assert!(parse("x.sh", "a: b\n").unwrap().is_none() && parse("-", "FOO=1\nrun --x 1\n").unwrap().is_none());
        for script in ["[ -n \"$X\" ] && run --x 1\n", "[[ $X == y ]] && run\n", "\u{feff}[ ! -f x ] && run\n"] {
            assert!(parse("-", script).unwrap().is_none(), "{script}");
        }
        assert!(parse("-", "[ -1, 2 ]").unwrap().is_some());
        let wrong = parse("x.yaml", "a: [1\nb: 2\n").unwrap_err().to_string();
        assert!(wrong.starts_with("x.yaml:") && wrong.contains("not YAML"), "{wrong}");
    }
}
