use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::golden::{closed_chat, conversation_on_mock, open_completions};
use crate::expand::canonical::Bytes;
use crate::expand::{LoadEngine, ModelSpec, Recording, RunId, RunSpec, canonical, differences};
use crate::plan::model::content::Content;
use crate::plan::{ErrorPolicy, History, Scalar, Timer};
use crate::units::{Decimal, Seed};

/// Replacements for a text in a spec; the first one that the field's type accepts is used.
const OTHER_TEXTS: [&str; 13] = [
    "7s/token",
    "7%",
    "7s",
    "sglang",
    "completions",
    "chat",
    "constant",
    "stop",
    "shared_system",
    "none",
    "cold",
    "warm",
    "anything else",
];

/// Adds the JSON pointers of all leaves under `value` to `into`; `at` is the pointer of `value` itself.
fn leaves(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Object(table) => table.iter().for_each(|(key, value)| leaves(value, format!("{at}/{key}"), into)),
        _ => into.push(at),
    }
}

/// Returns `spec` with the leaf at `pointer` changed to another valid value.
fn mutated(spec: &RunSpec, pointer: &str) -> RunSpec {
    let json = serde_json::to_value(spec).expect("JSON");
    let others: Vec<Value> = match json.pointer(pointer).expect("a leaf") {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) if number.is_u64() => vec![json!(number.as_u64().expect("whole") + 1)],
        Value::Number(_) => vec![json!(0.123)],
        _ => OTHER_TEXTS.iter().map(|text| json!(text)).collect(),
    };
    let fits = others.into_iter().find_map(|other| {
        let mut json = json.clone();
        *json.pointer_mut(pointer).expect("a leaf") = other;
        serde_json::from_value::<RunSpec>(json).ok().filter(|changed| changed != spec)
    });
    fits.unwrap_or_else(|| panic!("nothing else fits {pointer}"))
}

#[test]
fn a_change_of_any_leaf_changes_the_id_and_is_named() {
    let mut named = BTreeSet::new();
    for spec in [closed_chat(), open_completions(), conversation_on_mock()] {
        let mut all = Vec::new();
        leaves(&serde_json::to_value(&spec).expect("JSON"), String::new(), &mut all);
        let hashed = |pointer: &&String| !pointer.starts_with("/labels") && !pointer.starts_with("/engine");
        for pointer in all.iter().filter(hashed) {
            let changed = mutated(&spec, pointer);
            assert_ne!(RunId::of(&changed), RunId::of(&spec), "{pointer}");
            let fields = differences(&spec, &changed);
            assert_eq!(fields.len(), 1, "{pointer}: {fields:?}");
            named.extend(fields.into_iter().map(|difference| difference.field));
        }
        for (path, _) in canonical(&spec).entries().iter().skip(2).filter(|(path, _)| path != "load.pattern") {
            assert!(named.contains(path), "no leaf changes {path}");
        }
    }
}

#[test]
fn labels_are_not_hashed() {
    let spec = open_completions();
    let mut relabelled = spec.clone();
    relabelled.labels = Default::default();
    assert_ne!(spec, relabelled);
    assert_eq!(RunId::of(&spec), RunId::of(&relabelled));
    assert_eq!(differences(&spec, &relabelled), []);
}

#[test]
fn how_the_generator_is_built_is_not_hashed() {
    let spec = closed_chat();
    let engine = LoadEngine { threads: 4, timer: Timer::Spin, workers: 7 };
    let rebuilt = RunSpec { engine, ..spec.clone() };
    assert_ne!(spec, rebuilt);
    assert_eq!(RunId::of(&spec), RunId::of(&rebuilt));
    assert_eq!(differences(&spec, &rebuilt), []);
}

#[test]
fn what_is_kept_besides_the_numbers_is_not_hashed() {
    let spec = closed_chat();
    let kept = RunSpec { record: Recording { text: true }, ..spec.clone() };
    assert_ne!(spec, kept);
    assert_eq!(RunId::of(&spec), RunId::of(&kept));
    assert_eq!(differences(&spec, &kept), []);
}

#[test]
fn whether_errors_are_measured_is_not_hashed() {
    let spec = closed_chat();
    let measured = RunSpec { errors: ErrorPolicy::Measured, ..spec.clone() };
    assert_ne!(spec, measured);
    assert_eq!(RunId::of(&spec), RunId::of(&measured));
    assert_eq!(differences(&spec, &measured), []);
    // The default is not written, so a record from before this field existed is read with the default.
    assert!(serde_json::to_value(&spec).expect("JSON").get("errors").is_none());
}

#[test]
fn a_spec_from_before_connections_is_one_of_cold_ones() {
    let mut json = serde_json::to_value(closed_chat()).expect("JSON");
    let fields = json.as_object_mut().expect("a table");
    assert!(fields.remove("connections").is_some() && fields.remove("engine").is_some());
    let old: RunSpec = serde_json::from_value(json).expect("a spec");
    let told: Vec<String> = differences(&old, &closed_chat()).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["connections: cold → warm"]);
    assert_eq!(old.engine, LoadEngine { threads: 1, timer: Timer::Timerfd, workers: 1 });
}

#[test]
fn a_spec_survives_json_with_its_id() {
    for mut spec in [closed_chat(), open_completions(), conversation_on_mock()] {
        spec.seed = Seed(u64::MAX);
        let json = serde_json::to_string(&spec).expect("JSON");
        let back: RunSpec = serde_json::from_str(&json).expect("the same");
        assert_eq!(RunId::of(&back), RunId::of(&spec));
    }
}

#[test]
fn seeds_beyond_53_bits_stay_apart() {
    let with = |seed| RunId::of(&RunSpec { seed: Seed(seed), ..closed_chat() });
    assert_ne!(with(1 << 53), with((1 << 53) + 1));
}

#[test]
fn no_text_passes_for_other_entries() {
    let with = |facts: &[(&str, Scalar)]| {
        let mut spec = closed_chat();
        Arc::make_mut(&mut spec.endpoint).server =
            facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Bytes::default().of(&spec).to_vec()
    };
    let text = |value: &str| Scalar::Text(value.to_owned());
    let tricks = [
        with(&[("a", text("1")), ("b", text("2"))]),
        with(&[("a", text("1\n17:endpoint.server.b=t1:2"))]),
        with(&[("a", text("1\n")), ("b", text("2"))]),
        with(&[("a=1", text("")), ("b", text("2"))]),
        with(&[("a=t1:1\n17:endpoint.server.b", text("2"))]),
        with(&[("a", Scalar::Number(Decimal::from(1))), ("b", text("2"))]),
        with(&[("a", text("true"))]),
        with(&[("a", Scalar::Bool(true))]),
    ];
    assert_eq!(tricks.iter().collect::<BTreeSet<_>>().len(), tricks.len());
}

#[test]
fn differences_read_like_a_plan() {
    let (a, b) = (closed_chat(), open_completions());
    let lines: Vec<String> = differences(&a, &b)
        .into_iter()
        .map(|d| format!("{}: {} → {}", d.field, d.old.unwrap_or("-".into()), d.new.unwrap_or("-".into())))
        .collect();
    for line in ["load.batch_size: 8 → -", "load.pattern: closed → open", "load.qps: - → 2.5"] {
        assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
    }
    assert!(lines.iter().any(|line| line == "phases.measure.for: 2m → 10s"), "{lines:#?}");
}

#[test]
fn ids_read_back_from_text() {
    let id = RunId::of(&closed_chat());
    assert_eq!(id.to_string().parse(), Ok(id));
    assert!(id.to_string().starts_with(&id.short()) && id.short().len() == 16);
    assert_eq!(serde_json::from_str::<RunId>(&serde_json::to_string(&id).expect("JSON")).expect("an id"), id);
    for wrong in ["", "ab", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
        assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
    }
}

#[test]
fn a_tokenizer_names_what_it_fits_where_versions_before_had_the_estimate() {
    let fits = |tokenizer: bool, change: &dyn Fn(&mut Content)| {
        let mut spec = conversation_on_mock();
        let model = ModelSpec { tokenizer: tokenizer.then(|| "server".to_owned()), ..ModelSpec::clone(&spec.model) };
        spec.model = Arc::new(model);
        change(&mut spec.scenario);
        let form = canonical(&spec);
        assert!(form.entries().iter().skip(2).map(|(path, _)| path).is_sorted(), "{form:?}");
        form.get("model.tokenizer.fits").map(ToString::to_string)
    };
    let script = |content: &mut Content| (content.talk.history, content.turns) = (History::Scripted, 3);
    let real = |content: &mut Content| content.talk.history = History::Real;
    assert_eq!([fits(true, &script), fits(false, &script)], [Some("histories".to_owned()), None]);
    assert_eq!(fits(true, &real), None, "the responses of a server are not known in advance");
    let one = |content: &mut Content| (content.talk.history, content.turns) = (History::Scripted, 1);
    assert_eq!(fits(true, &one), None);
}
