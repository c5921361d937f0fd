//! Compares the times of each form of a response with the server's own log: time to the first token and time
//! per token agree within a millisecond in the median.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use lab::forms::server::{FormServer, Played, form_of};
use lab::forms::{Api, Form, Role, all, cases, column, counts, plan, rows};
use lab::{Lab, wait_for};

/// How often each form is played.
const ROUNDS: usize = 7;
/// The largest difference in the median, in milliseconds.
const MOST: f64 = 1.0;

/// Returns the middle of the values; 0 if there are none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the times of a response according to the server, in milliseconds: to the first piece with text,
/// and per token, if the tokens are known.
fn true_times(form: &Form, played: &Played) -> [Option<f64>; 2] {
    let is_text = |role: Role| matches!(role, Role::Output | Role::Reasoning);
    let written = |piece: usize| Some(played.written.get(piece)?[0].as_secs_f64() * 1e3);
    let first = form.pieces.iter().position(|piece| is_text(piece.role)).and_then(written);
    let last = form.pieces.iter().rposition(|piece| is_text(piece.role)).and_then(written);
    let ttft = first.map(|first| first - played.arrived.as_secs_f64() * 1e3);
    let tokens = form.truth.streamed_tokens(form.text_events()).filter(|tokens| *tokens > 1 && form.text_events() > 1);
    let span = first.zip(last).map(|(first, last)| last - first);
    [ttft, span.zip(tokens).map(|(span, tokens)| span / f64::from(tokens - 1))]
}

fn times_agree_with_the_servers_log() {
    let is_timed = |form: &Form| form.truth.is_ok() && form.held() < Duration::from_millis(100);
    let forms: Vec<Form> = all(Api::Chat).into_iter().chain(cases()).filter(is_timed).collect();
    let server = FormServer::start(&forms);
    let lab = Lab::measured_time();
    lab.write("plan.yaml", &plan(server.port, &counts(&forms), ROUNDS));
    let ended = lab.run(&["run", "plan.yaml"]);
    let rows = rows(&lab);
    let rows = rows.get(Api::Chat.name()).unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
    let all_played = wait_for("the server's log", || Some(server.played()).filter(|played| played.len() >= rows.len()));
    let number = |played: &Played| played.id.rsplit('-').next().and_then(|number| number.parse().ok());
    let played: BTreeMap<usize, Played> =
        all_played.into_iter().filter_map(|played| Some((number(&played)?, played))).collect();
    let mut differences: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for (at, row) in rows.iter().filter(|(at, _)| **at % 2 == 0 && **at < 2 * forms.len() * ROUNDS) {
        let form = form_of(&forms, *at);
        let truth = true_times(form, &played[at]);
        let of_form = differences.entry(form.name.as_str()).or_default();
        for ((values, truth), column) in of_form.iter_mut().zip(truth).zip([column::TTFT_MS, column::TPOT_MS]) {
            let Some(truth) = truth else { continue };
            values.push(row.number(column).map_or(f64::INFINITY, |read| (read - truth).abs()));
        }
    }
    assert!(differences.len() > 100, "{} forms", differences.len());
    let mut wrong = String::new();
    let mut largest = [0.0_f64; 2];
    for (form, values) in &mut differences {
        let medians = values.each_mut().map(|values| median(values));
        largest = [largest[0].max(medians[0]), largest[1].max(medians[1])];
        if medians.iter().any(|difference| *difference > MOST) {
            let _ = writeln!(wrong, "{form}: TTFT differs by {:.2} ms, TPOT by {:.2} ms", medians[0], medians[1]);
        }
    }
    println!("{} forms: TTFT within {:.3} ms, TPOT within {:.3} ms", differences.len(), largest[0], largest[1]);
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A server that holds its connections open is not a late client: the run is judged as the server's, not as
/// this machine's.
fn held_connections_do_not_make_the_client_late() {
    let forms = all(Api::Chat);
    let server = FormServer::start(&forms);
    let lab = Lab::measured_time();
    lab.write(
        "plan.yaml",
        &format!(
            "sweepline: 1\nname: held\nendpoints: {{ a: {{ url: 'http://127.0.0.1:{}/held/v1', engine: mock }} }}\n\
             models: {{ m: {{ id: tiny }} }}\nscenarios: {{ short: {{ prompt_tokens: 30, output_tokens: 100 }} }}\n\
             phases: {{ fill: 0s, stabilize: 0s, measure: 2s, drain: 5s }}\n\
             sweeps: {{ s: {{ matrix: {{ endpoint: a, model: m, scenario: short, batch_size: 4 }} }} }}\n",
            server.port
        ),
    );
    lab.run(&["run", "plan.yaml"]);
    let exported = lab.ok(&["export", "plan.yaml", "--format", "json", "--columns", "all"]).json();
    let run = &exported[0];
    // Each of four slots sends a request every 25 ms or so. If it waited for the end of the connection, it
    // would send one every 625 ms.
    let requests = run["requests"].as_f64().unwrap();
    assert!(requests > 150.0, "{requests} requests");
    assert_ne!(run["verdict"], "invalid", "{run:#}");
    assert!(!run.to_string().contains("client_late"), "{run:#}");
}

lab::measured_tests![times_agree_with_the_servers_log, held_connections_do_not_make_the_client_late];
