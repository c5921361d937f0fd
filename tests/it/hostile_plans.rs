//! Tests that `check` needs little time and memory for any plan of one megabyte, valid or not. The built
//! program checks each text, and its peak memory comes from the kernel. The memory limit is 500 MB. Times
//! are printed; their limit is far above that of a release build on an idle machine (2 s), because this is
//! neither.

use std::fmt::Write as _;
use std::fs::File;
use std::time::{Duration, Instant};

use super::lab::{Lab, wait_with_peak};

/// The largest plan that is read, in bytes.
pub(super) const MEGABYTE: usize = 1 << 20;

/// The maximum memory that `check` may use, in bytes.
const MOST_MEMORY: u64 = 500_000_000;

/// A limit that still distinguishes a slow machine and a debug build from work that grows
/// quadratically with the text.
const MOST_TIME: Duration = Duration::from_secs(300);

/// The part of a plan before the hostile part.
pub(super) const HEAD: &str =
    "sweepline: 1\nname: hostile\nendpoints: { e: { engine: mock } }\nmodels: { m: { id: m } }\n";

/// Returns a whole plan whose only matrix has these `axes`.
pub(super) fn matrix(axes: &str) -> String {
    format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }} }} }}\n")
}

/// Returns `one` repeated as often as fits into `bytes`, with 0, 1, 2, … in place of `#`.
pub(super) fn many(one: &str, bytes: usize) -> String {
    let mut text = String::new();
    for at in 0.. {
        let next = one.replace('#', &at.to_string());
        if text.len() + next.len() > bytes {
            return text;
        }
        text.push_str(&next);
    }
    text
}

/// Returns `open` repeated, a middle, and `close` repeated equally often.
fn nested(before: &str, open: &str, close: &str, depth: usize) -> String {
    format!("{before}{}x{}\n", open.repeat(depth), close.repeat(depth))
}

/// Returns nested blocks, each indented by one more space, as deep as fits.
fn deep_block(line: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    while text.len() + depth + line.len() < MEGABYTE {
        let _ = writeln!(text, "{}{line}", " ".repeat(depth));
        depth += 1;
    }
    text
}

/// The resources that the program used for one text.
struct Taken {
    time: Duration,
    memory: u64,
    /// The beginning of the program's error output.
    said: String,
}

/// Checks a text and returns the resources used. A panic, a stack overflow or a kill makes the test
/// fail.
fn check(name: &str, text: &[u8], more: &[&str]) -> Taken {
    let lab = Lab::new();
    let file = if name.starts_with("toml") { "plan.toml" } else { "plan.yaml" };
    std::fs::write(lab.path().join(file), text).unwrap();
    let into = |name: &str| File::create(lab.path().join(name)).unwrap();
    let mut command = lab.command(&["check", file]);
    command.args(more).stdout(into("out")).stderr(into("err"));
    let start = Instant::now();
    let (status, memory) = wait_with_peak(&mut command.spawn().unwrap());
    let time = start.elapsed();
    let said = std::fs::read(lab.path().join("err")).unwrap();
    let said = String::from_utf8_lossy(&said[..said.len().min(2_000)]).into_owned();
    assert!(matches!(status.code(), Some(0 | 2)), "{name}: {status} {said}");
    assert!(!said.contains("panicked"), "{name}: {said}");
    Taken { time, memory, said }
}

/// Checks each text, prints the resources used, and asserts the limits.
fn bounded(texts: &[(&str, String)]) {
    for (name, text) in texts {
        for more in [&[][..], &["--format", "json"]] {
            taken(name, text, more);
        }
    }
}

/// Like [`bounded`], for texts that are small enough to be read completely.
pub(super) fn bounded_and_read(texts: &[(&str, String)]) {
    for (name, text) in texts {
        let said = taken(name, text, &[]);
        assert!(!said.contains("the file has too many values for a plan"), "{name} is rejected for its size: {said}");
    }
}

/// Checks a text within the limits, and returns the resources used.
fn taken(name: &str, text: &str, more: &[&str]) -> String {
    assert!(text.len() <= MEGABYTE, "{name} has {} bytes", text.len());
    let Taken { time, memory, said } = check(name, text.as_bytes(), more);
    println!("{name:42} {:8} B {:>7.3} s {:>5} MB", text.len(), time.as_secs_f64(), memory / 1_000_000);
    assert!(memory < MOST_MEMORY, "{name} takes {memory} bytes");
    assert!(time < MOST_TIME, "{name} takes {time:?}");
    said
}

#[timed_test]
fn aliases_that_unfold() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut laughs = "m0: &m0 { k0: v }\n".to_owned();
    for level in 1..40 {
        let _ = writeln!(bomb, "a{level}: &a{level} [{}]", format!("*a{}, ", level - 1).repeat(10));
        let _ = writeln!(laughs, "m{level}: &m{level} {{ <<: [*m{0}, *m{0}], k{level}: *m{0} }}", level - 1);
    }
    let wide = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(20_000), "*a,".repeat(200_000));
    let flat = format!("{HEAD}a: &a x\nsweeps: {{ s: {{ matrix: {{ batch_size: [{}] }} }} }}\n", "*a,".repeat(40_000));
    bounded(&[
        ("an alias bomb", bomb),
        ("a billion laughs by merges", laughs),
        ("a long list many times", wide),
        ("an alias to a text on an axis", flat),
        ("an alias in itself", "a: &a { b: *a }\n".to_owned()),
        ("many anchors", many("k#: &k# x\n", MEGABYTE)),
        (
            "many merges of one table",
            format!("{HEAD}scenarios:\n  b: &b {{ base: B1 }}\n{}", many("  s#: { <<: *b }\n", MEGABYTE - 200)),
        ),
    ]);
}

#[timed_test]
fn texts_that_nest() {
    bounded(&[
        ("lists in lists", nested("a: ", "[", "]", 100_000)),
        ("tables in tables", nested("a: ", "{a: ", "}", 100_000)),
        ("lists never closed", format!("a: {}", "[".repeat(MEGABYTE - 10))),
        ("tables never closed", format!("a: {}", "{ a: ".repeat(200_000))),
        ("dashes", format!("a: {}", "- ".repeat(500_000))),
        ("deep blocks", deep_block("a:")),
        ("deep lists in blocks", deep_block("- a:")),
        ("questions", format!("{}x", "? ".repeat(500_000))),
        ("toml lists in lists", nested("a = ", "[", "]", 100_000)),
        ("toml lists never closed", format!("a = {}", "[".repeat(MEGABYTE - 10))),
        ("toml tables in tables", format!("a = {}", "{ a = ".repeat(170_000))),
        ("toml dotted keys", format!("{}b = 1", "a.".repeat(10_000))),
        ("toml dotted keys of a megabyte", format!("{}b = 1", "a.".repeat(500_000))),
        ("toml dotted headers", format!("[{}b]", "a.".repeat(500_000))),
        ("toml many headers that deepen", many("[a.b.c.d.e.f.g.h#]\n", MEGABYTE)),
    ]);
}

#[timed_test]
fn texts_that_are_long() {
    let numbers = many("#, ", 300_000);
    bounded(&[
        ("a scalar of a megabyte", format!("name: {}\n", "x".repeat(MEGABYTE - 10))),
        ("a quoted scalar never closed", format!("name: \"{}", "x".repeat(MEGABYTE - 10))),
        ("a key of a megabyte", format!("{}: 1\n", "x".repeat(MEGABYTE - 10))),
        ("a block scalar", format!("name: |\n{}", "  line\n".repeat(140_000))),
        ("a megabyte of spaces", " ".repeat(MEGABYTE)),
        ("a megabyte of newlines", "\n".repeat(MEGABYTE)),
        ("a megabyte of tabs", "\t".repeat(MEGABYTE)),
        ("a megabyte of NUL", "\0".repeat(MEGABYTE)),
        ("a megabyte of byte order marks", "\u{feff}".repeat(MEGABYTE / 3)),
        ("a megabyte of colons", ":".repeat(MEGABYTE)),
        ("a megabyte of open quotes", "\"".repeat(MEGABYTE)),
        ("a megabyte of comments", "# x\n".repeat(MEGABYTE / 4)),
        ("a megabyte of invalid escapes", format!("name: \"{}\"\n", "\\q".repeat(MEGABYTE / 2 - 10))),
        ("a megabyte of URLs with passwords", many("# http://u:p#@h ?key=v#\n", MEGABYTE)),
        (
            "a megabyte of secrets",
            format!("{HEAD}notes:\n{}", many("  - { api_key: sk-abcdefghijkl# }\n", MEGABYTE - 200)),
        ),
        ("a megabyte that looks like keys", many("api_key: sk-abcdefghijkl#\n", MEGABYTE)),
        ("a broken megabyte that looks like keys", many("api_key: sk-abcdefghijkl# [\n", MEGABYTE)),
        ("a long axis", matrix(&format!("qps: [{numbers}]"))),
        ("toml a scalar of a megabyte", format!("name = \"{}\"\n", "x".repeat(MEGABYTE - 20))),
        ("toml a scalar never closed", format!("name = \"{}", "x".repeat(MEGABYTE - 20))),
        ("toml a megabyte of NUL", "\0".repeat(MEGABYTE)),
        ("toml a megabyte of errors", "= = =\n".repeat(MEGABYTE / 6)),
        ("toml a megabyte of open quotes", "a = \"\n".repeat(MEGABYTE / 6)),
        ("toml a long list", format!("a = [{numbers}]\n")),
    ]);
}

#[timed_test]
fn texts_with_many_names() {
    let names = |bytes| many("  name#: { base: B1 }\n", bytes);
    let models = many("  m#: { id: m }\n", 380_000);
    let wrong: String = many("'nme#', ", 400_000);
    let axis: String = many("name#, ", 400_000);
    bounded(&[
        ("many keys", many("key#: 1\n", MEGABYTE)),
        ("many keys in a table", format!("{HEAD}phases: {{ {} }}\n", many("key#: 1, ", MEGABYTE - 200))),
        ("many duplicates of one key", "name: a\n".repeat(MEGABYTE / 8)),
        ("many duplicates of many keys", format!("{0}{0}", many("key#: 1\n", MEGABYTE / 2))),
        ("toml many keys", many("key# = 1\n", MEGABYTE)),
        ("toml many duplicates", "name = 1\n".repeat(MEGABYTE / 9)),
        ("toml many duplicates of many keys", format!("{0}{0}", many("key# = 1\n", MEGABYTE / 2))),
        ("toml many duplicate headers", "[a]\nb = 1\n".repeat(MEGABYTE / 10)),
        (
            "many scenarios",
            format!("{HEAD}scenarios:\n{}sweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n", names(900_000)),
        ),
        (
            "wrong names against many names",
            format!(
                "{HEAD}scenarios:\n{}sweeps: {{ s: {{ matrix: {{ qps: 1, scenario: [{wrong}] }} }} }}\n",
                names(400_000)
            ),
        ),
        (
            "right names against many names",
            format!(
                "{HEAD}scenarios:\n{}sweeps: {{ s: {{ matrix: {{ qps: 1, scenario: [{axis}] }} }} }}\n",
                names(400_000)
            ),
        ),
        (
            "models that a sweep does not choose",
            format!(
                "sweepline: 1\nname: a\nendpoints: {{ e: {{ engine: mock }} }}\nmodels:\n{models}sweeps:\n{}",
                many("  s#: { matrix: { qps: 1 } }\n", 600_000)
            ),
        ),
        (
            "a chain of bases",
            format!("{HEAD}scenarios:\n  s0: {{ base: B1 }}\n{}", chain("  s#: { base: s@ }\n", 900_000)),
        ),
        (
            "bases in a circle",
            format!("{HEAD}scenarios:\n  s0: {{ base: s20000 }}\n{}", chain("  s#: { base: s@ }\n", 900_000)),
        ),
        (
            "a chain of sweeps",
            format!(
                "{HEAD}sweeps:\n  s0: {{ matrix: {{ qps: 1 }} }}\n{}",
                chain("  s#: { after: s@, matrix: { qps: 1 } }\n", 900_000)
            ),
        ),
        (
            "sweeps in a circle",
            format!(
                "{HEAD}sweeps:\n  s0: {{ after: s15000, matrix: {{ qps: 1 }} }}\n{}",
                chain("  s#: { after: s@, matrix: { qps: 1 } }\n", 900_000)
            ),
        ),
        ("sweeps after all sweeps", format!("{HEAD}sweeps:\n{}", after_all(350))),
    ]);
}

/// Returns [`many`] from 1, with the previous number in place of `@`.
fn chain(one: &str, bytes: usize) -> String {
    let mut text = String::new();
    for at in 1usize.. {
        let next = one.replace('#', &at.to_string()).replace('@', &(at - 1).to_string());
        if text.len() + next.len() > bytes {
            return text;
        }
        text.push_str(&next);
    }
    text
}

/// Returns sweeps, each of which waits for all sweeps before it.
fn after_all(count: usize) -> String {
    let sweep = |at: usize| {
        let before: Vec<String> = (0..at).map(|other| format!("s{other}")).collect();
        format!("  s{at}: {{ after: [{}], matrix: {{ qps: 1 }} }}\n", before.join(", "))
    };
    (0..count).map(sweep).collect()
}

#[timed_test]
fn texts_with_many_mistakes() {
    let excludes = many("{ qps: # }, ", 500_000);
    let product = many("{ scenario: A1, qps: #, temperature: 0.1 }, ", 600_000);
    let rates = many("#.5, ", 200_000);
    let anything = |bytes| many("{ qps: #.5, batch_size: # }, ", bytes);
    bounded(&[
        ("an axis of one value", matrix(&format!("qps: [{}]", "1,".repeat(40_000)))),
        ("an axis of wrong values", matrix(&format!("qps: [{}]", "x,".repeat(40_000)))),
        ("an axis of tables", matrix(&format!("qps: [{}]", "{},".repeat(20_000)))),
        ("many wrong axes", matrix(&many("axis#: [1], ", 600_000))),
        ("many nulls", many("key#:\n", 300_000)),
        (
            "many wrong endpoints",
            format!("{HEAD}sweeps: {{}}\nendpoints:\n{}", many("  e#: { url: x, engine: y }\n", 900_000)),
        ),
        ("many wrong limits", format!("{HEAD}scenarios:\n{}", many("  s#: { prompt_tokens: 1, turns: x }\n", 900_000))),
        (
            "dead excludes",
            format!("{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [1000000] }}, exclude: [{excludes}] }} }}\n"),
        ),
        (
            "excludes of a long axis",
            format!(
                "{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [{rates}] }}, exclude: [{}] }} }}\n",
                many("{ qps: #.5 }, ", 400_000)
            ),
        ),
        (
            "excludes of many axes",
            format!(
                "{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [{}], batch_size: [{}], turns: [1, 2, 3] }}, exclude: [{}] }} }}\n",
                many("#.5, ", 6_000),
                many("1#, ", 6_000),
                anything(900_000)
            ),
        ),
        (
            "excludes of one cell",
            format!(
                "{HEAD}sweeps: {{ s: {{ matrix: {{ scenario: [A1, B1], qps: [0.5], temperature: [0.1] }}, exclude: [{product}] }} }}\n"
            ),
        ),
        (
            "an axis of a million values by another",
            matrix(&format!("qps: [{}], prompt_tokens: [{}]", many("#.5, ", 200_000), many("1#, ", 200_000))),
        ),
        (
            "turns and scenarios",
            format!(
                "{HEAD}scenarios:\n{}sweeps: {{ s: {{ matrix: {{ qps: 1, scenario: [{}], turns: [{}] }} }} }}\n",
                many("  n#: { base: B1 }\n", 250_000),
                many("n#, ", 80_000),
                many("#, ", 60_000)
            ),
        ),
    ]);
}
