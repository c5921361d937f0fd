//! Hostile plans of any size up to the largest that is read, and the resources that `check` uses for them.
//! Each text is as large, or has as many values, as its size allows. `cargo test` checks small ones, the
//! measured suite checks those of a megabyte.

use std::fmt::Write as _;
use std::fs::File;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use super::{Lab, peak_memory};

/// The largest plan that is read, in bytes.
pub const MEGABYTE: usize = 1 << 20;

/// Texts with their names. `check` reads those whose name begins with `toml` as TOML.
pub type Texts = Vec<(&'static str, String)>;

/// The part of a plan before the hostile part.
const HEAD: &str = "sweepline: 1\nname: hostile\nendpoints: { e: { engine: mock } }\nmodels: { m: { id: m } }\n";

/// Texts of a megabyte are reduced to a size by making all counts smaller in the same proportion.
#[derive(Clone, Copy)]
struct Size(usize);

impl Size {
    /// Returns what remains of a count or of a number of bytes.
    fn of(self, count: usize) -> usize {
        count * self.0 / MEGABYTE
    }

    /// Returns `one` repeated as often as fits into the part of `bytes` that remains, with 0, 1, 2, … in
    /// place of `#`, and the previous number in place of `@`.
    fn many(self, one: &str, bytes: usize) -> String {
        many_from(0, one, self.of(bytes))
    }

    /// Returns [`many`](Self::many) from 1 on.
    fn chain(self, one: &str, bytes: usize) -> String {
        many_from(1, one, self.of(bytes))
    }

    /// Returns `one` repeated, with 0 to the part of `count` that remains in place of `#`.
    fn first(self, count: usize, one: &str) -> String {
        (0..self.of(count)).map(|at| one.replace('#', &at.to_string())).collect()
    }

    /// Returns `one` repeated `count` times, or the part of it that remains.
    fn repeat(self, one: &str, count: usize) -> String {
        one.repeat(self.of(count))
    }

    /// Returns `open` repeated, a middle, and `close` repeated equally often.
    fn nested(self, before: &str, open: &str, close: &str, depth: usize) -> String {
        format!("{before}{}x{}\n", self.repeat(open, depth), self.repeat(close, depth))
    }

    /// Returns nested blocks, each indented by one more space, as deep as fits.
    fn deep_block(self, line: &str) -> String {
        let mut text = String::new();
        let mut depth = 0;
        while text.len() + depth + line.len() < self.0 {
            let _ = writeln!(text, "{}{line}", " ".repeat(depth));
            depth += 1;
        }
        text
    }

    /// Returns sweeps, each of which waits for all sweeps before it, in a text of at most `bytes`.
    fn after_all(self, bytes: usize) -> String {
        let mut text = String::new();
        let mut before = String::new();
        for at in 0.. {
            let next = format!("  s{at}: {{ after: [{before}], matrix: {{ qps: 1 }} }}\n");
            if text.len() + next.len() > self.of(bytes) {
                break;
            }
            text.push_str(&next);
            let _ = write!(before, "s{at}, ");
        }
        text
    }

    /// Returns a plan with these lines of `vars`, with the previous number in place of `@`; the first line
    /// is complete.
    fn vars(self, whole: &str, count: usize, one: &str) -> String {
        let line = |at: usize| one.replace('#', &at.to_string()).replace('@', &(at - 1).to_string());
        let lines: String = (1..self.of(count)).map(line).collect();
        format!("{HEAD}vars:\n  v0: {whole}\n{lines}sweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n")
    }
}

fn many_from(start: usize, one: &str, bytes: usize) -> String {
    let mut text = String::new();
    for at in start.. {
        let next = one.replace('#', &at.to_string()).replace('@', &at.saturating_sub(1).to_string());
        if text.len() + next.len() > bytes {
            break;
        }
        text.push_str(&next);
    }
    text
}

/// Returns a whole plan whose only matrix has these `axes`.
fn matrix(axes: &str) -> String {
    format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }} }} }}\n")
}

/// Returns a plan with these notes in quotes, produced by templates.
fn notes(text: &str) -> String {
    format!("{HEAD}vars: {{ a: x, n: 1 }}\nnotes: \"{text}\"\nsweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n")
}

/// Returns a plan with these elements of a list of templates.
fn listed(elements: &str) -> String {
    format!("{HEAD}sweeps:\n  s:\n    matrix:\n      qps:\n{elements}")
}

/// Returns a plan whose matrix has 2 or 3 axes of thousands of values, followed by `rules`.
fn ruled(rules: &str) -> String {
    let axes = "qps: { from: 1, to: 9999, step: 1 }, batch_size: { from: 1, to: 9999, step: 1 }";
    format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }}, {rules} }} }}\n")
}

/// Returns a plan whose axes of prompts and responses have these values, taken in pairs.
fn zip(prompt: &str, output: &str) -> String {
    matrix(&format!("qps: 1, shape: {{ zip: {{ prompt_tokens: [{prompt}], output_tokens: [{output}] }} }}"))
}
/// Returns texts with aliases and merges, which stand for text that is much longer.
pub fn aliases_that_unfold(size: usize) -> Texts {
    let size = Size(size);
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut laughs = "m0: &m0 { k0: v }\n".to_owned();
    for level in 1..40 {
        let _ = writeln!(bomb, "a{level}: &a{level} [{}]", format!("*a{}, ", level - 1).repeat(10));
        let _ = writeln!(laughs, "m{level}: &m{level} {{ <<: [*m{0}, *m{0}], k{level}: *m{0} }}", level - 1);
    }
    let wide = format!("a: &a [{}]\nb: [{}]\n", size.repeat("1,", 20_000), size.repeat("*a,", 200_000));
    let flat =
        format!("{HEAD}a: &a x\nsweeps: {{ s: {{ matrix: {{ batch_size: [{}] }} }} }}\n", size.repeat("*a,", 40_000));
    vec![
        ("an alias bomb", bomb),
        ("a billion laughs by merges", laughs),
        ("a long list many times", wide),
        ("an alias to a text on an axis", flat),
        ("an alias in itself", "a: &a { b: *a }\n".to_owned()),
        ("many anchors", size.many("k#: &k# x\n", MEGABYTE)),
        (
            "many merges of one table",
            format!("{HEAD}scenarios:\n  b: &b {{ base: B1 }}\n{}", size.many("  s#: { <<: *b }\n", MEGABYTE - 200)),
        ),
    ]
}

/// Returns texts with deep nesting, closed and unclosed.
pub fn texts_that_nest(size: usize) -> Texts {
    let size = Size(size);
    vec![
        ("lists in lists", size.nested("a: ", "[", "]", 100_000)),
        ("tables in tables", size.nested("a: ", "{a: ", "}", 100_000)),
        ("lists never closed", format!("a: {}", "[".repeat(size.0 - 10))),
        ("tables never closed", format!("a: {}", size.repeat("{ a: ", 200_000))),
        ("dashes", format!("a: {}", size.repeat("- ", 500_000))),
        ("deep blocks", size.deep_block("a:")),
        ("deep lists in blocks", size.deep_block("- a:")),
        ("questions", format!("{}x", size.repeat("? ", 500_000))),
        ("toml lists in lists", size.nested("a = ", "[", "]", 100_000)),
        ("toml lists never closed", format!("a = {}", "[".repeat(size.0 - 10))),
        ("toml tables in tables", format!("a = {}", size.repeat("{ a = ", 170_000))),
        ("toml dotted keys", format!("{}b = 1", size.repeat("a.", 10_000))),
        ("toml many dotted keys", format!("{}b = 1", size.repeat("a.", 500_000))),
        ("toml dotted headers", format!("[{}b]", size.repeat("a.", 500_000))),
        ("toml many headers that deepen", size.many("[a.b.c.d.e.f.g.h#]\n", MEGABYTE)),
    ]
}

/// Returns texts with few but long, or many but senseless parts.
pub fn texts_that_are_long(size: usize) -> Texts {
    let size = Size(size);
    let numbers = size.many("#, ", 300_000);
    vec![
        ("a long scalar", format!("name: {}\n", "x".repeat(size.0 - 10))),
        ("a quoted scalar never closed", format!("name: \"{}", "x".repeat(size.0 - 10))),
        ("a long key", format!("{}: 1\n", "x".repeat(size.0 - 10))),
        ("a block scalar", format!("name: |\n{}", size.repeat("  line\n", 140_000))),
        ("spaces", " ".repeat(size.0)),
        ("newlines", "\n".repeat(size.0)),
        ("tabs", "\t".repeat(size.0)),
        ("NUL", "\0".repeat(size.0)),
        ("byte order marks", "\u{feff}".repeat(size.0 / 3)),
        ("colons", ":".repeat(size.0)),
        ("open quotes", "\"".repeat(size.0)),
        ("comments", "# x\n".repeat(size.0 / 4)),
        ("invalid escapes", format!("name: \"{}\"\n", "\\q".repeat(size.0 / 2 - 10))),
        ("URLs with passwords", size.many("# http://u:p#@h ?key=v#\n", MEGABYTE)),
        ("secrets", format!("{HEAD}notes:\n{}", size.many("  - { api_key: sk-abcdefghijkl# }\n", MEGABYTE - 200))),
        ("lines that look like keys", size.many("api_key: sk-abcdefghijkl#\n", MEGABYTE)),
        ("broken lines that look like keys", size.many("api_key: sk-abcdefghijkl# [\n", MEGABYTE)),
        ("a long axis", matrix(&format!("qps: [{numbers}]"))),
        ("toml a long scalar", format!("name = \"{}\"\n", "x".repeat(size.0 - 20))),
        ("toml a scalar never closed", format!("name = \"{}", "x".repeat(size.0 - 20))),
        ("toml NUL", "\0".repeat(size.0)),
        ("toml errors", "= = =\n".repeat(size.0 / 6)),
        ("toml open quotes", "a = \"\n".repeat(size.0 / 6)),
        ("toml a long list", format!("a = [{numbers}]\n")),
    ]
}

/// Returns texts with many names and references between them.
pub fn texts_with_many_names(size: usize) -> Texts {
    let size = Size(size);
    let names = |bytes| size.many("  name#: { base: B1 }\n", bytes);
    let models = size.many("  m#: { id: m }\n", 380_000);
    let wrong: String = size.many("'nme#', ", 400_000);
    let axis: String = size.many("name#, ", 400_000);
    vec![
        ("many keys", size.many("key#: 1\n", MEGABYTE)),
        ("many keys in a table", format!("{HEAD}phases: {{ {} }}\n", size.many("key#: 1, ", MEGABYTE - 200))),
        ("many duplicates of one key", "name: a\n".repeat(size.0 / 8)),
        ("many duplicates of many keys", format!("{0}{0}", size.many("key#: 1\n", MEGABYTE / 2))),
        ("toml many keys", size.many("key# = 1\n", MEGABYTE)),
        ("toml many duplicates", "name = 1\n".repeat(size.0 / 9)),
        ("toml many duplicates of many keys", format!("{0}{0}", size.many("key# = 1\n", MEGABYTE / 2))),
        ("toml many duplicate headers", "[a]\nb = 1\n".repeat(size.0 / 10)),
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
                size.many("  s#: { matrix: { qps: 1 } }\n", 600_000)
            ),
        ),
        (
            "a chain of bases",
            format!("{HEAD}scenarios:\n  s0: {{ base: B1 }}\n{}", size.chain("  s#: { base: s@ }\n", 900_000)),
        ),
        (
            "bases in a circle",
            format!(
                "{HEAD}scenarios:\n  s0: {{ base: s{} }}\n{}",
                size.of(20_000),
                size.chain("  s#: { base: s@ }\n", 900_000)
            ),
        ),
        (
            "a chain of sweeps",
            format!(
                "{HEAD}sweeps:\n  s0: {{ matrix: {{ qps: 1 }} }}\n{}",
                size.chain("  s#: { after: s@, matrix: { qps: 1 } }\n", 900_000)
            ),
        ),
        (
            "sweeps in a circle",
            format!(
                "{HEAD}sweeps:\n  s0: {{ after: s{}, matrix: {{ qps: 1 }} }}\n{}",
                size.of(15_000),
                size.chain("  s#: { after: s@, matrix: { qps: 1 } }\n", 900_000)
            ),
        ),
        ("sweeps after all sweeps", format!("{HEAD}sweeps:\n{}", size.after_all(370_000))),
    ]
}

/// Returns texts with many errors, and many rules that exclude cells.
pub fn texts_with_many_mistakes(size: usize) -> Texts {
    let size = Size(size);
    let excludes = size.many("{ qps: # }, ", 500_000);
    let product = size.many("{ scenario: A1, qps: #, temperature: 0.1 }, ", 600_000);
    let rates = size.many("#.5, ", 200_000);
    let anything = |bytes| size.many("{ qps: #.5, batch_size: # }, ", bytes);
    vec![
        ("an axis of one value", matrix(&format!("qps: [{}]", size.repeat("1,", 40_000)))),
        ("an axis of wrong values", matrix(&format!("qps: [{}]", size.repeat("x,", 40_000)))),
        ("an axis of tables", matrix(&format!("qps: [{}]", size.repeat("{},", 20_000)))),
        ("many wrong axes", matrix(&size.many("axis#: [1], ", 600_000))),
        ("many nulls", size.many("key#:\n", 300_000)),
        (
            "many wrong endpoints",
            format!("{HEAD}sweeps: {{}}\nendpoints:\n{}", size.many("  e#: { url: x, engine: y }\n", 900_000)),
        ),
        (
            "many wrong limits",
            format!("{HEAD}scenarios:\n{}", size.many("  s#: { prompt_tokens: 1, turns: x }\n", 900_000)),
        ),
        (
            "dead excludes",
            format!("{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [1000000] }}, exclude: [{excludes}] }} }}\n"),
        ),
        (
            "excludes of a long axis",
            format!(
                "{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [{rates}] }}, exclude: [{}] }} }}\n",
                size.many("{ qps: #.5 }, ", 400_000)
            ),
        ),
        (
            "excludes of many axes",
            format!(
                "{HEAD}sweeps: {{ s: {{ matrix: {{ qps: [{}], batch_size: [{}], turns: [1, 2, 3] }}, exclude: [{}] }} }}\n",
                size.many("#.5, ", 6_000),
                size.many("1#, ", 6_000),
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
            "an axis of many values by another",
            matrix(&format!("qps: [{}], prompt_tokens: [{}]", size.many("#.5, ", 200_000), size.many("1#, ", 200_000))),
        ),
        (
            "turns and scenarios",
            format!(
                "{HEAD}scenarios:\n{}sweeps: {{ s: {{ matrix: {{ qps: 1, scenario: [{}], turns: [{}] }} }} }}\n",
                size.many("  n#: { base: B1 }\n", 250_000),
                size.many("n#, ", 80_000),
                size.many("#, ", 60_000)
            ),
        ),
    ]
}

/// Returns texts with variables that become longer from one to the next.
pub fn templates_that_grow(size: usize) -> Texts {
    let size = Size(size);
    let long = size.repeat("x", 400_000);
    vec![
        ("texts that double", size.vars("abcdefgh", 12_000, "  v#: \"{{ v@ }}{{ v@ }}\"\n")),
        ("texts that double in an expression", size.vars("abcdefgh", 12_000, "  v#: \"{{ v@ ~ v@ }}\"\n")),
        ("lists that double", size.vars("[1, 2]", 12_000, "  v#: \"{{ [v@, v@] }}\"\n")),
        ("a long text again and again", size.vars(&long, 12_000, "  v#: \"{{ v0 }}\"\n")),
        (
            "a long list again and again",
            size.vars(&format!("[{}]", size.repeat("1, ", 20_000)), 12_000, "  v#: \"{{ v0 }}\"\n"),
        ),
        ("a long text in expressions", size.vars(&long, 12_000, "  v#: \"{{ v0|length }}\"\n")),
        ("a chain of variables", size.vars("1", 24_000, "  v#: \"{{ v@ + 1 }}\"\n")),
        (
            "variables in a circle",
            size.vars(&format!("\"{{{{ v{} }}}}\"", size.of(24_000) - 1), 24_000, "  v#: \"{{ v@ + 1 }}\"\n"),
        ),
        ("many variables in one template", {
            let uses = size.first(24_000, "{{ v# }}");
            size.vars("1", 24_000, "  v#: 1\n").replace("models:", &format!("notes: \"{uses}\"\nmodels:"))
        }),
    ]
}

/// Returns texts with long and many templates.
pub fn templates_that_are_long(size: usize) -> Texts {
    let size = Size(size);
    vec![
        ("one long expression", notes(&format!("{{{{ {}1 }}}}", size.repeat("1 + ", 262_000)))),
        ("braces never closed", notes(&size.repeat("{{ ", 340_000))),
        ("statements", notes(&size.repeat("{% for a in b %}", 60_000))),
        ("many templates", listed(&size.first(49_000, "        - \"{{ 1 }}\"\n"))),
        ("long expressions", listed(&size.repeat(&format!("        - \"{{{{ {}1 }}}}\"\n", "1+".repeat(480)), 1_000))),
        (
            "brackets in expressions",
            listed(&size.repeat(&format!("        - \"{{{{ {}1{} }}}}\"\n", "[".repeat(480), "]".repeat(480)), 1_000)),
        ),
        ("long ranges in expressions", listed(&size.many("        - \"{{ range(100000000) }}\"\n", MEGABYTE - 300))),
        ("texts times numbers", listed(&size.many("        - \"{{ 'a' * 100000000 }}\"\n", MEGABYTE - 300))),
        ("unknown variables against many", {
            let wrong = size.first(20_000, "        - \"{{ w# }}\"\n");
            listed(&wrong).replace("models:", &format!("vars: {{ {} }}\nmodels:", size.first(10_000, "v#: 1, ")))
        }),
    ]
}

/// Returns texts with long zips and wide ranges. They, like the rules below, are just under the limit on a plan's values if the size is
/// a megabyte, so that `check` must process all of them.
pub fn zips_and_ranges(size: usize) -> Texts {
    let size = Size(size);
    let long = size.first(24_900, "2#, ");
    let range = "{ from: 16, to: 9999, step: 1 }";
    vec![
        ("a long zip", zip(&long, &long)),
        ("a long zip of one pair", zip(&size.repeat("64, ", 24_900), &size.repeat("64, ", 24_900))),
        ("a long zip of unequal lists", zip(&long, &size.first(24_800, "2#, "))),
        ("a long zip of wrong values", zip(&size.repeat("x, ", 24_900), &size.repeat("y, ", 24_900))),
        ("many zips", matrix(&size.first(3_800, "z#: { zip: { prompt_tokens: [64, 128], output_tokens: [1, 2] } }, "))),
        (
            "a long list of tables",
            matrix(&format!("qps: 1, shape: [{}]", size.first(9_900, "{ prompt_tokens: 2#, output_tokens: 2# }, "))),
        ),
        (
            "many ranges on an axis",
            matrix(&format!("qps: [{}]", size.first(7_000, "{ from: 1, to: 9000, step: 1 }, "))),
        ),
        (
            "many ranges by small factors",
            matrix(&format!("qps: [{}]", size.first(7_000, "{ from: 1, to: 1000000, times: 1.001 }, "))),
        ),
        (
            "many ranges of one value",
            matrix(&format!("qps: [{}]", size.first(7_000, "{ from: 2#, to: 2#, step: 1 }, "))),
        ),
        (
            "wide ranges by each other",
            matrix(&format!(
                "qps: {range}, batch_size: {range}, prompt_tokens: {range}, output_tokens: {range}, turns: {range}"
            )),
        ),
    ]
}

/// Returns texts with rules of a matrix multiplied by its values.
pub fn rules_times_values(size: usize) -> Texts {
    let size = Size(size);
    let pairs = size.first(4_000, "{ value: 2#, when: { qps: # } }, ");
    let tangled = |rules: &str| {
        let axes = format!("qps: {{ from: 1, to: {}, step: 1 }}, batch_size: [{pairs}]", size.of(4_000));
        format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }}, {rules} }} }}\n")
    };
    let extend = |one: &str, count| format!("extend: [{}]", size.first(count, one));
    let with = "with: { temperature: 0.1 } }, ";
    vec![
        ("extends of many cells", ruled(&extend(&format!("{{ when: {{ qps: 2#, batch_size: 2# }}, {with}"), 4_500))),
        ("extends by ranges", ruled(&extend(&format!("{{ when: {{ qps: {{ from: 1, to: # }} }}, {with}"), 3_700))),
        ("extends of tangled axes", tangled(&extend(&format!("{{ when: {{ qps: #, batch_size: 2# }}, {with}"), 1_600))),
        (
            "excludes of tangled axes",
            tangled(&format!("exclude: [{}]", size.first(3_000, "{ qps: #, batch_size: 2# }, "))),
        ),
        (
            "excludes of every value",
            ruled(&format!("exclude: [{}]", size.first(6_900, "{ qps: { from: #, to: # } }, "))),
        ),
        (
            "cells added to many",
            ruled(&format!("add: [{}]", size.first(6_900, "{ qps: 2#, batch_size: 4, turns: 3 }, "))),
        ),
        (
            "cells added that an extend may make",
            ruled(&format!(
                "{}, add: [{}]",
                extend(&format!("{{ when: {{ qps: 2# }}, {with}"), 2_000),
                size.first(3_400, "{ qps: 2#, batch_size: 4, temperature: 0.1 }, ")
            )),
        ),
        (
            "conditions of many values",
            matrix(&format!(
                "qps: {{ from: 1, to: 9999, step: 1 }}, batch_size: [{}]",
                size.first(6_900, "{ value: 2#, when: { qps: # } }, ")
            )),
        ),
        (
            "conditions on conditions",
            matrix(&format!(
                "turns: {{ from: 1, to: {}, step: 1 }}, qps: [{}], batch_size: [{}]",
                size.of(3_400),
                size.first(3_400, "{ value: 2#, when: { turns: # } }, "),
                size.first(3_400, "{ value: 2#, when: { qps: 2# } }, ")
            )),
        ),
        (
            "dead conditions",
            matrix(&format!(
                "qps: {{ from: 1, to: 9999, step: 1 }}, batch_size: [{}]",
                size.first(6_900, "{ value: 2#, when: { qps: 1.# } }, ")
            )),
        ),
    ]
}

/// The resources that the program used for one text.
struct Taken {
    /// The CPU time.
    time: Duration,
    /// The peak memory, in bytes.
    memory: u64,
    /// The beginning of the program's error output.
    said: String,
}

/// Checks a text and returns the resources used. A panic, a stack overflow or a kill makes the test fail.
fn check(name: &str, text: &str, more: &[&str]) -> Taken {
    assert!(text.len() <= MEGABYTE, "{name} has {} bytes", text.len());
    let lab = Lab::new();
    let file = if name.starts_with("toml") { "plan.toml" } else { "plan.yaml" };
    lab.write(file, text);
    let into = |name: &str| File::create(lab.path().join(name)).unwrap();
    let mut command = lab.command(&["check", file]);
    command.args(more).stdout(into("out")).stderr(into("err"));
    let (status, time, memory) = wait_and_watch(&mut command.spawn().unwrap());
    let said = std::fs::read(lab.path().join("err")).unwrap();
    let said = String::from_utf8_lossy(&said[..said.len().min(2_000)]).into_owned();
    assert!(matches!(status.code(), Some(0 | 2)), "{name}: {status} {said}");
    assert!(!said.contains("panicked"), "{name}: {said}");
    println!("{name:42} {:8} B {:>7.3} s {:>5} MB", text.len(), time.as_secs_f64(), memory / 1_000_000);
    Taken { time, memory, said }
}

/// Waits for a child and returns its status, its CPU time and its peak memory, as last read before its end.
fn wait_and_watch(child: &mut Child) -> (ExitStatus, Duration, u64) {
    let (mut time, mut memory) = (Duration::ZERO, 0);
    loop {
        time = cpu_time(child.id()).unwrap_or(time);
        memory = peak_memory(child.id()).unwrap_or(0).max(memory);
        if let Some(status) = child.try_wait().unwrap() {
            return (status, time, memory);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the CPU time of a process; `None` if the process has ended.
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// The most that `check` may use for a text.
pub struct Limits {
    /// CPU time. It still distinguishes a slow machine and a debug build from work that grows quadratically
    /// with the text.
    pub time: Duration,
    /// Memory, in bytes.
    pub memory: u64,
}

/// Checks each text and asserts the limits.
pub fn bounded(texts: &Texts, limits: &Limits, more: &[&str]) {
    for (name, text) in texts {
        within(limits, name, text, more);
    }
}

/// Like [`bounded`], for texts with few enough values to be read completely.
pub fn bounded_and_read(texts: &Texts, limits: &Limits) {
    for (name, text) in texts {
        let said = within(limits, name, text, &[]);
        assert!(!said.contains("too many values for a plan"), "{name} is rejected for its size: {said}");
    }
}

/// Checks a text, asserts the limits, and returns the beginning of the program's error output.
fn within(limits: &Limits, name: &str, text: &str, more: &[&str]) -> String {
    let Taken { time, memory, said } = check(name, text, more);
    assert!(memory < limits.memory, "{name} takes {memory} bytes");
    assert!(time < limits.time, "{name} takes {time:?}");
    said
}
