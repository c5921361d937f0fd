//! Converts the words of `aiperf profile …` to the tree of a configuration file.

use indexmap::IndexMap;
use serde_json::Value;

use super::leaves::{Ledger, Tree};
use super::options::{Arity, Known, OPTIONS, Target};
use crate::import::error::ImportError;
use crate::import::importer::{Asked, Context};
use crate::import::secrets::{names_headers, shown_headers};
use crate::import::shell::{marks, shown};
use crate::import::tree;

/// Short options and their long names.
const SHORT: [(&str, &str); 9] = [
    ("-m", "--model"),
    ("-u", "--url"),
    ("-H", "--header"),
    ("-b", "--batch-size"),
    ("-f", "--config"),
    ("-v", "--verbose"),
    ("-vv", "--extra-verbose"),
    ("-g", "--goodput"),
    ("-o", "--output-artifact-dir"),
];

/// Returns the words after `aiperf profile`; `None` if the command does not run it.
pub(super) fn aiperf(words: &[String]) -> Option<&[String]> {
    behind(words, "aiperf", &["profile"])
}

/// Returns the words after a program and one of its subcommands; `None` if the command does not run them.
pub(super) fn behind<'w>(words: &'w [String], program: &str, subcommands: &[&str]) -> Option<&'w [String]> {
    let file = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    if words.first().is_some_and(|word| ["echo", "printf", "pip", "alias", "pkill"].contains(&file(word).as_str())) {
        return None;
    }
    let at = words.iter().position(|word| file(word) == program)?;
    let next = words.get(at + 1)?;
    subcommands.contains(&next.as_str()).then(|| &words[at + 2..])
}

/// An option of the command.
pub(super) struct Given {
    pub target: Option<Target>,
    pub values: Vec<String>,
    /// The option with its values in displayable form, without secrets.
    pub words: String,
}

/// Returns the options among the words. Other words are listed in the notes.
pub(super) fn given(words: &[String], line: usize, known: &'static [Known], ledger: &Ledger) -> Vec<Given> {
    let mut all: Vec<Given> = Vec::new();
    let mut words = words.iter().peekable();
    let is_option = |word: &str| {
        let rest = word.strip_prefix('-').filter(|rest| !rest.is_empty());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    while let Some(word) = words.next() {
        let long = SHORT.iter().find(|(short, _)| *short == word.as_str()).map_or(word.as_str(), |(_, long)| long);
        let Some(option) = long.strip_prefix("--").filter(|option| !option.is_empty()) else {
            if word == "--" {
                continue;
            }
            // The word may be an API key after a mistyped option, so it is not shown.
            let what = if is_option(word) { shown(word) } else { "a word without an option".to_owned() };
            ledger.notes.missing(&ledger.notes.secrets.hide(&what), "unknown option", line);
            continue;
        };
        let (name, inline) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = name.replace('_', "-");
        let found = known.iter().find(|(names, ..)| names.contains(&name.as_str()));
        let arity = found.map_or(Arity::Many, |(_, arity, _)| *arity);
        let most = match arity {
            Arity::Flag => 0,
            Arity::One => 1,
            Arity::Many => usize::MAX,
        };
        let mut values: Vec<String> = inline.into_iter().map(str::to_owned).collect();
        while values.len() < most {
            let Some(value) = words.next_if(|word| !is_option(word)) else { break };
            values.push(value.clone());
        }
        let target = found.map(|(_, _, target)| *target);
        all.push(Given { target, words: told(&name, &values, ledger), values });
    }
    all
}

/// Returns an option with its values in displayable form, without secrets.
fn told(name: &str, values: &[String], ledger: &Ledger) -> String {
    let secrets = ledger.notes.secrets;
    let values = match names_headers(name) {
        true => shown_headers(values),
        false => values.iter().map(|value| secrets.shown(name, &shown(value))).collect::<Vec<_>>().join(" "),
    };
    format!("--{name} {values}").trim_end().to_owned()
}

/// Returns the tree of a command, with its options applied on top of the file that it names.
pub(super) fn tree(asked: &Asked, context: &Context, ledger: &Ledger) -> Result<Tree, ImportError> {
    let (config, words) = without_config(asked.words);
    let mut root = match config {
        Some(path) => of_file(&path, asked, context, ledger)?,
        None => Tree::Map(IndexMap::new()),
    };
    let all = given(&words, asked.command.line, OPTIONS, ledger);
    Builder { root: &mut root, ledger, line: asked.command.line }.build(all);
    kind(&mut root, ledger, asked.command.line);
    Ok(root)
}

/// Returns the file of `--config FILE`, if any, and the other words.
fn without_config(words: &[String]) -> (Option<String>, Vec<String>) {
    let at = words.iter().position(|word| ["-f", "--config"].contains(&word.as_str()) || word.starts_with("--config="));
    let Some(at) = at else { return (None, words.to_vec()) };
    let (inline, count) = match words[at].split_once('=') {
        Some((_, path)) => (Some(path.to_owned()), 1),
        None => (words.get(at + 1).cloned(), 2),
    };
    let rest = words[..at].iter().chain(words.get(at + count..).unwrap_or_default());
    (inline, rest.cloned().collect())
}

/// Returns the tree of the file that a command names, in the form to which the command's options are applied.
fn of_file(path: &str, asked: &Asked, context: &Context, ledger: &Ledger) -> Result<Tree, ImportError> {
    let text = (context.wishes.read)(path).map_err(|reason| ImportError::File {
        place: asked.place.clone(),
        path: path.to_owned(),
        reason,
    })?;
    let name = if path.ends_with(".yaml") || path.ends_with(".yml") { path.to_owned() } else { format!("{path}.yaml") };
    let Some(item) = tree::parse(&name, &text)? else {
        return Err(ImportError::shape(path, "this is not a YAML table", "use an AIPerf configuration"));
    };
    item.enter(context.notes);
    let mut root = ledger.tree(item.at(context.notes), "");
    super::shape::keys(&mut root);
    super::shape::envelope(&mut root);
    Ok(root)
}

/// Puts options at their places in the tree of a configuration file.
pub(super) struct Builder<'a, 'l> {
    pub root: &'a mut Tree,
    pub ledger: &'a Ledger<'l>,
    pub line: usize,
}

impl Builder<'_, '_> {
    /// Puts all options into the tree.
    pub(super) fn build(mut self, all: Vec<Given>) {
        for given in all {
            self.put(given);
        }
    }

    fn put(&mut self, given: Given) {
        let Given { target, values, words } = given;
        let notes = self.ledger.notes;
        let name = words.split(' ').next().unwrap_or_default().to_owned();
        notes.setting(&name, self.line);
        let Some(target) = target else { return notes.missing(&words, "unknown option", self.line) };
        let unset = values.iter().flat_map(|value| marks(value)).next().map(str::to_owned);
        let may_be_unset = matches!(target, Target::Path("endpoint.api_key") | Target::Pairs("endpoint.headers"));
        let is_needed = matches!(target, Target::Values("models" | "endpoint.urls"));
        if let Some(unset) = unset.filter(|_| !may_be_unset && !is_needed) {
            if matches!(target, Target::Needless(_) | Target::Lost(_)) {
                let why = format!("the source does not set `{unset}`");
                return notes.missing(&words, &why, self.line);
            }
            return notes.add_unset(&words, &unset, self.line);
        }
        let leaf = |value: Value| self.ledger.option(&words, value, self.line);
        match target {
            Target::Needless(why) => notes.needless(&words, why, self.line),
            Target::Lost(why) => notes.missing(&words, why, self.line),
            Target::On(path) => self.set(path, leaf(Value::Bool(true))),
            Target::Off(path) => self.set(path, leaf(Value::Bool(false))),
            Target::Values("server_metrics.urls" | "gpu_telemetry.urls") if values.is_empty() => {
                let path = if name == "--gpu-telemetry" { "gpu_telemetry.enabled" } else { "server_metrics.enabled" };
                self.set(path, leaf(Value::Bool(true)));
            }
            _ if values.is_empty() => notes.missing(&words, "it has no value", self.line),
            Target::Values(path) => {
                let each = values.iter().flat_map(|value| value.split(',')).filter(|value| !value.is_empty());
                let more: Vec<Tree> = each.map(|value| leaf(Value::from(value))).collect();
                self.extend(path, more);
            }
            Target::Pairs(path) => self.pairs(path, &values, &words),
            Target::Path(path @ "datasets.default.prompts.sequence_distribution") => {
                let tree = distribution(&values[0], &leaf).unwrap_or_else(|| leaf(Value::from(values[0].as_str())));
                self.set(path, tree);
            }
            Target::Swept(path) if values[0].contains(',') => {
                let each = values[0].split(',').filter(|value| !value.trim().is_empty());
                let list: Vec<Tree> = each.map(|value| leaf(super::env::scalar(value))).collect();
                self.sweep(path, list);
            }
            Target::Path(path) | Target::Swept(path) => self.set(path, leaf(Value::from(values[0].as_str()))),
        }
    }

    /// Parses `name:value` pairs, `name=value` pairs of headers, or JSON objects.
    fn pairs(&mut self, path: &str, values: &[String], words: &str) {
        let (notes, line) = (self.ledger.notes, self.line);
        let name = words.split(' ').next().unwrap_or_default();
        if path == "endpoint.headers" {
            for (header, value) in crate::import::secrets::headers(values) {
                if header.is_empty() {
                    notes.missing(&format!("{name} ***"), "expected Name:Value", line);
                    continue;
                }
                let leaf = self.ledger.option(&format!("{name} {header}"), Value::from(value), line);
                self.set_key(path, &header, leaf);
            }
            return;
        }
        for pair in values.iter().flat_map(|value| parts(value)) {
            if let Ok(Value::Object(object)) = serde_json::from_str(pair) {
                notes.secrets.add_json(&Value::Object(object.clone()));
                for (key, value) in object {
                    let shown = notes.secrets.shown(&key, &value.to_string());
                    let leaf = self.ledger.option(&format!("{name} {key}:{shown}"), value, line);
                    self.set_key(path, &key, leaf);
                }
                continue;
            }
            match pair.split_once(':') {
                Some((key, value)) if !key.is_empty() => {
                    notes.secrets.add_named(key, value);
                    let shown = notes.secrets.shown(key, &shown(value));
                    let read = serde_json::from_str::<Value>(value).unwrap_or_else(|_| super::env::scalar(value));
                    let leaf = self.ledger.option(&format!("{name} {key}:{shown}"), read, line);
                    self.set_key(path, key, leaf);
                }
                // genai-perf treats a bare name as true.
                _ if path == "endpoint.extra" && !pair.is_empty() => {
                    let leaf = self.ledger.option(&format!("{name} {}", shown(pair)), Value::Bool(true), line);
                    self.set_key(path, pair, leaf);
                }
                _ => {
                    notes.missing(&format!("{name} {}", notes.secrets.hide(&shown(pair))), "expected name:value", line)
                }
            }
        }
    }

    fn table(&mut self, path: &str) -> Option<&mut IndexMap<String, Tree>> {
        let mut at = &mut *self.root;
        let before = if path.starts_with('/') { None } else { Some("benchmark") };
        let steps = path.trim_start_matches('/').split('.').filter(|step| !step.is_empty());
        for step in before.into_iter().chain(steps) {
            if !matches!(at, Tree::Map(_)) {
                *at = Tree::Map(IndexMap::new());
            }
            let Tree::Map(entries) = at else { return None };
            // Options apply to a file's only data set and only phase, whatever these are named.
            let step = super::variations::alias(entries, step);
            at = entries.entry(step).or_insert_with(|| Tree::Map(IndexMap::new()));
        }
        if !matches!(at, Tree::Map(_)) {
            *at = Tree::Map(IndexMap::new());
        }
        match at {
            Tree::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn set_key(&mut self, path: &str, key: &str, tree: Tree) {
        let ledger = self.ledger;
        if let Some(table) = self.table(path)
            && let Some(old) = table.insert(key.to_owned(), tree)
        {
            ledger.replaced(&old);
        }
    }

    fn set(&mut self, path: &str, tree: Tree) {
        let (parent, key) = match path.rsplit_once('.') {
            Some((parent, key)) => (parent, key),
            None if path.starts_with('/') => ("/", &path[1..]),
            None => ("", path),
        };
        if parent == "endpoint" && key == "urls" || parent.is_empty() && key == "models" {
            let ledger = self.ledger;
            let other = if key == "urls" { "url" } else { "model" };
            if let Some(old) = self.table(parent).and_then(|table| table.shift_remove(other)) {
                ledger.replaced(&old);
            }
        }
        self.set_key(parent, key, tree);
    }

    /// Adds values to the values from earlier occurrences of the same option.
    fn extend(&mut self, path: &str, more: Vec<Tree>) {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let before = self.table(parent).and_then(|table| table.get(key).cloned());
        let is_of_command = |tree: &Tree| matches!(tree, Tree::List(_));
        let mut list = match before.filter(|tree| is_of_command(tree) && self.line_of(tree)) {
            Some(Tree::List(list)) => list,
            _ => Vec::new(),
        };
        list.extend(more);
        self.set(path, Tree::List(list));
    }

    /// Whether a list comes from options rather than from the file.
    fn line_of(&self, tree: &Tree) -> bool {
        super::leaves::At::new(tree, self.ledger).each().iter().all(|at| at.is_option())
    }

    fn sweep(&mut self, path: &str, list: Vec<Tree>) {
        if let Some(table) = self.table("/sweep.parameters") {
            table.insert(path.to_owned(), Tree::List(list));
        }
    }
}

/// Returns the pairs in one word, which may contain several, as in `--goodput 'a:1 b:2'`. A JSON object is
/// one pair.
fn parts(word: &str) -> Vec<&str> {
    match word.trim_start().starts_with('{') {
        true => vec![word],
        false => word.split_whitespace().collect(),
    }
}

/// Converts `256|10,128|5:40;512,256:60` to the list used in a file.
fn distribution(text: &str, leaf: &dyn Fn(Value) -> Tree) -> Option<Tree> {
    let side = |text: &str| {
        let (mean, sd) = text.split_once('|').map_or((text, None), |(mean, sd)| (mean, Some(sd)));
        let mean = leaf(super::env::scalar(mean));
        Some(match sd {
            None => mean,
            Some(sd) => Tree::Map(IndexMap::from([
                ("mean".to_owned(), mean),
                ("stddev".to_owned(), leaf(super::env::scalar(sd))),
            ])),
        })
    };
    let row = |row: &str| {
        let (pair, share) = row.trim().rsplit_once(':')?;
        let (isl, osl) = pair.split_once(',')?;
        Some(Tree::Map(IndexMap::from([
            ("isl".to_owned(), side(isl.trim())?),
            ("osl".to_owned(), side(osl.trim())?),
            ("probability".to_owned(), leaf(super::env::scalar(share))),
        ])))
    };
    let rows: Option<Vec<Tree>> = text.split(';').filter(|text| !text.trim().is_empty()).map(row).collect();
    rows.filter(|rows| !rows.is_empty()).map(Tree::List)
}

/// Infers the kind of load and data from the options.
pub(super) fn kind(root: &mut Tree, ledger: &Ledger, line: usize) {
    let has = |root: &Tree, path: &str| {
        let swept =
            root.get("sweep").and_then(|sweep| sweep.get("parameters")).is_some_and(|all| all.get(path).is_some());
        let found = path.split('.').try_fold(root.get("benchmark")?, |at, step| at.get(step));
        Some(swept || found.is_some()).filter(|has| *has)
    };
    let has = |root: &Tree, path: &str| has(root, path).is_some();
    let made = |value: &str| ledger.made(Value::from(value), line);
    let format = root
        .get("benchmark")
        .and_then(|body| body.get("datasets")?.get("default")?.get("format"))
        .map(Tree::json)
        .and_then(|format| format.as_str().map(str::to_owned));
    let is_trace = format.is_some_and(|format| format.ends_with("_trace"));
    let (is_file, is_public) = (has(root, "datasets.default.path"), has(root, "datasets.default.dataset"));
    let phase = "phases.profiling";
    let says_rate = has(root, &format!("{phase}.rate"));
    let mut builder = Builder { root, ledger, line };
    if is_file || is_public {
        let kind = if is_file { "file" } else { "public" };
        if let Some(table) = builder.table("datasets.default") {
            table.entry("type".to_owned()).or_insert_with(|| made(kind));
        }
    }
    let Some(table) = builder.table(phase) else { return };
    let schedule = table.shift_remove("fixed_schedule");
    let is_schedule = match &schedule {
        Some(tree) => {
            let at = super::leaves::At::new(tree, ledger);
            let is_asked = at.flag().is_some_and(|said| said.value);
            if !is_asked {
                at.needless("a file's times are replayed only with --fixed-schedule");
            }
            is_asked
        }
        None => is_trace && !says_rate,
    };
    let kind = match () {
        () if is_schedule => Some("fixed_schedule"),
        () if table.contains_key("users") => Some("user_centric"),
        () if !says_rate => Some("concurrency"),
        () if !table.contains_key("type") => Some("poisson"),
        () => None,
    };
    if let Some(kind) = kind {
        if let Some(tree) = table.shift_remove("type")
            && super::leaves::At::new(&tree, ledger).is_option()
        {
            super::leaves::At::new(&tree, ledger).needless("without a rate, there are no arrivals to space");
        }
        table.insert("type".to_owned(), made(kind));
    }
}
