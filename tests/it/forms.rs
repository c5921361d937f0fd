//! Plays every form of a response that servers are known to send, and compares the program's rows with what
//! is true: outcome, tokens, finish reason, text and times. All differences are printed as one table.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::time::Duration;

use serde_json::Value;

use lab::exact_prompts::{bpe, folder};
use lab::forms::server::{FormServer, Played, form_of};
use lab::forms::{Api, Form, Output, Role, Row, all, cases, column, counts, plan, rows};
use lab::server::Server;
use lab::{Lab, wait_for};

/// How much other times may differ, in milliseconds. Both sides wait for a CPU on a busy machine; the
/// measured suite is exact.
const BUSY: f64 = 150.0;
/// A connection that is held for at least this long shows whether its slot was free.
const HELD: Duration = Duration::from_millis(300);
/// How long a free slot may take until its next request reaches the server, in the median.
const NEXT: Duration = Duration::from_millis(50);

/// One difference between the truth and a row.
struct Difference {
    form: String,
    what: &'static str,
    truth: String,
    read: String,
}

/// The comparison of one response with its row.
struct Comparison<'a> {
    form: &'a Form,
    row: &'a Row,
    played: &'a Played,
    differences: Vec<Difference>,
}

impl Comparison<'_> {
    /// Records a difference unless what was read is right.
    fn check(&mut self, what: &'static str, is_right: bool, truth: impl Display, read: impl Display) {
        if !is_right {
            let form = format!("{} {}", self.form.api.name(), self.form.name);
            self.differences.push(Difference { form, what, truth: truth.to_string(), read: read.to_string() });
        }
    }

    /// Compares a column with a text or with null.
    fn check_text(&mut self, column: &'static str, truth: Option<&str>) {
        let (read, shown) = (self.row.text(column), self.row.shown(column));
        self.check(column, read == truth, truth.unwrap_or("null"), shown);
    }

    /// Compares a column with a number.
    fn check_number(&mut self, column: &'static str, truth: u32) {
        let is_right = self.row.number(column) == Some(f64::from(truth));
        self.check(column, is_right, truth, self.row.shown(column));
    }

    fn check_null(&mut self, column: &'static str) {
        let is_right = self.row.number(column).is_none();
        self.check(column, is_right, "null", self.row.shown(column));
    }

    /// Compares a time in milliseconds with an interval, widened by a tolerance.
    fn check_time(&mut self, what: &'static str, read: Option<f64>, [low, high]: [f64; 2], tolerance: f64) {
        let is_right = read.is_some_and(|read| read >= low - tolerance && read <= high + tolerance);
        let read = read.map_or("null".to_owned(), |read| format!("{read:.2}"));
        self.check(what, is_right, format!("{:.2}", f64::midpoint(low, high)), read);
    }

    fn outcome(&mut self) {
        let truth = &self.form.truth;
        let outcome = self.row.shown(column::OUTCOME);
        let is_right = truth.outcomes.contains(&outcome.as_str());
        let error = self.row.shown(column::ERROR);
        let read = if outcome == "ok" { outcome } else { format!("{outcome}: {error}") };
        self.check(column::OUTCOME, is_right, truth.outcomes.join(" or "), read);
        if !is_right {
            return;
        }
        if let Some(missing) = truth.error.iter().find(|part| !error.contains(**part)) {
            self.check(column::ERROR, false, format!("… {missing} …"), &error);
        }
        if let Some(finish) = truth.finish {
            self.check_text(column::FINISH_REASON, finish);
        }
    }

    fn tokens(&mut self) {
        let (truth, events) = (&self.form.truth, self.form.text_events());
        let output = self.row.number(column::OUTPUT_TOKENS);
        match truth.output {
            Output::Events => self.check_number(column::OUTPUT_TOKENS, events),
            Output::Exactly(tokens) => self.check_number(column::OUTPUT_TOKENS, tokens),
            Output::OneOf(tokens) => {
                let is_right = tokens.iter().any(|tokens| output == Some(f64::from(*tokens)));
                let shown = self.row.shown(column::OUTPUT_TOKENS);
                self.check(column::OUTPUT_TOKENS, is_right, format!("one of {tokens:?}"), shown);
            }
            Output::Null => self.check_null(column::OUTPUT_TOKENS),
            Output::Any => {}
        }
        let by_events = (truth.output == Output::Events).then_some("events");
        if let Some(source) = truth.source.or(by_events) {
            self.check_text(column::TOKEN_SOURCE, Some(source));
        }
        let unknown = self.row.text(column::TOKENS_UNKNOWN);
        let is_right = unknown.map_or(truth.unknown.is_empty(), |reason| truth.unknown.contains(&reason));
        let reasons = if truth.unknown.is_empty() { "null".to_owned() } else { truth.unknown.join(" or ") };
        self.check(column::TOKENS_UNKNOWN, is_right, reasons, self.row.shown(column::TOKENS_UNKNOWN));
        if let Some(streamed) = truth.streamed {
            self.check_number(column::STREAMED_TOKENS, streamed);
        }
        if truth.has_known_events {
            self.check_number(column::EVENTS, events);
        }
        if let Some(unread) = truth.unread {
            // Null and 0 are the same: there were none.
            let read = self.row.number(column::UNREAD_EVENTS).unwrap_or_default();
            self.check(column::UNREAD_EVENTS, read == f64::from(unread), unread, read);
        }
        if let Some(prompt) = truth.prompt {
            self.check_number(column::PROMPT_TOKENS, prompt);
        }
        if let Some(cached) = truth.cached {
            self.check_number(column::CACHED_TOKENS, cached);
        }
    }

    fn text(&mut self) {
        let (truth, text) = (&self.form.truth, &self.row.text);
        if truth.has_known_text {
            for (what, truth, read) in
                [("text", &truth.content, &text.answer), ("reasoning", &truth.reasoning, &text.reasoning)]
            {
                let read = read.as_deref().unwrap_or_default();
                self.check(what, read == truth.as_str(), format!("{truth:?}"), format!("{read:?}"));
            }
        }
        let calls = text.tool_calls.as_deref().unwrap_or("null");
        if let Some(missing) = truth.calls.iter().find(|part| !calls.contains(**part)) {
            self.check("tool_calls", false, format!("… {missing} …"), calls);
        }
    }

    /// Returns the earliest and the latest time in milliseconds between the writes of two pieces.
    fn between(&self, from: usize, to: usize) -> [f64; 2] {
        let [from, to] = [from, to].map(|piece| self.played.written[piece].map(|time| time.as_secs_f64() * 1e3));
        [to[0] - from[1], to[1] - from[0]]
    }

    fn since_arrival(&self, piece: usize) -> [f64; 2] {
        self.played.written[piece].map(|time| (time - self.played.arrived).as_secs_f64() * 1e3)
    }

    /// Returns the first and the last piece of which `is` is true.
    fn ends(&self, is: impl Fn(Role) -> bool) -> Option<[usize; 2]> {
        let written = &self.form.pieces[..self.played.written.len()];
        let first = written.iter().position(|piece| is(piece.role))?;
        Some([first, written.iter().rposition(|piece| is(piece.role))?])
    }

    fn times(&mut self) {
        let Some([first, last]) = self.ends(|role| matches!(role, Role::Output | Role::Reasoning)) else {
            return self.check_null(column::TTFT_MS);
        };
        let ttft = self.row.number(column::TTFT_MS);
        self.check_time(column::TTFT_MS, ttft, self.since_arrival(first), BUSY);
        let ttfo = self.row.number(column::TTFO_MS);
        match self.ends(|role| role == Role::Output) {
            Some([output, _]) => {
                let later = ttft.zip(ttfo).map(|(ttft, ttfo)| ttfo - ttft);
                self.check_time("ttfo_ms − ttft_ms", later, self.between(first, output), BUSY);
            }
            None => self.check_null(column::TTFO_MS),
        }
        let streamed = self.form.truth.streamed_tokens(self.form.text_events());
        match streamed {
            _ if !self.form.truth.unknown.is_empty() => {
                self.check_null(column::TPOT_MS);
                column::TOKEN_RATES.into_iter().for_each(|rate| self.check_null(rate));
            }
            Some(tokens @ 2..) if last > first => {
                // Pieces may be read together on a busy machine, so the row's own times are the reference.
                // `measured/forms.rs` compares with the times of the server.
                let ends = [column::FIRST_TOKEN_NS, column::LAST_TOKEN_NS].map(|end| self.row.number(end).unwrap());
                let truth = (ends[1] - ends[0]) / 1e6 / f64::from(tokens - 1);
                let read = self.row.number(column::TPOT_MS).unwrap_or(f64::NAN);
                self.check(column::TPOT_MS, (read - truth).abs() < 1e-6, truth, read);
            }
            Some(_) => self.check_null(column::TPOT_MS),
            None => {}
        }
        if let (true, Some([done, _])) = (!self.form.held().is_zero(), self.ends(|role| role == Role::Done)) {
            let truth = self.since_arrival(done);
            for column in [column::DONE_NS, column::ENDED_NS] {
                self.check_time(column, self.row.since_sent(column), truth, BUSY);
            }
        }
    }

    /// Checks that a failed request has no latencies.
    fn failed(&mut self) {
        for column in [column::TTFT_MS, column::E2E_MS, column::TPOT_MS] {
            self.check_null(column);
        }
    }
}

/// Compares a row with the truth of its form, and with what the server did.
fn compare(form: &Form, row: &Row, played: &Played) -> Vec<Difference> {
    let mut comparison = Comparison { form, row, played, differences: Vec::new() };
    comparison.outcome();
    match (form.truth.is_ok(), row.text(column::OUTCOME) == Some("ok")) {
        (true, true) => {
            comparison.tokens();
            comparison.text();
            comparison.times();
        }
        (false, false) => comparison.failed(),
        // The difference in the outcome explains all others.
        _ => {}
    }
    comparison.differences
}

/// Returns how long after the end of a response the next request arrived, if the connection was held much
/// longer. The slot is free at the end of the response.
fn slot_wait(form: &Form, played: &Played, next: &Played) -> Option<Duration> {
    let done = form.pieces.iter().position(|piece| piece.role == Role::Done)?;
    (form.held() >= HELD).then(|| next.arrived.saturating_sub(played.written[done][1]))
}

/// Returns the differences as a table.
fn table(differences: &[Difference]) -> String {
    let mut text = String::new();
    let cell = |text: &str| {
        let line = text.replace('\n', "\\n");
        if line.chars().count() > 70 { line.chars().take(69).chain(['…']).collect() } else { line }
    };
    let mut line = |form: &str, what: &str, truth: &str, read: &str| {
        let _ = writeln!(text, "{form:<62} {what:<20} {:<34} {}", cell(truth), cell(read));
    };
    line("form", "what", "true", "read");
    for Difference { form, what, truth, read } in differences {
        line(form, what, truth, read);
    }
    text
}

/// The number of a request in its run, from its id.
fn number(id: &str) -> Option<usize> {
    id.rsplit('-').next()?.parse().ok()
}

#[test]
fn every_form_is_read_as_what_it_is() {
    let mut forms: Vec<Form> = Api::ALL.into_iter().flat_map(all).collect();
    forms.extend(cases());
    let server = FormServer::start(&forms);
    let lab = Lab::real_time();
    lab.write("plan.yaml", &plan(server.port, &counts(&forms), 1));
    let ended = lab.run(&["run", "plan.yaml"]);
    let rows = rows(&lab);
    assert_eq!(rows.len(), Api::ALL.len(), "{}{}", ended.stdout, ended.stderr);
    let (mut differences, mut waits) = (Vec::new(), Vec::new());
    for api in Api::ALL {
        let (rows, forms) = (&rows[api.name()], of_api(&forms, api));
        let sent = rows.values().filter(|row| row.number(column::SENT_NS).is_some()).count();
        assert!(rows.len() >= 2 * forms.len(), "{}: {} rows", api.name(), rows.len());
        // A response is logged when its connection ends.
        let played = wait_for("the server's log", || {
            let played = of_run(&server, &lab, api);
            (played.len() >= sent).then_some(played)
        });
        assert_eq!(played.len(), sent, "{}: every request is sent once", api.name());
        for (at, row) in rows.iter().take(2 * forms.len()) {
            let form = form_of(&forms, *at);
            differences.extend(compare(form, row, &played[at]));
            waits.extend(played.get(&(at + 1)).and_then(|next| slot_wait(form, &played[at], next)));
        }
    }
    waits.sort();
    let wait = waits[waits.len() / 2];
    if wait > NEXT {
        differences.push(Difference {
            form: format!("all {} held connections", waits.len()),
            what: "the next request",
            truth: "at [DONE]".to_owned(),
            read: format!("{wait:.0?} later in the median"),
        });
    }
    let misread: std::collections::BTreeSet<&str> = differences.iter().map(|one| one.form.as_str()).collect();
    println!("{} of {} forms are misread", misread.len(), forms.len());
    assert!(differences.is_empty(), "\n{}", table(&differences));
}

/// Returns the forms of an API, in the order in which the server plays them.
fn of_api(forms: &[Form], api: Api) -> Vec<Form> {
    forms.iter().filter(|form| form.api == api).cloned().collect()
}

/// Returns the responses of the run of an API, by the number of the request.
fn of_run(server: &FormServer, lab: &Lab, api: Api) -> BTreeMap<usize, Played> {
    let runs = lab.runs();
    let is_of = |run: &&lab::Run| run.json["spec"]["endpoint"]["name"] == api.name();
    let run = runs.values().find(is_of).unwrap();
    let id = format!("{}-", &run.json["id"].as_str().unwrap()[..16]);
    let mut by_number = BTreeMap::new();
    for played in server.played().into_iter().filter(|played| played.id.starts_with(&id)) {
        let number = number(&played.id).unwrap();
        assert!(by_number.insert(number, played).is_none(), "request {number} was sent twice");
    }
    by_number
}

/// A run of one form.
struct WholeRun {
    form: &'static str,
    /// Whether there are figures per token.
    has_tokens: bool,
    /// What the run's page names.
    named: &'static [&'static str],
    /// Whether what it names makes the run suspect.
    is_suspect: bool,
}

const RUNS: [WholeRun; 10] = [
    usual("plain", &[]),
    usual("letters_counted", &[]),
    usual("hidden_reasoning", &["hidden_reasoning"]),
    usual("held", &["held_open"]),
    usual("list", &["unread_events"]),
    WholeRun { is_suspect: true, ..usual("ended_by_a_new_reason", &["unknown_finish", "moon_in_the_way"]) },
    uncounted("five_tokens_an_event", &["tokens_by_events"]),
    uncounted("one_token_for_sixteen_events", &["impossible_usage"]),
    uncounted("hidden_reasoning_under_a_summary", &["hidden_reasoning"]),
    uncounted("two_choices_in_turn", &["several_choices"]),
];

const fn usual(form: &'static str, named: &'static [&'static str]) -> WholeRun {
    WholeRun { form, has_tokens: true, named, is_suspect: false }
}

const fn uncounted(form: &'static str, named: &'static [&'static str]) -> WholeRun {
    WholeRun { form, has_tokens: false, named, is_suspect: true }
}

/// Checks whole runs: figures per token exist only if the tokens are known, and whatever is unusual is named
/// on the run's page and makes the run suspect.
#[test]
fn a_run_of_one_form_has_the_figures_that_are_known() {
    let forms = all(Api::Chat);
    let server = FormServer::start(&forms);
    let lab = Lab::real_time();
    let endpoints: String = RUNS
        .iter()
        .map(|WholeRun { form, .. }| {
            format!("  {form}: {{ url: 'http://127.0.0.1:{}/{form}/v1', engine: mock }}\n", server.port)
        })
        .collect();
    let names = RUNS.map(|run| run.form);
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: forms\nseed: 5\nendpoints:\n{endpoints}models: {{ m: {{ id: tiny }} }}\n\
             scenarios: {{ short: {{ prompt_tokens: 30, output_tokens: 100 }} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: {{ for: 200ms, min_requests: 8, at_most: 60s }}, drain: 10s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: [{}], model: m, scenario: short, batch_size: 2 }} }} }}\n",
            names.join(", ")
        ),
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    let exported = lab.ok(&["export", "plan.yaml", "--format", "json", "--columns", "all"]).json();
    let runs: BTreeMap<&str, &Value> =
        exported.as_array().unwrap().iter().map(|run| (run["endpoint"].as_str().unwrap(), run)).collect();
    let mut wrong = String::new();
    for WholeRun { form, has_tokens, named, is_suspect } in RUNS {
        let run = runs.get(form).unwrap_or_else(|| panic!("{form}: {}{}", ended.stdout, ended.stderr));
        for column in ["tpot_p50_ms", "output_throughput_tokens_per_s", "user_throughput_p50_tokens_per_s"] {
            if run[column].is_null() == has_tokens {
                let _ = writeln!(wrong, "{form}: {column} is {}", run[column]);
            }
        }
        let page = lab.ok(&["show", &run["run_id"].as_str().unwrap()[..16], "--plan", "plan.yaml"]).stdout;
        for name in named.iter().filter(|name| !page.contains(**name)) {
            let _ = writeln!(wrong, "{form}: the page does not name {name}");
        }
        if is_suspect && run["verdict"] != "suspect" {
            let _ = writeln!(wrong, "{form} is {}", run["verdict"]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn with_a_tokenizer_the_text_is_counted() {
    let is_uncounted = |form: &Form| form.truth.unknown == ["tokens_by_events"] && form.truth.reasoning.is_empty();
    let mut forms = all(Api::Chat);
    let usual = forms.remove(0);
    forms.retain(is_uncounted);
    assert!(forms.len() >= 4, "{} forms", forms.len());
    forms.insert(0, usual);
    let server = FormServer::start(&forms);
    let (lab, library) = (Lab::real_time(), bpe());
    folder(&lab, &library);
    let plan = plan(server.port, &counts(&forms), 1).replace("{ id: tiny }", "{ id: tiny, tokenizer: model }");
    lab.write("plan.yaml", &plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    let rows = rows(&lab);
    let rows = rows.get(Api::Chat.name()).unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
    for (at, form) in forms.iter().enumerate().skip(1) {
        let (name, row) = (&form.name, &rows[&(2 * at)]);
        let tokens = library.encode_fast(form.truth.content.as_str(), false).unwrap().len() as f64;
        assert_eq!(row.text(column::TOKEN_SOURCE), Some("tokenizer"), "{name}");
        assert_eq!(row.number(column::OUTPUT_TOKENS), Some(tokens), "{name}");
        assert_eq!(row.text(column::TOKENS_UNKNOWN), None, "{name}");
        if form.text_events() > 1 {
            let span = row.number(column::E2E_MS).unwrap() - row.number(column::TTFT_MS).unwrap();
            let per_token = row.number(column::TPOT_MS).unwrap();
            assert!((per_token - span / (tokens - 1.0)).abs() < 0.001, "{name}: {per_token} ms for {tokens} tokens");
        }
    }
}

/// Returns an instant a few seconds ahead, as HTTP writes it.
fn in_seconds(seconds: i64) -> String {
    let instant = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    instant.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[test]
fn a_date_in_retry_after_is_a_pause() {
    let server = Server::start(|_, stream| {
        let [now, later] = [0, 30].map(in_seconds);
        let head = format!("HTTP/1.1 429 No\r\ndate: {now}\r\nretry-after: {later}\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
    });
    let lab = Lab::real_time();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: pause\nendpoints:\n  \
             a: {{ url: 'http://127.0.0.1:{}/v1', engine: mock, ready: {{ within: 0s }}, retries: {{ runs: 0 }} }}\n\
             models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ base: B1, output_tokens: 8 }} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: 10s, drain: 10s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: [a], model: [m], scenario: [short], batch_size: [1] }} }} }}\n",
            server.port
        ),
    );
    let ended = lab.run(&["run", "plan.yaml"]);
    let attempt = std::fs::read_dir(lab.results().join("attempts")).unwrap().next().unwrap().unwrap().path();
    let record: Value = serde_json::from_slice(&std::fs::read(attempt.join("attempt.json")).unwrap()).unwrap();
    let pause = record["spoiled"]["retry_after"].as_str().unwrap_or_else(|| panic!("{record:#}{}", ended.stderr));
    let seconds: f64 = pause.trim_end_matches('s').parse().unwrap();
    assert!((28.0..=31.0).contains(&seconds), "{pause}");
}
