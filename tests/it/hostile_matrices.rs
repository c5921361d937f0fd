//! Tests parts of the language that expand a small text into a large one: templates that double, long zips,
//! wide ranges, and the rules of a matrix multiplied by its values. Each is just under the limit on a plan's
//! values, so that `check` must process all of it.

use super::hostile_plans::{HEAD, MEGABYTE, bounded_and_read as bounded, many, matrix};

/// Returns `one` repeated, with 0 to `count` - 1 in place of `#`.
fn first(count: usize, one: &str) -> String {
    (0..count).map(|at| one.replace('#', &at.to_string())).collect()
}

/// Returns a plan with these lines of `vars`, with the previous number in place of `@`; the first line is
/// complete.
fn vars(whole: &str, count: usize, one: &str) -> String {
    let line = |at: usize| one.replace('#', &at.to_string()).replace('@', &(at - 1).to_string());
    let lines: String = (1..count).map(line).collect();
    format!("{HEAD}vars:\n  v0: {whole}\n{lines}sweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n")
}

/// Returns a plan with these notes in quotes, produced by templates.
fn notes(text: &str) -> String {
    format!("{HEAD}vars: {{ a: x, n: 1 }}\nnotes: \"{text}\"\nsweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n")
}

/// Returns a plan with these elements of a list of templates.
fn listed(elements: &str) -> String {
    format!("{HEAD}sweeps:\n  s:\n    matrix:\n      qps:\n{elements}")
}

#[test]
fn templates_that_grow() {
    let long = "x".repeat(400_000);
    bounded(&[
        ("texts that double", vars("abcdefgh", 12_000, "  v#: \"{{ v@ }}{{ v@ }}\"\n")),
        ("texts that double in an expression", vars("abcdefgh", 12_000, "  v#: \"{{ v@ ~ v@ }}\"\n")),
        ("lists that double", vars("[1, 2]", 12_000, "  v#: \"{{ [v@, v@] }}\"\n")),
        ("a long text again and again", vars(&long, 12_000, "  v#: \"{{ v0 }}\"\n")),
        ("a long list again and again", vars(&format!("[{}]", "1, ".repeat(20_000)), 12_000, "  v#: \"{{ v0 }}\"\n")),
        ("a long text in expressions", vars(&long, 12_000, "  v#: \"{{ v0|length }}\"\n")),
        ("a chain of variables", vars("1", 24_000, "  v#: \"{{ v@ + 1 }}\"\n")),
        ("variables in a circle", vars("\"{{ v23999 }}\"", 24_000, "  v#: \"{{ v@ + 1 }}\"\n")),
        ("many variables in one template", {
            let uses = first(24_000, "{{ v# }}");
            vars("1", 24_000, "  v#: 1\n").replace("models:", &format!("notes: \"{uses}\"\nmodels:"))
        }),
    ]);
}

#[test]
fn templates_that_are_long() {
    bounded(&[
        ("one expression of a megabyte", notes(&format!("{{{{ {}1 }}}}", "1 + ".repeat(262_000)))),
        ("braces never closed", notes(&"{{ ".repeat(340_000))),
        ("statements", notes(&"{% for a in b %}".repeat(60_000))),
        ("many templates", listed(&first(49_000, "        - \"{{ 1 }}\"\n"))),
        ("long expressions", listed(&format!("        - \"{{{{ {}1 }}}}\"\n", "1+".repeat(480)).repeat(1_000))),
        (
            "brackets in expressions",
            listed(&format!("        - \"{{{{ {}1{} }}}}\"\n", "[".repeat(480), "]".repeat(480)).repeat(1_000)),
        ),
        ("long ranges in expressions", listed(&many("        - \"{{ range(100000000) }}\"\n", MEGABYTE - 300))),
        ("texts times numbers", listed(&many("        - \"{{ 'a' * 100000000 }}\"\n", MEGABYTE - 300))),
        ("unknown variables against many", {
            let wrong = first(20_000, "        - \"{{ w# }}\"\n");
            listed(&wrong).replace("models:", &format!("vars: {{ {} }}\nmodels:", first(10_000, "v#: 1, ")))
        }),
    ]);
}

#[test]
fn zips_and_ranges() {
    let zip = |prompt: &str, output: &str| {
        matrix(&format!("qps: 1, shape: {{ zip: {{ prompt_tokens: [{prompt}], output_tokens: [{output}] }} }}"))
    };
    let long = first(24_900, "2#, ");
    let range = "{ from: 16, to: 9999, step: 1 }";
    bounded(&[
        ("a long zip", zip(&long, &long)),
        ("a long zip of one pair", zip(&"64, ".repeat(24_900), &"64, ".repeat(24_900))),
        ("a long zip of unequal lists", zip(&long, &first(24_800, "2#, "))),
        ("a long zip of wrong values", zip(&"x, ".repeat(24_900), &"y, ".repeat(24_900))),
        ("many zips", matrix(&first(3_800, "z#: { zip: { prompt_tokens: [64, 128], output_tokens: [1, 2] } }, "))),
        (
            "a long list of tables",
            matrix(&format!("qps: 1, shape: [{}]", first(9_900, "{ prompt_tokens: 2#, output_tokens: 2# }, "))),
        ),
        ("many ranges on an axis", matrix(&format!("qps: [{}]", first(7_000, "{ from: 1, to: 9000, step: 1 }, ")))),
        (
            "many ranges by small factors",
            matrix(&format!("qps: [{}]", first(7_000, "{ from: 1, to: 1000000, times: 1.001 }, "))),
        ),
        ("many ranges of one value", matrix(&format!("qps: [{}]", first(7_000, "{ from: 2#, to: 2#, step: 1 }, ")))),
        (
            "wide ranges by each other",
            matrix(&format!(
                "qps: {range}, batch_size: {range}, prompt_tokens: {range}, output_tokens: {range}, turns: {range}"
            )),
        ),
    ]);
}

/// Returns a plan whose matrix has 2 or 3 axes of thousands of values, followed by `rules`.
fn ruled(rules: &str) -> String {
    let axes = "qps: { from: 1, to: 9999, step: 1 }, batch_size: { from: 1, to: 9999, step: 1 }";
    format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }}, {rules} }} }}\n")
}

#[test]
fn rules_times_values() {
    let pairs = first(4_000, "{ value: 2#, when: { qps: # } }, ");
    let tangled = |rules: &str| {
        let axes = format!("qps: {{ from: 1, to: 4000, step: 1 }}, batch_size: [{pairs}]");
        format!("{HEAD}sweeps: {{ s: {{ matrix: {{ {axes} }}, {rules} }} }}\n")
    };
    let extend = |one: &str, count| format!("extend: [{}]", first(count, one));
    let with = "with: { temperature: 0.1 } }, ";
    bounded(&[
        ("extends of many cells", ruled(&extend(&format!("{{ when: {{ qps: 2#, batch_size: 2# }}, {with}"), 4_500))),
        ("extends by ranges", ruled(&extend(&format!("{{ when: {{ qps: {{ from: 1, to: # }} }}, {with}"), 3_700))),
        ("extends of tangled axes", tangled(&extend(&format!("{{ when: {{ qps: #, batch_size: 2# }}, {with}"), 1_600))),
        ("excludes of tangled axes", tangled(&format!("exclude: [{}]", first(3_000, "{ qps: #, batch_size: 2# }, ")))),
        ("excludes of every value", ruled(&format!("exclude: [{}]", first(6_900, "{ qps: { from: #, to: # } }, ")))),
        ("cells added to many", ruled(&format!("add: [{}]", first(6_900, "{ qps: 2#, batch_size: 4, turns: 3 }, ")))),
        (
            "cells added that an extend may make",
            ruled(&format!(
                "{}, add: [{}]",
                extend(&format!("{{ when: {{ qps: 2# }}, {with}"), 2_000),
                first(3_400, "{ qps: 2#, batch_size: 4, temperature: 0.1 }, ")
            )),
        ),
        (
            "conditions of many values",
            matrix(&format!(
                "qps: {{ from: 1, to: 9999, step: 1 }}, batch_size: [{}]",
                first(6_900, "{ value: 2#, when: { qps: # } }, ")
            )),
        ),
        (
            "conditions on conditions",
            matrix(&format!(
                "turns: {{ from: 1, to: 3400, step: 1 }}, qps: [{}], batch_size: [{}]",
                first(3_400, "{ value: 2#, when: { turns: # } }, "),
                first(3_400, "{ value: 2#, when: { qps: 2# } }, ")
            )),
        ),
        (
            "dead conditions",
            matrix(&format!(
                "qps: {{ from: 1, to: 9999, step: 1 }}, batch_size: [{}]",
                first(6_900, "{ value: 2#, when: { qps: 1.# } }, ")
            )),
        ),
    ]);
}
