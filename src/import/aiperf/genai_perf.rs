//! Converts the words of `genai-perf profile …` and `genai-perf analyze …` to AIPerf's tree, because
//! AIPerf's options have the same names (`genai-perf/genai_perf/parser.py` of perf_analyzer 263c5f6e). Words
//! after `--` go to Perf Analyzer.

use indexmap::IndexMap;
use serde_json::Value;

use super::command::{Builder, Given, behind, given};
use super::leaves::{Ledger, Tree};
use super::options::Arity::{Flag, Many, One};
use super::options::Target::{Lost, Needless, On, Pairs, Path, Values};
use super::options::{CLIENT, FOLDER, Known, MEDIA, OPTIONS, SHOWN, STORED, Target, WARM};
use crate::import::error::ImportError;
use crate::import::importer::Asked;
use crate::import::text::one_line;

const WINDOW: Target =
    Needless("`measure` sets the window's length, and the verdict reports whether the load was steady");
const TRITON: &str = "requests use OpenAI's APIs over HTTP: use the same server's OpenAI-compatible front end";

/// Options of genai-perf that AIPerf does not have or defines differently, and options of Perf
/// Analyzer.
const OWN: &[Known] = &[
    (&["backend"], One, Lost(TRITON)),
    (&["service-kind"], One, Path("service_kind")),
    (&["grpc-method"], One, Lost(TRITON)),
    (&["server-metrics-url", "server-metrics-urls"], Many, Values("gpu_telemetry.urls")),
    (&["measurement-interval"], One, WINDOW),
    (&["stability-percentage"], One, WINDOW),
    (&["output-tokens-mean-deterministic"], Flag, On("endpoint.extra.ignore_eos")),
    (&["num-sessions"], One, Path("phases.profiling.sessions")),
    (&["session-concurrency"], One, Path("phases.profiling.concurrency")),
    (&["checkpoint-dir"], One, FOLDER),
    (&["enable-checkpointing"], Flag, Needless("existing runs are not measured again")),
    (&["generate-plots"], Flag, Needless("`report` draws plots")),
    (&["profile-export-file"], One, FOLDER),
    (&["fixed-schedule"], One, On("phases.profiling.fixed_schedule")),
    (&["image-format"], One, MEDIA),
    (&["goodput"], Many, Pairs("slos")),
    (&["sweep-type"], One, Path("sweep_type")),
    (&["sweep-range"], One, Path("sweep_range")),
    (&["sweep-list"], One, Path("sweep_list")),
    (&["num-dataset-entries", "num-prompts"], One, Path("datasets.default.entries")),
    (&["warmup-request-count", "num-warmup-requests"], One, WARM),
    // Perf Analyzer's options.
    (&["max-threads"], One, CLIENT),
    (&["async"], Flag, CLIENT),
    (&["sync"], Flag, CLIENT),
    (&["request-intervals"], One, Lost("`trace: { file: FILE }` replays recorded arrivals")),
    (&["concurrency-range"], One, Path("phases.profiling.concurrency")),
    (&["request-rate-range"], One, Path("phases.profiling.rate")),
    (&["request-distribution"], One, Path("phases.profiling.type")),
    (&["measurement-mode"], One, WINDOW),
    (&["measurement-request-count"], One, Path("phases.profiling.requests")),
    (&["percentile"], One, Needless("every latency has mean, p50 to p99.9 and max")),
    (&["max-trials"], One, WINDOW),
    (&["verbose-csv"], Flag, STORED),
    (&["collect-metrics"], Flag, On("server_metrics.enabled")),
    (&["metrics-interval"], One, Needless("metrics pages are scraped once per second")),
    (&["extra-verbose"], Flag, SHOWN),
];

/// Returns the words after `genai-perf profile` or `genai-perf analyze`; `None` if the command runs neither.
pub(super) fn arguments(words: &[String]) -> Option<&[String]> {
    behind(words, "genai-perf", &["profile", "analyze"])
}

/// Returns the tree of a command.
pub(super) fn tree(asked: &Asked, ledger: &Ledger) -> Result<Tree, ImportError> {
    let line = asked.command.line;
    let words = lengthened(asked.words);
    let mut root = Tree::Map(IndexMap::new());
    let all = both(&words, line, ledger);
    let triton = all.iter().find(|given| given.target == Some(Lost(TRITON)));
    let refused = triton.map(|given| given.words.clone());
    Builder { root: &mut root, ledger, line }.build(all);
    if let Some(what) = refused {
        return Err(ImportError::shape(&asked.place, what, TRITON));
    }
    settle(&mut root, asked, ledger)?;
    super::command::kind(&mut root, ledger, line);
    Ok(root)
}

/// Expands short options of genai-perf and Perf Analyzer.
fn lengthened(words: &[String]) -> Vec<String> {
    let long = |word: &String| match word.as_str() {
        "-p" => "--measurement-interval".to_owned(),
        "-s" => "--stability-percentage".to_owned(),
        other => other.to_owned(),
    };
    words.iter().map(long).collect()
}

/// Parses the options, each of which is looked up in genai-perf's table first and then in AIPerf's.
fn both(words: &[String], line: usize, ledger: &Ledger) -> Vec<Given> {
    static ALL: std::sync::LazyLock<Vec<Known>> =
        std::sync::LazyLock::new(|| OWN.iter().chain(OPTIONS).copied().collect());
    given(words, line, &ALL, ledger)
}

/// Converts the settings that exist only in genai-perf to settings of AIPerf.
fn settle(root: &mut Tree, asked: &Asked, ledger: &Ledger) -> Result<(), ImportError> {
    let Some(Tree::Map(body)) = (match root {
        Tree::Map(entries) => entries.get_mut("benchmark"),
        _ => None,
    }) else {
        return Ok(());
    };
    let taken = |body: &mut IndexMap<String, Tree>, key: &str| {
        let tree = body.shift_remove(key)?;
        super::leaves::At::new(&tree, ledger).text()
    };
    if let Some(service) = taken(body, "service_kind")
        && !["openai", "dynamo"].contains(&service.value.as_str())
    {
        return Err(ImportError::shape(&asked.place, one_line(&service.origin), TRITON));
    }
    input(body, ledger);
    let (kind, range, list) = (taken(body, "sweep_type"), taken(body, "sweep_range"), taken(body, "sweep_list"));
    let Some(kind) = kind else { return Ok(()) };
    let path = match kind.value.as_str() {
        "concurrency" => "phases.profiling.concurrency",
        "request_rate" => "phases.profiling.rate",
        "input_sequence_length" => "datasets.default.prompts.isl.mean",
        "batch_size" => "datasets.default.prompts.batch_size",
        _ => {
            let why = "every request gets a new prompt, so the number of prompts is not a setting";
            ledger.notes.missing(&kind.origin, why, asked.command.line);
            return Ok(());
        }
    };
    let said = list.as_ref().or(range.as_ref());
    let values = said.map(|said| values(&said.value, list.is_some())).unwrap_or_default();
    if values.is_empty() || values.len() > 10_000 {
        let what = format!("{}: it has no values", one_line(&kind.origin));
        return Err(ImportError::shape(&asked.place, what, "add --sweep-list 1,2,4 or --sweep-range 1:64"));
    }
    let words = said.map(|said| said.origin.clone()).unwrap_or_default();
    let leaves = values.into_iter().map(|value| ledger.option(&words, Value::from(value), asked.command.line));
    let list = Tree::List(leaves.collect());
    if let Tree::Map(entries) = root {
        let parameters = Tree::Map(IndexMap::from([(path.to_owned(), list)]));
        entries.insert("sweep".to_owned(), Tree::Map(IndexMap::from([("parameters".to_owned(), parameters)])));
    }
    Ok(())
}

/// Removes a path such as `synthetic:queries,passages`, which is not the name of a file.
fn input(body: &mut IndexMap<String, Tree>, ledger: &Ledger) {
    let Some(Tree::Map(datasets)) = body.get_mut("datasets") else { return };
    let Some(Tree::Map(dataset)) = datasets.get_mut("default") else { return };
    let path = dataset.get("path").map(Tree::json).and_then(|path| path.as_str().map(str::to_owned));
    if path.is_some_and(|path| path.starts_with("synthetic:"))
        && let Some(tree) = dataset.shift_remove("path")
    {
        super::leaves::At::new(&tree, ledger).needless("texts are generated if no file is named");
    }
}

/// Returns the values of a sweep, given as a list, as `min:max` (doubled from `min` to `max`), or as
/// `min:max:step`.
fn values(text: &str, is_list: bool) -> Vec<i64> {
    if is_list {
        return text.split(',').filter_map(|value| value.trim().parse().ok()).collect();
    }
    let parts: Vec<i64> = text.split(':').filter_map(|part| part.trim().parse().ok()).collect();
    match parts[..] {
        [min, max] if 0 < min && min <= max => {
            let doubled = std::iter::successors(Some(min), |value| value.checked_mul(2));
            doubled.take_while(|value| *value <= max).collect()
        }
        [min, max, step] if 0 < min && min <= max && step > 0 && (max - min) / step < 10_000 => {
            (0..=(max - min) / step).map(|number| min + number * step).collect()
        }
        _ => Vec::new(),
    }
}
