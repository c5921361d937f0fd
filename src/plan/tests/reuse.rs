//! Tests of plans from several texts: fragments, variables and `--set`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::*;

/// Files in memory, both inside and next to the folder `plans`.
struct Memory(BTreeMap<PathBuf, String>);

impl Files for Memory {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let mut canonical = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => drop(canonical.pop()),
                other => canonical.push(other),
            }
        }
        let there = self.0.keys().any(|name| name.starts_with(&canonical));
        there.then_some(canonical).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let text = &self.0[&self.canonical(path)?];
        Ok(text.bytes().take(most).collect())
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let inside = self.0.keys().filter(|name| name.parent() == Some(folder));
        inside.map(|name| name.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }
}

const PLAN: &str = "sweepline: 1\nname: test\nendpoints: { demo: { engine: mock } }\nmodels: { m: { id: m } }\n\
                    sweeps: { s: { matrix: { batch_size: [1, 8] } } }\n";

/// Reads `plans/p.yaml` from these files, with values of `--set`.
fn load_among(files: &[(&str, &str)], set: &[&str]) -> Result<Loaded, PlanErrors> {
    let files = Memory(files.iter().map(|(name, text)| (PathBuf::from(name), (*text).to_owned())).collect());
    let text = files.0[Path::new("plans/p.yaml")].clone();
    let options = Options { set: set.iter().map(|set| (*set).to_owned()).collect(), ..Options::default() };
    parse_with(Path::new("plans/p.yaml"), &text, Format::Yaml, &options, &files)
}

/// Returns a plan that must be valid and that uses no other files.
fn good_with(text: &str, set: &[&str]) -> Loaded {
    load_among(&[("plans/p.yaml", text)], set).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors_among(files: &[(&str, &str)], set: &[&str]) -> String {
    load_among(files, set).map(|_| String::new()).unwrap_or_else(|errors| errors.render(false))
}

/// Returns the errors of `PLAN` with these lines inserted before it.
fn errors_with(head: &str, set: &[&str]) -> String {
    errors_among(&[("plans/p.yaml", &format!("{head}\n{PLAN}"))], set)
}

fn origin(loaded: &Loaded, path: &str) -> String {
    loaded.origin(&steps(path)).unwrap().to_string()
}

#[test]
fn fragments_lie_under_the_file_that_uses_them() {
    let files = [
        (
            "plans/p.yaml",
            "sweepline: 1\nname: own\nuse: [parts/a.yaml, parts/b.toml]\nphases: { measure: 5s }\nsweeps: { s: { matrix: { qps: 1 } } }\n",
        ),
        ("plans/parts/a.yaml", "use: c.yaml\nphases: { measure: 6s, fill: 6s, drain: 6s }\nmodels: { m: { id: a } }\n"),
        ("plans/parts/b.toml", "[phases]\nmeasure = \"7s\"\nfill = \"7s\"\n\n[endpoints.e]\nengine = \"mock\"\n"),
        (
            "plans/parts/c.yaml",
            "name: deepest\nphases: { stabilize: 8s, drain: 8s }\nmodels: { m: { precision: fp8 } }\n",
        ),
    ];
    let loaded = load_among(&files, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = &loaded.plan;
    let phases = serde_json::to_string(&plan.phases).unwrap();
    assert_eq!(
        phases,
        r#"{"fill":{"for":"7s"},"stabilize":"8s","measure":{"for":"5s"},"drain":{"for":"6s","mode":"keep"}}"#
    );
    assert_eq!((plan.name.as_str(), plan.models["m"].precision.as_deref()), ("own", Some("fp8")));
    assert_eq!(plan.models["m"].id, ModelId::Same("a".to_owned()));
    for (path, place) in [
        ("phases/measure", "plans/p.yaml:4:20"),
        ("phases/fill", "plans/parts/b.toml:3:8"),
        ("phases/drain", "plans/parts/a.yaml:2:41"),
        ("phases/stabilize", "plans/parts/c.yaml:2:22"),
        ("models/m/precision", "plans/parts/c.yaml:3:27"),
        ("endpoints/e/engine", "plans/parts/b.toml:6:10"),
    ] {
        assert_eq!(origin(&loaded, path), place, "{path}");
    }
}

#[test]
fn mistakes_of_all_files_are_told_at_once_each_in_its_file() {
    let files = [
        (
            "plans/p.yaml",
            "sweepline: 1\nname: a\nuse: [a.yaml, b.yaml]\nphases: { measure: 5 }\nsweeps: { s: { matrix: { qps: 1, endpoint: [e, f] } } }\n",
        ),
        ("plans/a.yaml", "use: shared.yaml\nendpoints: { e: { engine: mokc } }\n"),
        ("plans/b.yaml", "use: shared.yaml\nmodels: { m: { id: m, id: n } }\n"),
        ("plans/shared.yaml", "validity: { errros: { suspect: 1% } }\n"),
    ];
    insta::assert_snapshot!(errors_among(&files, &["phases.fill=ten"]));
}

#[test]
fn fragments_that_cannot_be_used() {
    let files = [
        (
            "plans/p.yaml",
            "sweepline: 1\nname: a\nuse: [parts/h10.yaml, ../secret.yaml, a.yaml, parts/none/x.yaml, text.txt, list.yaml, b.yaml, ./b.yaml]\nsweeps: {}\nphases: { measure: 5 }\n",
        ),
        ("plans/parts/h100.yaml", "{}"),
        ("secret.yaml", "{}"),
        ("plans/a.yaml", "use: parts/b.yaml"),
        ("plans/parts/b.yaml", "use: ../a.yaml\nsweepline: 2\n"),
        ("plans/text.txt", ""),
        ("plans/list.yaml", "[1]"),
        ("plans/b.yaml", "use: [1, 2]\n"),
    ];
    insta::assert_snapshot!(errors_among(&files, &[]));
}

#[test]
fn a_plan_is_no_fragment_of_itself() {
    let files = [("plans/p.yaml", "use: b.yaml"), ("plans/b.yaml", "use: p.yaml")];
    let shown = errors_among(&files, &[]);
    assert!(shown.contains("plans/p.yaml → plans/b.yaml → plans/p.yaml"), "{shown}");
}

#[test]
fn bombs_of_fragments_are_refused() {
    // Each fragment uses all later ones; the last one is large.
    let count = 60;
    let text = |at: usize| {
        let uses: Vec<String> = (at + 1..count).map(|other| format!("f{other}.yaml")).collect();
        let values = if at == count - 1 { "notes: [".to_owned() + &"1,".repeat(20_000) + "]" } else { String::new() };
        format!("use: [{}]\n{values}\n", uses.join(", "))
    };
    let names: Vec<String> =
        (0..count).map(|at| if at == 0 { "plans/p.yaml".to_owned() } else { format!("plans/f{at}.yaml") }).collect();
    let texts: Vec<String> = (0..count).map(text).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    assert!(errors_among(&files, &[]).contains("E003"));

    let names: Vec<String> = (0..70).map(|at| format!("plans/{at}.yaml")).collect();
    let uses: Vec<String> = (0..70).map(|at| format!("{at}.yaml")).collect();
    let plan = format!("use: [{}]\n{PLAN}", uses.join(", "));
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "{}")).collect();
    files.push(("plans/p.yaml", &plan));
    assert!(errors_among(&files, &[]).contains("at most 64 fragments"));

    let large = format!("notes: {}\n", "x".repeat(600_000));
    let plan = format!("use: [a.yaml, b.yaml]\n{PLAN}");
    let files = [("plans/p.yaml", plan.as_str()), ("plans/a.yaml", &large), ("plans/b.yaml", &large)];
    assert!(errors_among(&files, &[]).contains("more than 1048576 bytes"));
}

#[test]
fn expressions_keep_their_types() {
    let text =
        "vars: { n: 4, half: \"{{ n / 2 }}\", time: 90s, sizes: [1, \"{{ n * 2 }}\"], yes: true, t: { a: 0.1 } }\n";
    let notes = r#"notes: '{{ n }} {{ "}}" ~ time }} {{ t.a * 3 }} {#'"#;
    let plan = PLAN.replace("[1, 8]", "\"{{ sizes }}\"");
    let fields = r#"
phases: { measure: "{{ time }}", fill: "{{ n * 2 }}s" }
stream: "{{ yes }}"
seed: "{{ half }}"
"#;
    let plan = good_with(&format!("{text}{plan}{fields}{notes}\n"), &[]).plan;
    assert_eq!(plan.notes.as_deref(), Some("4 }}90s 0.3 {#"));
    assert_eq!(plan.seed, crate::units::Seed(2));
    assert!(plan.stream);
    assert_eq!(serde_json::to_string(&plan.sweeps["s"].matrix["batch_size"]).unwrap(), "[1,8]");
    assert_eq!(serde_json::to_value(&plan.phases).unwrap()["measure"]["for"], "90s");
    assert_eq!(serde_json::to_value(&plan.phases).unwrap()["fill"]["for"], "8s");
}

#[test]
fn a_template_says_what_it_is_made_of() {
    let text = format!(
        "vars:\n  n: 4\n  m: \"{{{{ n }}}}\"\n{}seed: \"{{{{ m * 2 }}}}\"\n",
        PLAN.replace("[1, 8]", "\"{{ m }}\"")
    );
    let loaded = good_with(&text, &["vars.n=3"]);
    assert_eq!(loaded.plan.seed, crate::units::Seed(6));
    assert_eq!(origin(&loaded, "seed"), "plans/p.yaml:9:7, m at plans/p.yaml:3:6, n at --set:1:8");
    assert_eq!(
        origin(&loaded, "sweeps/s/matrix/batch_size/0"),
        "plans/p.yaml:8:38, m at plans/p.yaml:3:6, n at --set:1:8"
    );
}

#[test]
fn templates_that_cannot_be_computed() {
    let head = "vars:\n  measure: 120s\n  n: 3\n  a: \"{{ b }}\"\n  b: \"{{ a }}\"\n  none-such: 1\n  api_key: sk-not-shown\n  late: \"{{ a }}\"\n  nothing:\n\
                notes: 'é {{ mesure }} and {{ n ~ }} and {{ late }}'\nhypothesis: \"{{ measure * 2 }}\"\nseed: \"{{ n / 0 }}\"\nstream: \"{% if n %}1{% endif %}\"\n\
                phases: { measure: \"{{ n }}\", fill: \"{{ n | rond }}\", stabilize: \"{{ n.x }}s\", drain: \"{{ [n] }}s\" }\ntimeouts: { stall: '{{ 9', connect: \"{{ range(3) }}\" }";
    insta::assert_snapshot!(errors_with(head, &[]));
}

#[test]
fn secrets_pass_through_no_template() {
    let head = "vars: { who: VLLM_API_KEY, hf_token: canary-4f9a1c }";
    let plan = PLAN.replace("{ engine: mock }", "{ url: http://h/v1, api_key: { secret: \"env:{{ who }}\" } }");
    let shown =
        errors_among(&[("plans/p.yaml", &format!("{head}\n{plan}"))], &["endpoints.demo.api_key=canary-4f9a1c"]);
    assert!(shown.matches("E027").count() >= 2 && !shown.contains("canary-4f9a1c"), "{shown}");
    let shown = errors_among(&[("plans/p.yaml", &format!("{head}\n{plan}"))], &[]);
    assert!(shown.contains("cannot be the result of a template"), "{shown}");
}

#[test]
fn template_bombs_are_refused() {
    let double: String = (1..40).map(|at| format!("  v{at}: \"{{{{ [v{0}, v{0}] }}}}\"\n", at - 1)).collect();
    assert!(errors_with(&format!("vars:\n  v0: 1\n{double}"), &[]).contains("E003"));
    let double: String = (1..40).map(|at| format!("  v{at}: \"{{{{ v{0} ~ v{0} }}}}\"\n", at - 1)).collect();
    assert!(errors_with(&format!("vars:\n  v0: ab\n{double}"), &[]).contains("E003"));
    for long in ["'a' * 100000000", "x * 100000000", "(1,) * 100000000", "[1] * 100000000", "n|lower * 100000000"] {
        let shown = errors_with(&format!("vars: {{ x: a, n: 1 }}\nnotes: \"{{{{ {long} }}}}\""), &[]);
        assert!(shown.contains("multiplies numbers"), "{long}: {shown}");
    }
    let deep = format!("notes: \"{{{{ {}1{} }}}}\"", "(".repeat(400), ")".repeat(400));
    assert!(errors_with(&deep, &[]).contains("E041"));
    let long = format!("vars: {{ n: 1 }}\nseed: \"{{{{ {}1 }}}}\"", "n + ".repeat(240));
    assert_eq!(errors_with(&long, &[]), "");
    // A chain and a cycle of many variables, in which each variable uses the next one.
    let chain: String = (0..5_000).map(|at| format!("  v{at}: \"{{{{ v{} }}}}\"\n", at + 1)).collect();
    assert_eq!(errors_with(&format!("vars:\n{chain}  v5000: 1"), &[]), "");
    assert!(errors_with(&format!("vars:\n{chain}  v5000: \"{{{{ v0 }}}}\""), &[]).contains("E022"));
}

#[test]
fn values_are_set_like_written() {
    let text = format!("vars: {{ n: 4 }}\nnotes: \"n = {{{{ n }}}}\"\n{}", PLAN.replace("batch_size", "concurrency"));
    let loaded = good_with(
        &text,
        &[
            "sweeps.s.matrix.batch_size=[2, 4]",
            "sweeps.s.matrix.batch_size[1]=16",
            "phases.measure=5s",
            "vars.n=7",
            "endpoints.demo.server={ flags: { a: on } }",
            "endpoints.demo.server.flags.\"b.c\"=1",
            "name=first",
            "name=a",
        ],
    );
    let plan = &loaded.plan;
    assert_eq!(serde_json::to_string(&plan.sweeps["s"].matrix["batch_size"]).unwrap(), "[2,16]");
    assert_eq!((plan.name.as_str(), plan.notes.as_deref()), ("a", Some("n = 7")));
    assert_eq!(serde_json::to_string(&plan.endpoints["demo"].server).unwrap(), r#"{"flags":{"a":"on","b.c":1}}"#);
    assert_eq!(origin(&loaded, "phases/measure"), "--set:3:16");
    assert_eq!(origin(&loaded, "sweeps/s/matrix/batch_size/0"), "--set:1:29");
    assert_eq!(origin(&loaded, "sweeps/s/matrix/batch_size/1"), "--set:2:31");
    assert_eq!(origin(&loaded, "sweeps/s/matrix/batch_size"), "--set:1:17");
}

#[test]
fn mistakes_in_what_is_set() {
    let set = [
        "seed",
        "sweps.a=1",
        "sweeps.t.repeats=2",
        "sweeps.s.matrx.qps=1",
        "phases.measure=120",
        "vars.n=1",
        "use=[a]",
        "sweeps.s.matrix.batch_size[2]=1",
        "sweeps.s.matrix.batch_size.0=1",
        "name.x=1",
        "sweeps.s.repeats[0]=1",
        "endpoints.demo.mock={ slots: [ }",
        "notes=",
        "models.m={ id: a, id: b }",
        "name=a\nb",
        "a..b=1",
    ];
    insta::assert_snapshot!(errors_with("", &set));
}

#[test]
fn numbers_that_lose_something_are_refused_where_letters_count() {
    let server = |facts: &str| PLAN.replace("{ engine: mock }", &format!("{{ engine: mock, server: {facts} }}"));
    let honest =
        "{ version: \"0.10\", tensor_parallel: 8, build: 007, other: 0.33.0, flags: { share: 0.9, \"1.0\": 2 } }";
    good_with(&server(honest), &["vars={ n: 1.50 }", "seed=\"{{ n * 2 }}\""]);
    for (text, set, wanted) in [
        (server("{ version: 0.10 }"), "name=a", "write \"0.10\" in quotes, or 0.1 if a number is intended"),
        (server("{ flags: { share: 1.0 } }"), "name=a", "write \"1.0\" in quotes"),
        (PLAN.to_owned(), "endpoints.demo.server={ version: 0.10 }", "write \"0.10\" in quotes"),
        (server("{ version: \"{{ v }}\" }"), "vars={ v: 0.10 }", "--set:1:11"),
        (PLAN.replace("id: m", "id: \"m-{{ v }}\""), "vars={ v: 1.0 }", "write \"1.0\" in quotes"),
        (PLAN.replace("id: m", "id: m, precision: 8.0"), "name=a", "put quotes around it: \"8.0\""),
    ] {
        let shown = errors_among(&[("plans/p.yaml", &text)], &[set]);
        assert!(shown.contains(wanted) && shown.matches("error[").count() == 1, "{text}{set}: {shown}");
    }
    let toml = "sweepline = 1\nname = 'a'\nmodels.m.id = 'm'\nsweeps.s.matrix.qps = 1.50\n\
                [endpoints.e]\nengine = 'mock'\nserver = { version = 0.10, size = 1_000, flags = { share = 0.9 } }\n";
    let shown = parse(Path::new("p.toml"), toml, Format::Toml).unwrap_err().render(false);
    assert!(shown.contains("p.toml:7:22") && shown.matches("error[").count() == 1, "{shown}");
}

#[test]
fn words_for_true_and_false_need_quotes_in_variables() {
    for word in ["no", "Off", "yes", "on", "n"] {
        let shown =
            errors_with(&format!("vars: {{ a: {word}, b: [1, {{ c: {word} }}] }}\nstream: \"{{{{ a }}}}\""), &[]);
        assert_eq!(shown.matches("write true or false, or put the value in quotes").count(), 2, "{word}: {shown}");
        assert_eq!(shown.matches("error[").count(), 2, "{word}: {shown}");
        assert_eq!(errors_with(&format!("vars: {{ a: \"{word}\", b: '{word}', c: north }}"), &[]), "");
    }
}

#[test]
fn a_template_that_gives_none_leaves_its_key_out() {
    let text = |smoke: bool| {
        format!(
            "vars: {{ smoke: {smoke} }}\nphases:\n  measure: {{ for: 20s, min_requests: \"{{{{ none if smoke else 400 }}}}\" }}\n{}",
            PLAN.replace("[1, 8]", "[1, \"{{ none if smoke else 8 }}\"]")
        )
    };
    let of = |smoke| {
        let plan = good_with(&text(smoke), &[]).plan;
        let axis = serde_json::to_string(&plan.sweeps["s"].matrix["batch_size"]).unwrap();
        (plan.phases.measure.unwrap().min_requests, axis)
    };
    assert_eq!(of(false), (Some(400), "[1,8]".to_owned()));
    assert_eq!(of(true), (None, "[1]".to_owned()));
    for (head, wanted) in [
        ("vars: { a: \"{{ none }}\" }\nnotes: \"{{ a }}\"", "a variable cannot be none"),
        ("notes: \"n = {{ none }}\"", "the expression has no value"),
        ("seed: \"{{ null }}\"", "write none, which omits the key"),
        ("seed: \"{{ 1 if false }}\"", "none as the result omits the key"),
    ] {
        let shown = errors_with(head, &[]);
        assert!(shown.contains(wanted) && shown.matches("error[").count() == 1, "{head}: {shown}");
    }
}

#[test]
fn max_tokens_of_a_scenario_is_output_tokens() {
    let text = |fields: &str| format!("scenarios: {{ s: {{ {fields} }} }}\n{PLAN}");
    let of = |text: &str, set: &[&str]| good_with(text, set).plan.scenarios["s"].output_tokens;
    assert_eq!(of(&text("max_tokens: 4"), &[]), Some(4));
    assert_eq!(of(&text("max_tokens: 4"), &["scenarios.s.output_tokens=5"]), Some(5));
    assert_eq!(of(&text("output_tokens: 4"), &["scenarios.s.max_tokens=6"]), Some(6));
    assert_eq!(of(&text("output_tokens: 4"), &["scenarios.s={ max_tokens: 7 }"]), Some(7));
    let shown = errors_among(&[("plans/p.yaml", &text("max_tokens: 4, output_tokens: 4"))], &[]);
    assert!(shown.contains("E004") && shown.contains("`output_tokens` is the same"), "{shown}");
    let over = format!("use: part.yaml\n{}", text("max_tokens: 8"));
    let files = [("plans/p.yaml", over.as_str()), ("plans/part.yaml", "scenarios: { s: { output_tokens: 4 } }\n")];
    assert_eq!(load_among(&files, &[]).unwrap().plan.scenarios["s"].output_tokens, Some(8));
}
