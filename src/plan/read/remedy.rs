//! Remedies for errors that the types themselves find: unknown keys, missing values, and values of the wrong
//! type.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::plan::diagnostic::suggest;
use crate::plan::model::axis;
use crate::plan::model::client::{LoadEnginePatch, Timeouts};
use crate::plan::model::phases::{Between, PhasesPatch};
use crate::plan::model::plan::Plan;
use crate::plan::model::record::RecordPatch;
use crate::plan::model::scenario::Scenario;
use crate::plan::read::other_tools;
use crate::plan::read::reader::{Mistake, ReadError, read};
use crate::plan::read::wanted::Wanted;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Step, Value};
use crate::units::with_point;

/// The remedy for an unknown key.
pub(crate) fn of_key(parents: &[Step], key: &str, expected: &[&'static str], tree: &Node) -> String {
    let table = tree.walk(parents).node;
    let value = table.get(key).map_or(&Value::Null, |node| &node.value);
    let in_sweep = matches!(parents, [Step::Key(sweeps), Step::Key(_)] if sweeps == "sweeps");
    let in_slo = matches!(parents, [Step::Key(slo)] if slo == "slo");
    if (in_sweep || parents.is_empty()) && axis::first_name(key).is_some() {
        return other_tools::axis_remedy(key);
    }
    if let Some(remedy) = other_tools::objective(key).filter(|_| in_slo) {
        return remedy;
    }
    if let Some(remedy) = other_tools::range_key(key, expected) {
        return remedy;
    }
    if let Some(remedy) = of_inner_key(key, value, tree).filter(|_| parents.is_empty()) {
        return remedy;
    }
    if let Some(remedy) = other_tools::remedy(parents, key, expected) {
        return remedy;
    }
    if let Some(near) = suggest::nearest(key, expected.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    if let Some(remedy) = of_comma(key, table) {
        return remedy;
    }
    if matches!(value, Value::Null) && key.contains(':') {
        return "put a space after the `:`".to_owned();
    }
    if let [Step::Key(scenarios), Step::Key(name), Step::Key(inner), ..] = parents
        && scenarios == "scenarios"
        && keys::<Scenario>().contains(&key)
    {
        return format!("`{key}` is a key of the scenario: write it in `{name}`, next to `{inner}`");
    }
    if !parents.is_empty() && keys::<Plan>().contains(&key) {
        return format!("`{key}` is a key of the plan itself: write it at the top level, above any table");
    }
    if other_tools::is_axis_table(expected) {
        return of_axis_table(table);
    }
    format!("its keys are {}", suggest::choices(expected.iter().copied()).replace(" or ", " and "))
}

/// The remedy for an unknown key in a table on an axis: it describes the kinds of such tables. A list of all
/// keys would hide that the keys belong to three kinds of tables.
fn of_axis_table(table: &Node) -> String {
    match ["from", "to", "step", "times"].iter().any(|key| table.get(key).is_some()) {
        true => "a range has `from`, `to` and one of `step` and `times`, and optionally a `when`".to_owned(),
        false => "write a range { from: 1, to: 64, times: 2 }, a value with a condition { value: 8, when: { … } }, or \
                  one value for each of several axes { prompt_tokens: 256, output_tokens: 1024 }"
            .to_owned(),
    }
}

/// The remedy for a top-level key that is a variable of the plan, or a key of one of the plan's tables; `None`
/// for other keys.
fn of_inner_key(key: &str, value: &Value, tree: &Node) -> Option<String> {
    if tree.get("vars").is_some_and(|vars| vars.get(key).is_some()) {
        return Some(format!(
            "this is a variable: write it under `vars`, or on the command line as `--set vars.{key}=…`"
        ));
    }
    let tables = [
        ("phases", keys::<PhasesPatch>()),
        ("between", keys::<Between>()),
        ("timeouts", keys::<Timeouts>()),
        ("engine", keys::<LoadEnginePatch>()),
        ("record", keys::<RecordPatch>()),
    ];
    let (table, _) = tables.into_iter().find(|(_, keys)| keys.contains(&key))?;
    let shown = match value {
        Value::Text(text) => text.as_str(),
        _ => "…",
    };
    Some(format!("write {table}: {{ {key}: {shown} }}, or on the command line `--set {table}.{key}={shown}`"))
}

/// The keys of a table, which serde lists when it finds an unknown key.
fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    let nameless = Entry { key: String::new(), key_span: 0..0, node: Node::new(Value::Null, 0..0) };
    let table = Node::new(Value::Map(vec![nameless]), 0..0);
    match read::<T>(&table) {
        Err(ReadError { mistake: Mistake::UnknownKey(keys), .. }) => keys,
        _ => &[],
    }
}

/// The remedy for a number with a comma, which begins the next entry of a table: `{ price: 0,20 }` has the keys `price`
/// and `20`. `None` if `key` is not the second part of a number.
fn of_comma(key: &str, table: &Node) -> Option<String> {
    let Value::Map(entries) = &table.value else { return None };
    let at = entries.iter().position(|entry| entry.key == key)?;
    if !matches!(entries[at].node.value, Value::Null) || !key.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let before = at.checked_sub(1).map(|before| &entries[before].node.value);
    let number = match before {
        Some(Value::Int(whole)) => with_point(&format!("{whole},{key}")),
        _ => None,
    };
    Some(match number {
        Some(number) => format!("write the number with a decimal point, {number}: a comma begins the next entry"),
        None => "write the number without thousands separators: a comma begins the next entry".to_owned(),
    })
}

/// The remedy for a key without a value. Either the value is missing, or the lines below are meant as the
/// value.
pub(crate) fn of_nothing(path: &[Step], tree: &Node, text: &str) -> Cow<'static, str> {
    let Some((last, parents)) = path.split_last() else { return "give it a value".into() };
    let Step::Key(key) = last else { return "write a value, or remove the entry".into() };
    let table = &tree.walk(parents).node;
    let Value::Map(entries) = &table.value else { return "give it a value".into() };
    if let Some(remedy) = of_comma(key, table) {
        return remedy.into();
    }
    let column =
        |span: &Span| text[..span.start.min(text.len())].rfind('\n').map_or(span.start, |at| span.start - at - 1);
    let mut from = entries.iter().skip_while(|entry| entry.key != *key);
    let below = from.next().zip(from.next()).is_some_and(|(own, next)| {
        let between = text.get(own.key_span.start..next.key_span.start).unwrap_or_default();
        column(&own.key_span) == column(&next.key_span) && between.trim_end().ends_with(':') && !parents.is_empty()
    });
    match below {
        true => {
            "if the lines below belong to this key, indent them further; otherwise give it a value, or remove the line"
        }
        false => "give it a value, or remove the line",
    }
    .into()
}

/// The remedy for a value of a different type than the field accepts.
pub(crate) fn of_type(node: &Node, path: &[Step], wanted: &Wanted, text: &str) -> String {
    if let Some(remedy) = of_place(node, path, text) {
        return remedy;
    }
    if let (Value::Text(written), Wanted::Number) = (&node.value, wanted)
        && let Some(number) = with_point(written)
    {
        return format!("write it with a decimal point: {number}");
    }
    if let (Value::Text(written), Wanted::Whole(_) | Wanted::Number | Wanted::Other(_)) = (&node.value, wanted)
        && let Some(remedy) = suggest::meant_number(written)
    {
        return remedy;
    }
    if matches!(path.last(), Some(Step::Key(key)) if key == "memory_bandwidth") {
        return "write it with its unit, like 3.35TB/s".to_owned();
    }
    match (&node.value, wanted) {
        (Value::Float(share), Wanted::Share) if (0.0..1.0).contains(share) => {
            let percent = (share * 1e8).round() / 1e6;
            format!("shares are written in percent: {percent}% stands for {}", quoted(node, text))
        }
        (Value::Int(_) | Value::Float(_), Wanted::Share) => {
            format!("write it with a percent sign: {}%", quoted(node, text))
        }
        (Value::Text(text), Wanted::Bool) => match text.to_lowercase().as_str() {
            "true" => "write `true` without quotes".to_owned(),
            "false" => "write `false` without quotes".to_owned(),
            "on" | "yes" | "y" => "write `true`".to_owned(),
            "off" | "no" | "n" => "write `false`".to_owned(),
            _ => "write `true` or `false`".to_owned(),
        },
        (Value::Int(_) | Value::Float(_) | Value::Bool(_), Wanted::Text) if !node.via.is_empty() => {
            "make it a string: \"{{ … ~ '' }}\"".to_owned()
        }
        (Value::Int(_) | Value::Float(_) | Value::Bool(_), Wanted::Text) => {
            format!("put quotes around it: \"{}\"", quoted(node, text))
        }
        (Value::Map(entries), Wanted::ValueOrValues) if entries.iter().any(|entry| entry.key == "from") => {
            "write `when` next to the range: { from: 1, to: 8, step: 1, when: { … } }".to_owned()
        }
        (Value::Map(_), Wanted::List) => "put it into a list: [{ … }]".to_owned(),
        (_, Wanted::Text) => "write one string, in quotes if it has a `:`".to_owned(),
        (_, Wanted::Whole(_)) if quoted(node, text).bytes().all(|byte| byte.is_ascii_digit()) => {
            "write a smaller number".to_owned()
        }
        (_, Wanted::Whole(_)) => "write digits only, like 3".to_owned(),
        (Value::Text(_), Wanted::Number) => "write a plain number, like 1.5 or 70.6e9".to_owned(),
        (_, Wanted::Names) => "give each entry a name, like { NAME: … }".to_owned(),
        (_, Wanted::Fields) => "write it like { field: value }".to_owned(),
        _ => format!("write {wanted}"),
    }
}

/// The remedy for places where users of other tools often write a value of another type; `None` for other
/// places.
fn of_place(node: &Node, path: &[Step], text: &str) -> Option<String> {
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
        .collect();
    Some(match (&keys[..], &node.value) {
        (["sweepline"], _) => "write `sweepline: 1`, the version of the plan format".to_owned(),
        (["endpoints" | "models" | "scenarios" | "sweeps"], Value::List(_)) => {
            let table = keys[0];
            match text[..crate::plan::text::span::clamp(node.span.clone(), text).start].ends_with("[[")
                || toml_list(node, text)
            {
                true => format!("give each entry a name: write [{table}.NAME] instead of [[{table}]]"),
                false => format!("give each entry a name, like {table}: {{ NAME: {{ … }} }}"),
            }
        }
        (["endpoints", _], Value::Text(url)) if url.contains("://") => format!("write {{ url: \"{url}\" }}"),
        (["models", _], Value::Text(id)) => format!("write {{ id: {id} }}"),
        (["slo", _], Value::Text(limit)) => format!("write the percentile: {{ p99: {limit} }}"),
        (["slo", _], _) => "write the percentile: { p99: 500ms }".to_owned(),
        (["goodput", _], Value::Map(_)) => "write a single limit, which each request must meet: 500ms".to_owned(),
        (["validity", _], _) => "write the thresholds: { suspect: 1%, invalid: 10% }".to_owned(),
        (["allow"] | ["sweeps", _, "allow"], Value::Text(code)) => {
            format!("add a reason: {{ code: {code}, because: … }}")
        }
        (["phases"] | ["sweeps", _, "phases"], Value::Text(time)) => format!("name the phase: {{ measure: {time} }}"),
        (["sweeps", _, "add", _], Value::List(_)) => "write one cell for each value; each entry of `add` must be a \
                                                      complete cell"
            .to_owned(),
        (["sweeps", _, "extend", "with", _], Value::List(_)) => {
            "`with` sets one value; to use several, write an axis with conditions: [{ value: 1, when: { … } }, …]"
                .to_owned()
        }
        (["sweeps", _, "matrix", axis], Value::List(values)) if matches!(path.last(), Some(Step::Index(_))) => {
            of_nested_list(axis, values, text)
        }
        (["endpoints", _, "hardware"], _) => "write it like { gpu: H100-SXM-80GB, gpus: 8 }".to_owned(),
        (["endpoints", _, "mock"], _) => "write it like { ttft: 20ms, itl: 4ms, slots: 8 }".to_owned(),
        _ => return None,
    })
}

/// The remedy for a list among the values of an axis. For pairs of lengths, the two lengths need names.
fn of_nested_list(axis: &str, values: &[Node], text: &str) -> String {
    match values {
        _ if axis::first_name(axis).is_some() => {
            "write these values directly in the outer list, without the inner brackets".into()
        }
        [prompt, output] => {
            let (prompt, output) = (quoted(prompt, text), quoted(output, text));
            format!("name the values: {{ prompt_tokens: {prompt}, output_tokens: {output} }}")
        }
        _ => "name the values, like { prompt_tokens: 256, output_tokens: 1024 }".to_owned(),
    }
}

/// Whether a list is written as `[[name]]`.
fn toml_list(node: &Node, text: &str) -> bool {
    let span = crate::plan::text::span::clamp(node.span.clone(), text);
    text[span].starts_with("[[")
}

/// The first line of a node as written, or of the result of its template, to be quoted in a message.
pub(crate) fn quoted<'a>(node: &'a Node, text: &'a str) -> Cow<'a, str> {
    let written = &text[crate::plan::text::span::clamp(node.span.clone(), text)];
    let made = match &node.value {
        _ if !written.contains("{{") => None,
        Value::Text(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(value.to_string()),
        _ => None,
    };
    match made {
        Some(made) => made.lines().next().unwrap_or_default().to_owned().into(),
        None => written.lines().next().unwrap_or_default().trim().trim_matches(['"', '\'']).into(),
    }
}
