//! Tests that the module map is valid: every `crate::` path in `src/` is an arrow that ARCHITECTURE.md
//! allows, and there is no cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each module may import. Every module may import `units`. This is the table in
/// ARCHITECTURE.md.
const ALLOWED: [(&str, &[&str]); 25] = [
    ("dataset", &[]),
    ("metrics", &[]),
    ("protocol", &[]),
    ("tls", &[]),
    ("network", &["tls"]),
    ("plan", &["dataset", "metrics", "protocol", "telemetry"]),
    ("explain", &[]),
    ("import", &["plan", "protocol"]),
    ("rows", &[]),
    ("telemetry", &["rows", "network"]),
    ("mock", &[]),
    ("expand", &["plan", "protocol"]),
    ("workload", &["plan", "dataset", "protocol"]),
    ("server", &["plan", "protocol", "rows", "telemetry", "tls", "network"]),
    ("graph", &["expand"]),
    ("engine", &["expand", "workload", "rows", "plan", "protocol", "tls", "network"]),
    ("store", &["expand", "rows", "tls"]),
    ("workers", &["expand", "rows", "plan", "engine"]),
    ("analysis", &["plan", "rows", "metrics", "telemetry"]),
    ("lint", &["plan", "protocol", "expand", "workload", "analysis", "metrics"]),
    (
        "sweep",
        &[
            "plan",
            "protocol",
            "rows",
            "expand",
            "workload",
            "server",
            "graph",
            "engine",
            "store",
            "analysis",
            "telemetry",
            "workers",
            "network",
            "tls",
        ],
    ),
    ("submit", &["plan", "expand", "store"]),
    ("export", &["plan", "expand", "store", "rows", "analysis", "metrics"]),
    ("report", &["plan", "expand", "store", "rows", "analysis", "engine", "sweep", "metrics", "telemetry", "tls"]),
    (
        "cli",
        &[
            "plan", "dataset", "explain", "import", "rows", "mock", "expand", "workload", "server", "graph", "engine",
            "store", "analysis", "lint", "sweep", "export", "report", "submit", "network",
        ],
    ),
];

/// Collects all source files in a folder and its subfolders.
pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns the modules named by `crate::a::…` or `crate::{a, b::…}` in a text.
fn imports(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let name = |s: &str| s.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => drop(found.insert(name(rest))),
            Some(group) => {
                let (mut depth, mut start) = (0, true);
                for (at, c) in group.char_indices() {
                    if start {
                        found.insert(name(&group[at..]));
                        start = false;
                    }
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        _ => {}
                    }
                }
            }
        }
    }
    found.remove("");
    found
}

fn arrows() -> BTreeMap<String, BTreeMap<String, PathBuf>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut arrows: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let from =
            relative.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        for to in imports(&fs::read_to_string(&file).unwrap()) {
            if to != from && to != "units" && from != "lib" && from != "main" {
                arrows.entry(from.clone()).or_default().insert(to, relative.to_owned());
            }
        }
    }
    arrows
}

#[test]
fn every_import_is_an_allowed_arrow() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    for (from, targets) in arrows() {
        let may = allowed.get(from.as_str()).unwrap_or_else(|| panic!("module {from} is not in the table"));
        for (to, file) in targets {
            assert!(
                may.contains(&to.as_str()),
                "src/{} imports crate::{to}, which is not allowed for {from}",
                file.display()
            );
        }
    }
}

#[test]
fn the_allowed_arrows_have_no_cycle() {
    // Returns the modules in an order in which each one imports only earlier ones. Such an order exists
    // if and only if there is no cycle.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while done.len() < ALLOWED.len() {
        let next = ALLOWED.iter().find(|(from, may)| !done.contains(from) && may.iter().all(|to| done.contains(to)));
        done.insert(next.unwrap_or_else(|| panic!("a cycle among the modules not in {done:?}")).0);
    }
}

#[test]
fn the_table_is_the_one_in_the_architecture_page() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    for (from, may) in ALLOWED {
        let may = if may.is_empty() { "nothing".to_owned() } else { may.join(", ") };
        let row = format!("| {from} | {may} |");
        assert!(page.contains(&row), "ARCHITECTURE.md has no row `{row}`");
    }
}

#[test]
fn the_reader_of_imports_sees_every_form() {
    let text = "use crate::a::B; use crate::{c::{D, E}, f, g::h}; fn x() { crate::i::j() }";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["a", "c", "f", "g", "i"]);
}
