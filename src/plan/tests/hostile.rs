//! Texts that try to break the reader, and secrets that must not leak from it.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const CANARY: &str = "canary-4f9a1c";

/// Asserts that the text is rejected quickly, and returns the errors as text. Expanding such a text in full
/// would take hours, so the time limit catches this on any machine.
fn refused(text: &str, format: Format) -> String {
    let start = Instant::now();
    let errors = parse(Path::new("plan"), text, format).unwrap_err();
    let shown = errors.render(false);
    assert!(start.elapsed() < Duration::from_secs(60), "took {:?}", start.elapsed());
    shown
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    insta::assert_snapshot!(refused(&text, Format::Yaml));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |open: &str, close: &str| format!("a{}{}", open.repeat(10_000), close.repeat(10_000));
    for text in [deep(": [", "]"), deep(": {a", "}"), format!("a: {}", "- ".repeat(10_000))] {
        refused(&text, Format::Yaml);
    }
    let block: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(refused(&block, Format::Yaml).contains("E003"));
    refused(&format!("a = {}", "[".repeat(10_000)), Format::Toml);
    refused(&format!("a = {}", "{ a = ".repeat(10_000)), Format::Toml);
    refused(&format!("{}b = 1", "a.".repeat(10_000)), Format::Toml);
    refused(&format!("[{}b]", "a.".repeat(10_000)), Format::Toml);
}

#[test]
fn a_large_file_is_refused() {
    refused(&"# nothing\n".repeat(500_000), Format::Yaml);
    let values = format!("sweepline = 1\nname = [{}]\n", "1,".repeat(100_000));
    assert!(refused(&values, Format::Toml).contains("E003"));
    assert!(refused(&values.replace(" =", ":"), Format::Yaml).contains("E003"));
}

#[test]
fn many_mistakes_end() {
    let keys: String = (0..10_000).map(|at| format!("key{at}: 1\n")).collect();
    refused(&keys, Format::Yaml);
    let values = format!(
        "sweepline: 1\nname: a\nmodels: {{ m: {{ id: m }} }}\nendpoints: {{ e: {{ engine: mock }} }}\nsweeps: {{ s: {{ matrix: {{ qps: [{}] }} }} }}\n",
        "1,".repeat(20_000)
    );
    assert!(refused(&values, Format::Yaml).contains("E017"));
}

#[test]
fn secrets_are_masked() {
    let endpoint = |line: &str| {
        format!(
            "sweepline: 1\nname: a\nendpoints:\n  e:\n    engine: vllm\n    {line}\nmodels: {{ m: {{ id: m }} }}\nsweeps: {{}}\n"
        )
    };
    for line in [
        format!("api_key: {CANARY}"),
        format!("api_key: {{ secret: {CANARY} }}"),
        format!("api_key: {{ secret: env:{CANARY} }}"),
        format!("api_key: {{ secret: \"{CANARY}\", more: 1 }}"),
        format!("api_key: [{CANARY}]"),
        format!("api_key:\n      {CANARY}"),
        format!("api_key: |\n      {CANARY}\n      {CANARY}"),
        format!("apikey: {CANARY}"),
        format!("hf_token: {CANARY}"),
        format!("server: {{ password: {CANARY}, nothing: }}"),
        format!("url: http://user:{CANARY}@host/v1"),
        format!("url: http://host/v1?api_key={CANARY}"),
        format!("urls: sk-{CANARY}"),
        format!("api_key: {CANARY}\n  broken: ["),
        format!("api_key: \"{CANARY}"),
        format!("api_key:\n      {CANARY}: [\n   x"),
        format!("api_key: {CANARY}\n    api_key: {CANARY}"),
    ] {
        let errors = parse(Path::new("plan.yaml"), &endpoint(&line), Format::Yaml).unwrap_err();
        let json = serde_json::to_string(&errors.json()).unwrap();
        let whole = format!("{errors:?} {} {} {json}", errors.render(false), errors.render(true));
        assert!(!whole.contains(CANARY), "{line}\n{whole}");
    }
}

#[test]
fn harmless_words_are_shown() {
    let text = "sweepline: 1\nscenarios: { s: { prompt_tokens: fifty } }\n";
    assert!(refused(text, Format::Yaml).contains("fifty"));
}

/// Returns a valid plan with some characters replaced, removed or inserted.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let edit =
        (0..text.len(), 0usize..12, prop_oneof![Just(String::new()), "[-\\[\\]{}:,&*!|>'\"#%@\t\n 0-9a-zé]{0,4}"]);
    proptest::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, new) in edits {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, new.into_bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Parses a text as YAML and as TOML, and formats the errors, if any.
fn exercise(text: &str) {
    for format in [Format::Yaml, Format::Toml] {
        if let Err(errors) = parse(Path::new("plan"), text, format) {
            assert!(!errors.diagnostics.is_empty());
            let _ = (errors.render(true), errors.json());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        exercise(&text);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_mutation_of_yaml_panics(text in mutated(YAML)) {
        exercise(&text);
    }

    #[test]
    fn no_mutation_of_toml_panics(text in mutated(TOML)) {
        exercise(&text);
    }
}
