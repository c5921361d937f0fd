//! The part of `docs/SERVERS.md` that is generated from the table of dialects.

use std::fmt::Write;

use crate::plan::model::dialect::{DIALECTS, Dialect, Gauges, Page, Place, Reset};
use crate::plan::model::engine::Engine;
use crate::plan::model::extra::dialect::fields_of;

const BEGIN: &str = "<!-- generated from src/plan/model/dialect.rs by `SWEEPLINE_BLESS=1 cargo test -p sweepline-core --lib -- current` -->\n";
const END: &str = "<!-- end of the generated part -->\n";

/// A function that returns the text of a cell for a dialect.
type Cell = fn(&Dialect) -> String;

fn known(is: Option<bool>) -> String {
    is.map_or("not verified", |is| if is { "yes" } else { "no" }).to_owned()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn with(needs: Option<&str>) -> String {
    needs.map(|needs| format!(", with {}", code(needs))).unwrap_or_default()
}

fn or_dash(parts: Vec<String>) -> String {
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

/// The rows: a label, and the function that returns the cell for each engine.
const ROWS: [(&str, Cell); 13] = [
    ("accepts `ignore_eos`", |dialect| known(dialect.ignore_eos)),
    ("sweepline sends `ignore_eos`", |dialect| known(Some(dialect.engine.takes_ignore_eos()))),
    ("accepts `min_tokens`", |dialect| known(dialect.min_tokens)),
    ("reports token usage in streams (`include_usage`)", |dialect| known(dialect.include_usage)),
    ("delta fields with reasoning", |dialect| or_dash(dialect.reasoning.iter().map(|name| code(name)).collect())),
    ("field with cached prompt tokens", |dialect| {
        let place = dialect.cached_tokens.map(|Place { name, needs }| code(name) + &with(needs));
        or_dash(place.into_iter().collect())
    }),
    ("request that clears the prefix cache", |dialect| {
        let reset = dialect.reset.map(|Reset { method, path, needs, unless }| {
            let unless = unless.map(|unless| format!("; no effect while {unless}")).unwrap_or_default();
            code(&format!("{method} {path}")) + &with(needs) + &unless
        });
        or_dash(reset.into_iter().collect())
    }),
    ("version page", |dialect| {
        let page = |Page { path, key, .. }: &Page| format!("key {} at {}", code(key), code(path));
        or_dash(dialect.version.iter().map(page).collect())
    }),
    ("recognized by", |dialect| {
        let owner = dialect.owner.map(|name| format!("{} in `owned_by`", code(name)));
        let header = dialect.header.map(|name| format!("{} in the `Server` header", code(name)));
        let telling = dialect.version.iter().filter(|page| page.is_telling).map(|page| code(page.path));
        or_dash(owner.into_iter().chain(header).chain(telling).collect())
    }),
    ("served model (key on the version page or in the list of models)", |dialect| {
        let told = dialect.model.map(|pointer| code(pointer.trim_start_matches('/')));
        or_dash(told.into_iter().chain(["`root` in the list of models".to_owned()]).collect())
    }),
    ("context length (key on the version page or in the list of models)", |dialect| {
        or_dash(
            dialect.context.iter().map(|pointer| code(&pointer.trim_start_matches('/').replace('/', "."))).collect(),
        )
    }),
    ("recorded flags (keys on the version page)", |dialect| {
        or_dash(dialect.flags.iter().map(|pointer| code(pointer.trim_start_matches('/'))).collect())
    }),
    ("gauges of running and waiting requests", |dialect| {
        let gauges = dialect.gauges.map(|Gauges { path, running, waiting, needs }| {
            format!("{} and {} at {}{}", code(running), code(waiting), code(path), with(needs))
        });
        or_dash(gauges.into_iter().collect())
    }),
];

/// Returns the generated part of the page, between its two comments.
fn made() -> String {
    let mut page = BEGIN.to_owned();
    for dialect in DIALECTS.iter().filter(|dialect| dialect.engine != Engine::Openai) {
        let _ = writeln!(
            page,
            "\n### {} (`engine: {}`)\n\nSource: {}.\n",
            dialect.title,
            dialect.engine.name(),
            dialect.source
        );
        page.push_str("| | |\n|---|---|\n");
        for (what, cell) in ROWS {
            let _ = writeln!(page, "| {what} | {} |", cell(dialect));
        }
        let fields: Vec<String> = fields_of(dialect.engine).map(code).collect();
        if !fields.is_empty() {
            let _ = writeln!(page, "\nAdditional request fields (`extra`): {}.", fields.join(", "));
        }
    }
    page.push('\n');
    page + END
}

#[test]
fn the_page_of_servers_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SERVERS.md");
    let stored = std::fs::read_to_string(file).unwrap();
    let (before, rest) = stored.split_once(BEGIN).expect("the comment that opens the generated part");
    let (_, behind) = rest.split_once(END).expect("the comment that closes the generated part");
    let page = format!("{before}{}{behind}", made());
    if std::env::var_os("SWEEPLINE_BLESS").is_some() {
        std::fs::write(file, &page).unwrap();
    }
    let stored = std::fs::read_to_string(file).unwrap();
    assert!(
        stored == page,
        "docs/SERVERS.md is out of date with src/plan/model/dialect.rs: run this test with SWEEPLINE_BLESS=1"
    );
}
