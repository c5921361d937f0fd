//! Tests of which statements of a script run.

use super::*;

/// Returns the commands that certainly run, and in brackets the commands that may run.
fn run(text: &str) -> Vec<String> {
    let script = read("x.sh", text, &Secrets::default()).unwrap();
    let one = |command: &Command| {
        let words = shown(&command.words.join(" "));
        match command.runs {
            Runs::Surely => Some(words),
            Runs::Unsure(line) => Some(format!("({line}) {words}")),
            Runs::NotUnset(line) => Some(format!("unset {line}: {words}")),
            Runs::Not => None,
        }
    };
    script.commands.iter().filter_map(one).collect()
}

#[test]
fn branches_are_taken_where_their_condition_is_known() {
    for (text, expected) in [
        ("A=1\nif [ $A = 1 ]; then B=2; f $B; elif x; then g; else h; fi\nk $B", &["f 2", "k 2"][..]),
        ("if [ \"$M\" = l ]; then L=4; else L=1; fi\nf $L", &["f $L"]),
        ("if x; then\n  f\nelse\n  g\nfi\nh", &["x", "(1) f", "(1) g", "h"]),
        ("L=1\nif x; then L=1; fi; f $L ${L:-2}", &["x", "f 1 1"]),
        ("L=1\n[ -f y ] && L=2\nf ${L:-3}", &["f $L"]),
        ("[ -z \"$X\" ] && X=5; f $X", &["f 5"]),
        ("if [ -n \"$X\" ]; then f; fi; g", &["unset 1: f", "g"]),
        ("if [ -z \"$1\" ]; then echo usage; exit 1; fi; f", &["echo usage", "f"]),
        ("cd x || exit 1\nf && g || h", &["cd x", "f", "g", "(2) h"]),
        ("false && f; true || g; h", &["h"]),
        ("[[ -n $X && -n $Y ]] || f", &["f"]),
        ("case $1 in\n a|b) X=2 ;;\n *) X=3 ;;\nesac\nf $X", &["f $X"]),
        ("M=b; case $M in a) f ;; b) g; h ;; *) k ;; esac", &["g", "h"]),
        ("while [ $# -gt 0 ]; do case $1 in --m) M=2; shift ;; esac; done; f ${M:-1}", &["f 1"]),
        ("for c in 1 2 4; do if [ $c -eq 2 ]; then continue; fi; f $c; done", &["f 1", "f 4"]),
        ("for c in 1 2 4; do ((c > 2)) && break; f $c; done; g", &["f 1", "f 2", "g"]),
        ("for c in 1 2; do x; grep y && continue; f $c; done; g", &["x", "(1) f 1", "x", "(1) f 2", "g"]),
        ("for c in 1 2; do f $c; grep y && break; done; g", &["f 1", "(1) f 2", "g"]),
        ("f\nexit 0\ng", &["f"]),
        ("break\nf", &["f"]),
        (
            "A=a/b/c,d; f ${A%/*} ${A%%/*} ${A#*/} ${A##*/} ${A%,d} ${A#x} ${X%,*}",
            &["f a/b a b/c,d c,d a/b/c a/b/c,d $X"],
        ),
        ("D=4\nf ${B:-$D} ${C:-${B:-\"$D\"}} ${E:-$X}", &["f 4 4 $X"]),
        ("u() {\n echo a\n exit 1\n}\nf", &["u( {", "echo a", "f"]),
    ] {
        let found: Vec<String> = run(text).into_iter().filter(|one| one != "shift" && one != "}").collect();
        assert_eq!(found, expected, "{text}");
    }
}
