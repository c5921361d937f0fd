//! The rows that the program reports, as `sweepline export` and `texts.parquet` give them.

use std::collections::BTreeMap;

use serde_json::Value;
use sweepline::rows::{Table, TextRow, read_texts};

use super::{Api, Form};
use crate::Lab;

/// The columns that are compared.
pub mod column {
    pub const OUTCOME: &str = "outcome";
    pub const ERROR: &str = "error";
    pub const FINISH_REASON: &str = "finish_reason";
    pub const EVENTS: &str = "events";
    pub const PROMPT_TOKENS: &str = "prompt_tokens";
    pub const CACHED_TOKENS: &str = "cached_tokens";
    pub const OUTPUT_TOKENS: &str = "output_tokens";
    /// Tokens that were streamed, where the server counted others as well.
    pub const STREAMED_TOKENS: &str = "streamed_tokens";
    /// Who counted the output tokens.
    pub const TOKEN_SOURCE: &str = "token_source";
    /// Why there are no figures per token.
    pub const TOKENS_UNKNOWN: &str = "tokens_unknown";
    /// Events that are valid JSON of an unknown shape.
    pub const UNREAD_EVENTS: &str = "unread_events";
    pub const SENT_NS: &str = "sent_ns";
    pub const DONE_NS: &str = "done_ns";
    pub const ENDED_NS: &str = "ended_ns";
    pub const TTFT_MS: &str = "ttft_ms";
    pub const TTFO_MS: &str = "ttfo_ms";
    pub const E2E_MS: &str = "e2e_ms";
    pub const TPOT_MS: &str = "tpot_ms";
    pub const FIRST_TOKEN_NS: &str = "first_token_ns";
    pub const LAST_TOKEN_NS: &str = "last_token_ns";
    /// Rates that need a number of tokens.
    pub const TOKEN_RATES: [&str; 2] = ["user_throughput_tokens_per_s", "generation_throughput_tokens_per_s"];
}

/// One request, as the program reports it.
pub struct Row {
    /// The columns of the table of requests.
    cells: Value,
    /// The recorded texts.
    pub text: TextRow,
}

impl Row {
    /// Returns a column as text; `null` if it is missing.
    pub fn shown(&self, column: &str) -> String {
        match &self.cells[column] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns a column of texts.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.cells[column].as_str()
    }

    /// Returns a column of numbers.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.cells[column].as_f64()
    }

    /// Returns the milliseconds between the sending of the request and another instant.
    pub fn since_sent(&self, column: &str) -> Option<f64> {
        Some((self.number(column)? - self.number(column::SENT_NS)?) / 1e6)
    }
}

/// Returns a plan that plays all `forms` in turn, `rounds` times, one request at a time.
pub fn plan(port: u16, forms: &[(Api, usize)], rounds: usize) -> String {
    let (mut endpoints, mut sweeps) = (String::new(), String::new());
    for (api, forms) in forms {
        let (api, requests) = (api.name(), 2 * forms * rounds);
        endpoints += &format!(
            "  {api}: {{ url: 'http://127.0.0.1:{port}/all/v1', engine: mock, api: {api}, errors: measured }}\n"
        );
        sweeps += &format!(
            "  {api}:\n    matrix: {{ endpoint: {api}, model: m, scenario: short, batch_size: 1 }}\n    \
             phases: {{ measure: {{ for: 50ms, min_requests: {requests}, at_most: 10m }} }}\n"
        );
    }
    format!(
        "sweepline: 1\nname: forms\nseed: 5\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ short: {{ prompt_tokens: 30, output_tokens: 100 }} }}\nrecord: {{ text: true }}\n\
         timeouts: {{ stall: 10s, request: 20s }}\nphases: {{ fill: 0s, stabilize: 0s, measure: 50ms, drain: 10s }}\n\
         sweeps:\n{sweeps}"
    )
}

/// Returns the rows of the lab's runs of `plan.yaml`: for each API, the requests by number.
pub fn rows(lab: &Lab) -> BTreeMap<String, BTreeMap<usize, Row>> {
    let mut texts = BTreeMap::new();
    for run in lab.runs().values() {
        let endpoint = run.json["spec"]["endpoint"]["name"].as_str().unwrap().to_owned();
        for text in read_texts(&run.dir.join(Table::Texts.file())).unwrap() {
            texts.insert((endpoint.clone(), text.request), text);
        }
    }
    let exported = lab.ok(&["export", "plan.yaml", "--rows", "requests", "--format", "json"]).json();
    let mut rows: BTreeMap<String, BTreeMap<usize, Row>> = BTreeMap::new();
    for cells in exported.as_array().unwrap() {
        let endpoint = cells["endpoint"].as_str().unwrap().to_owned();
        let request = cells["request"].as_u64().unwrap();
        let text = texts.remove(&(endpoint.clone(), request)).unwrap_or_default();
        rows.entry(endpoint).or_default().insert(request as usize, Row { cells: cells.clone(), text });
    }
    rows
}

/// Returns how many forms of each API there are.
pub fn counts(forms: &[Form]) -> Vec<(Api, usize)> {
    let of = |api: Api| (api, forms.iter().filter(|form| form.api == api).count());
    Api::ALL.map(of).into_iter().filter(|(_, forms)| *forms > 0).collect()
}
