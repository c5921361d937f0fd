//! Tests that every code has a page, and that the examples on each page behave as described: the wrong
//! example is reported with the code, and the right one is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lab::{Ended, Lab};
use sweepline::explain::PAGES;

/// Defaults for the keys that an example omits.
const REST: [(&str, &str); 5] = [
    ("sweepline", "sweepline: 1"),
    ("name", "name: example"),
    ("endpoints", "endpoints: { vllm: { url: \"http://127.0.0.1:8000/v1\", engine: vllm } }"),
    ("models", "models: { llama: { id: meta-llama/Llama-3.1-8B-Instruct } }"),
    ("sweeps", "sweeps: { load: { matrix: { batch_size: [1, 8] } } }"),
];

/// An example on a page: its files, with the plan last.
struct Example {
    files: Vec<(String, String)>,
    /// The arguments after `check` and the plan.
    flags: Vec<String>,
}

/// Parses the example under a heading of a page.
fn example(markdown: &str, heading: &str) -> Example {
    let section = markdown.split(&format!("## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```").skip(1).step_by(2).map(|block| {
        let (info, text) = block.split_once('\n').unwrap();
        let (language, file) = info.split_once(' ').unwrap_or((info, "plan.yaml"));
        (language.to_owned(), file.to_owned(), text.to_owned())
    });
    let (flags, files): (Vec<_>, Vec<_>) = blocks.partition(|(language, ..)| language == "sh");
    assert!(files.iter().all(|(language, ..)| language == "yaml"));
    let flags: Vec<String> = flags.iter().flat_map(|(.., text)| text.split_whitespace()).map(str::to_owned).collect();
    let mut files: Vec<(String, String)> = files.into_iter().map(|(_, file, text)| (file, text)).collect();
    if !flags.is_empty() && files.is_empty() {
        files.push(("plan.yaml".to_owned(), String::new()));
    }
    let (_, plan) = files.last_mut().expect("an example");
    let missing = REST.iter().filter(|(key, _)| !plan.lines().any(|line| line.starts_with(&format!("{key}:"))));
    let rest: String = missing.map(|(_, line)| format!("{line}\n")).collect();
    *plan = format!("{rest}{plan}");
    Example { files, flags }
}

/// Returns the codes that `check` reports for an example.
fn codes(example: &Example) -> (BTreeSet<String>, Ended) {
    let lab = Lab::new();
    example.files.iter().for_each(|(name, text)| drop(lab.write(name, text)));
    let mut args = vec!["check", &example.files.last().unwrap().0, "--format", "json"];
    args.extend(example.flags.iter().map(String::as_str));
    let ended = lab.run(&args);
    let found = ended.json()["diagnostics"].as_array().unwrap().clone();
    (found.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect(), ended)
}

/// Returns the numbers of `enum Code`, from the source that defines it.
fn codes_of_mistakes() -> Vec<String> {
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/plan/diagnostic/error.rs")).unwrap();
    let body = source.split("pub enum Code {").nth(1).unwrap().split("\n}").next().unwrap();
    let number = |line: &str| line.trim().strip_suffix(',')?.split_once(" = ")?.1.parse::<u16>().ok();
    let codes: Vec<String> = body.lines().filter_map(number).map(|number| format!("E{number:03}")).collect();
    assert!(codes.len() >= 31, "{codes:?}");
    codes
}

#[test]
fn every_code_has_a_page() {
    let pages: Vec<&str> = PAGES.iter().map(|page| page.code).collect();
    assert!(pages.is_sorted(), "{pages:?}");
    let errors: Vec<&str> = pages.iter().copied().filter(|code| code.starts_with('E')).collect();
    assert_eq!(errors, codes_of_mistakes());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/codes");
    let mut files: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, pages.iter().map(|code| format!("{code}.md")).collect::<Vec<_>>());
}

#[test]
fn pages_have_one_shape() {
    for page in PAGES {
        let (code, text) = (page.code, page.markdown);
        assert!(text.starts_with(&format!("# {code}: ")), "{code}");
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert!(
            matches!(headings[..], ["Why it is refused" | "Why it matters", "Wrong", "Right"]),
            "{code}: {headings:?}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 126), "{code}: a long line");
        let related = text.lines().last().unwrap().strip_prefix("Related: ").unwrap_or_else(|| panic!("{code}"));
        for other in related.split(", ") {
            assert!(other != code && PAGES.iter().any(|page| page.code == other), "{code} links to {other}");
        }
    }
}

#[test]
fn examples_do_what_their_page_says() {
    for page in PAGES {
        let (wrong, said) = codes(&example(page.markdown, "Wrong"));
        // Whether a load is beyond a calibration depends on the host, so this is tested in
        // src/lint.
        assert!(wrong.contains(page.code) || page.code == "M018", "{}: {}", page.code, said.stdout);
        let (right, said) = codes(&example(page.markdown, "Right"));
        // The right example of a lint may have other lints; the right example of an error must not
        // have any error.
        let refused = |code: &String| code.starts_with('E') || code == page.code;
        assert!(!right.iter().any(refused), "{}: {}", page.code, said.stdout);
        if page.code.starts_with('E') {
            let mistakes: Vec<&String> = wrong.iter().filter(|code| code.starts_with('E')).collect();
            assert_eq!(mistakes, [page.code], "a wrong example shows one error: {}", said.stdout);
            assert_eq!(said.code, Some(0), "{}", page.code);
        }
    }
}

#[test]
fn codes_are_explained() {
    let lab = Lab::new();
    let list = lab.ok(&["explain"]).stdout;
    let codes = list.split("\n\n").next().unwrap();
    assert_eq!(codes.lines().count(), PAGES.len() + 1, "plus the line of `counting`");
    assert!(list.contains("E012  not an axis\n"), "{list}");
    let page = lab.ok(&["explain", "E012"]).stdout;
    insta::assert_snapshot!(page);
    for written in ["e012", "e12", "E12", "error[E012]", " E012 "] {
        assert_eq!(lab.ok(&["explain", written]).stdout, page, "{written}");
    }
    let unknown = lab.run(&["explain", "E112"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(
        unknown.stderr.contains("unknown code `E112`") && unknown.stderr.contains("E012  not an axis"),
        "{unknown:?}"
    );
    let word = lab.run(&["explain", "cycle"]);
    assert!(word.code == Some(2) && word.stderr.contains("E022  a dependency cycle"), "{word:?}");
    // A word that does not occur in any title finds the pages that contain it.
    let spoken = lab.run(&["explain", "Throughput"]);
    assert!(spoken.code == Some(2) && spoken.stderr.contains("M003  an endpoint is measured"), "{spoken:?}");
    for nothing in ["x", "", "é", "[", "error[]"] {
        let said = lab.run(&["explain", nothing]);
        assert!(said.code == Some(2) && said.stderr.contains("`sweepline explain` lists all"), "{nothing}: {said:?}");
    }
}

/// Returns the names of reasons and labels that verdicts use, from the sources that give them.
fn reasons_of_verdicts() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/analysis");
    let between = |file: &str, from: &str, to: &str| -> Vec<String> {
        let source = fs::read_to_string(root.join(file)).unwrap();
        let part = source.split(from).nth(1).unwrap_or_else(|| panic!("{file}: {from}"));
        let part = part.split(to).next().unwrap();
        part.split("(\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let own = between("verdict.rs", "let findings = [", "\n    ];");
    let server = between("server/reasons.rs", "pub(crate) fn judge(", "\n}");
    assert!(own.len() >= 21 && server.len() >= 6, "{own:?} {server:?}");
    let responses = fs::read_to_string(root.join("responses.rs")).unwrap();
    let responses = responses.split("Reason { name: \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let responses: Vec<String> = responses.collect();
    assert!(responses.len() >= 6, "{responses:?}");
    let labels = ["saturated", "not_shown"].map(str::to_owned);
    own.into_iter().chain(server).chain(responses).chain(labels).collect()
}

#[test]
fn reasons_of_verdicts_are_explained() {
    let lab = Lab::new();
    let explained: BTreeSet<String> = sweepline::explain::reasons::all().map(|reason| reason.name.to_owned()).collect();
    assert_eq!(explained, reasons_of_verdicts());
    let list = lab.ok(&["explain"]).stdout;
    let listed: BTreeSet<&str> = list.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for name in &explained {
        assert!(listed.contains(name.as_str()), "{name}: {list}");
        let page = lab.ok(&["explain", name]).stdout;
        assert!(page.starts_with(&format!("{name}\n\nWhen: ")) && page.contains("\nVerdict: "), "{page}");
        assert!(!page.contains("](") && !page.contains("(below)"), "{name}: a link is left: {page}");
    }
    insta::assert_snapshot!(lab.ok(&["explain", "worker_skewed"]).stdout);
    assert_eq!(lab.ok(&["explain", " Client_Late "]).stdout, lab.ok(&["explain", "client_late"]).stdout);
}
