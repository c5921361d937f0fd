//! Compares the client's figures with the server's own log. The mock records every event on the same clock.
//!
//! All properties that must hold on any machine are asserted exactly: causes come before effects, and
//! counts, order and texts are equal. Differences between the figures of client and server are printed,
//! and fail the test only if they are absurd.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sweepline::rows::{Outcome, Phase, Record, RequestRow};

use lab::mock::Mock;
use lab::{Lab, Run};

const MS: u64 = 1_000_000;
/// Time that the network and a busy machine may add between client and server, in nanoseconds.
const WIRE: i64 = 20_000_000;

/// The results of one plan, with the server's log.
pub struct Experiment {
    pub runs: Vec<Run>,
    /// The server's log lines about generations, by request id, without the probe's.
    log: BTreeMap<String, Value>,
}

/// One request as recorded by both sides. All instants are nanoseconds on the monotonic clock.
pub struct Both<'a> {
    pub row: &'a RequestRow,
    line: &'a Value,
    origin: u64,
}

impl Experiment {
    /// Runs a plan whose endpoints `a` and `b` are one mock with `flags`; `plan` contains everything else.
    pub fn new(flags: &[&str], plan: &str) -> Experiment {
        let lab = Lab::new();
        let mut mock = Mock::start(flags);
        let url = format!("http://127.0.0.1:{}/v1", mock.port);
        let head = format!(
            "sweepline: 1\nname: truth\nseed: 5\nmodels: {{ m: {{ id: tiny }} }}\nendpoints:\n  \
             a: {{ url: {url}, engine: mock, resource: one }}\n  b: {{ url: {url}, engine: mock, resource: one }}\n"
        );
        lab.write("plan.yaml", &(head + plan));
        run(&lab);
        mock.terminate();
        let mut log = BTreeMap::new();
        for line in mock.log_now() {
            let id = line["request_id"].as_str().unwrap_or_default().to_owned();
            if !line["n"].is_null() && id != "sweepline-probe" {
                assert!(log.insert(id, line).is_none(), "nothing is sent twice");
            }
        }
        let experiment = Experiment { runs: lab.runs().into_values().collect(), log };
        experiment.is_told_whole();
        experiment
    }

    /// Checks that every request seen by the server is a row that was sent, and vice versa.
    fn is_told_whole(&self) {
        let sent = |run: &Run| -> Vec<String> {
            rows(run).filter(|row| row.sent_ns.is_some()).map(|row| id(run, row)).collect()
        };
        let rows: BTreeSet<String> = self.runs.iter().flat_map(sent).collect();
        let log: BTreeSet<String> = self.log.keys().cloned().collect();
        assert!(!rows.is_empty());
        assert_eq!(rows.difference(&log).collect::<Vec<_>>(), Vec::<&String>::new(), "rows that the server never saw");
        assert_eq!(
            log.difference(&rows).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "seen by the server, but not in any row that was sent"
        );
    }

    fn only_run(&self) -> &Run {
        assert_eq!(self.runs.len(), 1);
        &self.runs[0]
    }

    /// Returns the run whose spec has `value` at `path`.
    pub fn run_with(&self, path: &str, value: impl Into<Value>) -> &Run {
        let value = value.into();
        let mut found = self.runs.iter().filter(|run| run.json["spec"].pointer(path) == Some(&value));
        let run = found.next().unwrap_or_else(|| panic!("no run with {path} = {value}"));
        assert!(found.next().is_none(), "several runs with {path} = {value}");
        run
    }

    /// Returns the requests of a run that were sent, by number.
    pub fn both<'a>(&'a self, run: &'a Run) -> BTreeMap<u64, Both<'a>> {
        let origin = origin(run);
        let sent = rows(run).filter(|row| row.sent_ns.is_some());
        sent.map(|row| (row.request, Both { row, line: &self.log[&id(run, row)], origin })).collect()
    }
}

/// Runs the plan. Exit code 3 is accepted, because a run may be invalid on a busy machine, which is not
/// tested here.
fn run(lab: &Lab) {
    let ended = lab.run(&["run", "plan.yaml"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
}

fn rows(run: &Run) -> impl Iterator<Item = &RequestRow> {
    run.records.iter().map(|Record { row, .. }| row)
}

/// Returns the `x-request-id` of a row.
fn id(run: &Run, row: &RequestRow) -> String {
    let run_id = run.json["id"].as_str().unwrap();
    format!("{}-{}-{}", &run_id[..16], run.json["attempt"], row.request)
}

fn origin(run: &Run) -> u64 {
    run.json["facts"]["start_monotonic_ns"].as_u64().unwrap()
}

fn at(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}"))
}

impl Both<'_> {
    pub fn sent(&self) -> u64 {
        self.origin + self.row.sent_ns.unwrap()
    }

    pub fn arrival(&self) -> u64 {
        at(self.line, "arrival_ns")
    }

    /// Returns the instant at which the server wrote the last token, which precedes the end as seen by the
    /// client. If there are no tokens, returns the instant at which the server finished the request or
    /// noticed that the client had disconnected. (The kernel may stamp the client's next request while the
    /// server is still inside the call that wrote the end of this one.)
    fn done(&self) -> u64 {
        let whole = self.line["outcome"] == "complete";
        at(self.line, if whole && !self.line["last_write_ns"].is_null() { "last_write_ns" } else { "done_ns" })
    }
}

/// Returns the number of in-flight requests at the server over time, as the instants since the start of the
/// run at which the number changes.
fn in_flight(both: &BTreeMap<u64, Both>) -> Vec<(u64, u32)> {
    let mut changes: Vec<(u64, i32)> = Vec::new();
    for both in both.values() {
        changes.extend([(both.arrival() - both.origin, 1), (both.done() - both.origin, -1)]);
    }
    // Ends are applied before starts at the same instant.
    changes.sort_unstable();
    let mut now = 0;
    let step = |(at, change): (u64, i32)| {
        now += change;
        (at, now as u32)
    };
    changes.into_iter().map(step).collect()
}

fn most(steps: &[(u64, u32)], from: u64, to: u64) -> u32 {
    let before = steps.iter().rfind(|(at, _)| *at <= from).map_or(0, |(_, number)| *number);
    steps.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, number)| *number).fold(before, u32::max)
}

fn mean(steps: &[(u64, u32)], from: u64, to: u64) -> f64 {
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
    let part = |((at, number), end): (&(u64, u32), u64)| {
        f64::from(*number) * end.clamp(from, to).saturating_sub((*at).clamp(from, to)) as f64
    };
    steps.iter().zip(ends).map(part).sum::<f64>() / (to - from) as f64
}

/// Prints p50, p99 and maximum of some values in nanoseconds; returns the p50 in milliseconds.
pub fn tell(what: &str, mut values: Vec<i64>) -> f64 {
    assert!(!values.is_empty(), "{what}");
    values.sort_unstable();
    let ms = |share: f64| values[((values.len() - 1) as f64 * share) as usize] as f64 / MS as f64;
    eprintln!("{what}: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms (n={})", ms(0.5), ms(0.99), ms(1.0), values.len());
    ms(0.5)
}

/// Maps each request of a closed loop to its slot's previous request, which is the one that ended at the
/// instant when the slot became free. `None` for the first request of each slot.
fn before(run: &Run) -> BTreeMap<u64, Option<&RequestRow>> {
    let mut ended: BTreeMap<u64, Vec<&RequestRow>> = BTreeMap::new();
    rows(run).for_each(|row| ended.entry(row.ended_ns.unwrap()).or_default().push(row));
    rows(run).map(|row| (row.request, ended.get_mut(&row.scheduled_ns).and_then(Vec::pop))).collect()
}

/// Returns the last request of each slot.
fn last_of_slots(run: &Run) -> Vec<&RequestRow> {
    let followed: BTreeSet<u64> = before(run).values().flatten().map(|row| row.request).collect();
    rows(run).filter(|row| !followed.contains(&row.request)).collect()
}

#[test]
fn a_closed_loop_keeps_its_slots_at_work() {
    let experiment = Experiment::new(
        &["--ttft", "10ms", "--itl", "2ms", "--slots", "8", "--jitter", "20%"],
        "scenarios: { short: { base: B1, output_tokens: 10 } }
phases: { fill: 800ms, stabilize: 500ms, measure: 1500ms, drain: 30s }
sweeps: { one: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [4] } } }
",
    );
    let run = experiment.only_run();
    let both = experiment.both(run);
    let before = before(run);

    // Slots join one by one, evenly over fill; after that, each request follows another.
    let first: Vec<u64> = rows(run).filter(|row| before[&row.request].is_none()).map(|row| row.scheduled_ns).collect();
    let steps = in_flight(&both);
    assert_eq!(BTreeSet::from_iter(first), [0, 200, 400, 600].map(|ms| ms * MS).into());
    for slot in 0..4 {
        let joined = slot * 200 * MS;
        assert_eq!(most(&steps, joined, joined + 200 * MS), slot as u32 + 1, "in flight {slot} slots after the first");
    }
    assert_eq!(most(&steps, 0, u64::MAX), 4, "never more requests than slots");

    // The gap of a slot at the server is the client's resend time plus the network time.
    let pairs = || before.iter().filter_map(|(next, row)| Some((&both[&row.as_ref()?.request], both.get(next)?)));
    let of_client = |(one, next): (&Both, &Both)| next.sent() as i64 - (one.origin + one.row.ended_ns.unwrap()) as i64;
    let of_server = |(one, next): (&Both, &Both)| next.arrival() as i64 - one.done() as i64;
    tell("redispatch, as the rows tell it", pairs().map(of_client).collect());
    let more: Vec<i64> = pairs().map(|pair| of_server(pair) - of_client(pair)).collect();
    let (count, longer) = (more.len(), more.iter().filter(|more| **more > WIRE).count());
    tell("a slot's gap at the server beyond that", more);
    assert!(count > 100, "{count} requests followed another one");
    assert!(longer * 50 <= count, "{longer} of {count} gaps exceed those of the rows by more than 20 ms");

    // No slot is idle, and the load does not drop at phase boundaries.
    let (full, end) = (run.window("stabilize_ns"), run.window("measure_end_ns"));
    assert!(last_of_slots(run).iter().all(|row| row.ended_ns.unwrap() >= end), "every slot works until the end");
    let overall = mean(&steps, full, end);
    eprintln!("in flight at the server in stabilize and measure: {overall:.2} of 4");
    assert!(overall > 4.0 * 0.7, "{overall} in flight");
    for border in ["stabilize_ns", "measure_start_ns", "measure_end_ns"] {
        let border = run.window(border);
        let around = mean(&steps, border - 150 * MS, (border + 150 * MS).min(run.window("end_ns")));
        let around = if border == full { mean(&steps, border, border + 150 * MS) } else { around };
        assert!(around > overall * 0.7, "{around:.2} in flight around {border}, {overall:.2} overall");
    }
}

/// Returns the arrivals expected by `t` nanoseconds, for `qps` after a linear rise over `fill` nanoseconds.
fn expected(t: u64, qps: f64, fill: u64) -> f64 {
    let (t, fill) = (t as f64 / 1e9, fill as f64 / 1e9);
    if t < fill { qps * t * t / (2.0 * fill) } else { qps * (t - fill / 2.0) }
}

pub fn scheduled(run: &Run) -> Vec<u64> {
    let rows: BTreeMap<u64, u64> = rows(run).map(|row| (row.request, row.scheduled_ns)).collect();
    assert!(rows.keys().copied().eq(0..rows.len() as u64), "no request is missing: {:?}", rows.keys());
    rows.into_values().collect()
}

#[test]
fn open_loop_arrivals_are_the_schedules() {
    let experiment = Experiment::new(
        &["--ttft", "5ms", "--itl", "1ms", "--slots", "64"],
        "scenarios: { short: { base: B1, output_tokens: 5 } }
phases: { fill: 1s, stabilize: 200ms, measure: 1s, drain: 30s }
sweeps:
  even: { arrivals: constant, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [40] } }
  chance: { matrix: { endpoint: [a, b], model: [m], scenario: [short], qps: [30] } }
  twice: { phases: { fill: 500ms }, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [60] } }
  again: { repeats: 2, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [35] } }
",
    );
    for run in &experiment.runs {
        let both = experiment.both(run);
        let wanted = scheduled(run);
        assert!(wanted.is_sorted());
        let on_time: Vec<i64> = both.values().map(|both| both.arrival() as i64 - both.sent() as i64).collect();
        assert!(on_time.iter().all(|delay| *delay >= 0), "nothing arrives before it is sent");
        tell("from sent to the server's arrival", on_time);
        for both in both.values() {
            assert!(both.row.sent_ns >= Some(both.row.scheduled_ns), "never early: {:?}", both.row);
            assert_eq!(both.row.released_ns, Some(both.row.scheduled_ns), "no cap");
        }
        tell("lateness", both.values().map(|b| (b.row.sent_ns.unwrap() - b.row.scheduled_ns) as i64).collect());
        // Every request scheduled in the window was sent, however late.
        let end = run.window("measure_end_ns");
        assert_eq!(
            wanted.iter().filter(|at| **at < end).count(),
            both.values().filter(|b| b.row.scheduled_ns < end).count()
        );
        // The server receives the requests in the client's order.
        let mut by_sent: Vec<&Both> = both.values().collect();
        by_sent.sort_by_key(|both| both.sent());
        let overtaken = by_sent
            .windows(2)
            .filter(|two| two[1].arrival() < two[0].arrival() && two[1].sent() - two[0].sent() > WIRE as u64);
        assert_eq!(overtaken.count(), 0);
        assert!(by_sent.windows(2).all(|two| two[0].row.request < two[1].row.request), "sent in the schedule's order");
    }

    // With constant spacing, arrival k is at the instant at which k arrivals are expected, so arrivals are
    // evenly spaced after a linear rise.
    let even = scheduled(experiment.run_with("/load/open/arrivals", "constant"));
    for (k, at) in even.iter().enumerate() {
        let error = expected(*at, 40.0, 1_000 * MS) - (k + 1) as f64;
        assert!(error.abs() < 1e-6, "arrival {k} at {at}: off by {error}");
    }
    assert_eq!(
        even.iter().filter(|at| **at < 1_000 * MS).count(),
        19,
        "half of 40 arrivals within fill, the 20th at its end"
    );
    let steady: Vec<&u64> = even.iter().filter(|at| **at >= 1_000 * MS).collect();
    assert!(steady.len() >= 48 && steady.windows(2).all(|two| (two[1] - two[0]).abs_diff(25 * MS) <= 1), "{steady:?}");

    // The same seed gives the same gaps on another endpoint, and half the gaps at twice the rate;
    // another repeat has other gaps.
    let chance: Vec<Vec<u64>> = experiment.runs.iter().filter(|run| load(run) == 30.0).map(scheduled).collect();
    let length = chance[0].len().min(chance[1].len());
    assert_eq!(chance[0][..length], chance[1][..length]);
    let twice = scheduled(experiment.run_with("/load/open/qps", 60));
    assert!(length > 30 && twice.len() > 50);
    let pairs: Vec<(u64, u64)> = chance[0].iter().copied().zip(twice.iter().copied()).collect();
    assert!(pairs.iter().all(|(slow, fast)| (slow / 2).abs_diff(*fast) <= 1), "{pairs:?}");
    let gaps: BTreeSet<u64> = chance[0].windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.len() > 25, "Poisson gaps vary: {gaps:?}");
    let again: Vec<Vec<u64>> = experiment.runs.iter().filter(|run| load(run) == 35.0).map(scheduled).collect();
    let first: BTreeSet<&u64> = again[0].iter().collect();
    assert!(again[1].iter().filter(|at| first.contains(at)).count() < 3, "repeats have their own arrivals");
}

fn load(run: &&Run) -> f64 {
    run.json["facts"]["qps"].as_f64().unwrap()
}

#[test]
fn latencies_contain_the_servers_own() {
    let experiment = Experiment::new(
        &["--ttft", "15ms", "--itl", "3ms", "--slots", "3", "--jitter", "30%"],
        "scenarios: { stream: { base: B1, output_tokens: 8 }, whole: { base: B1, output_tokens: 8, stream: false } }
phases: { fill: 200ms, stabilize: 200ms, measure: 1s, drain: 30s }
sweeps:
  closed: { matrix: { endpoint: [a], model: [m], scenario: [stream, whole], batch_size: [4] } }
  open: { matrix: { endpoint: [a], model: [m], scenario: [stream, whole], qps: [30] } }
",
    );
    let (mut ttft, mut e2e) = (Vec::new(), Vec::new());
    for run in &experiment.runs {
        let stream = run.json["facts"]["stream"].as_bool().unwrap();
        let both = experiment.both(run);
        let ok: Vec<&Both> = both.values().filter(|both| both.row.outcome.is_ok()).collect();
        assert!(ok.len() > 20 && ok.len() + 8 >= both.len(), "{} of {} ok", ok.len(), both.len());
        for Both { row, line, origin } in ok {
            let (sent, arrival) = (origin + row.sent_ns.unwrap(), at(line, "arrival_ns"));
            let (first, last) = (at(line, "first_write_ns"), at(line, "last_write_ns"));
            assert!(sent <= arrival, "{row:?} {line}");
            assert_eq!(row.first_token_ns.is_some(), stream);
            if let Some(token) = row.first_token_ns.map(|token| origin + token) {
                assert!(token >= first, "{row:?} {line}");
                ttft.push((token - sent) as i64 - (first - arrival) as i64);
            }
            let end = origin + if stream { row.last_token_ns } else { row.done_ns }.unwrap();
            assert!(end >= last, "{row:?} {line}");
            e2e.push((end - sent) as i64 - (last - arrival) as i64);
            assert_eq!(u64::from(row.output_tokens.unwrap()), at(line, "output_tokens"));
        }
    }
    assert!(ttft.iter().chain(&e2e).all(|error| *error >= 0), "a latency is below that of the server");
    let p50 = [tell("TTFT above the server's own", ttft), tell("E2E above the server's own", e2e)];
    assert!(p50.iter().all(|ms| *ms < 20.0), "far above the usual: {p50:?} ms");
}

#[test]
fn a_cap_is_never_exceeded_and_waiting_is_told() {
    let experiment = Experiment::new(
        &["--ttft", "40ms", "--itl", "2ms", "--slots", "8"],
        "scenarios: { short: { base: B1, output_tokens: 8 } }
phases: { fill: 200ms, stabilize: 200ms, measure: 1s, drain: 200ms }
sweeps:
  capped: { arrivals: constant, matrix: { endpoint: [a], model: [m], scenario: [short], qps: [100], batch_size: [2] } }
",
    );
    let run = experiment.only_run();
    let both = experiment.both(run);
    assert_eq!(most(&in_flight(&both), 0, u64::MAX), 2, "two at once and never more");
    let wanted = scheduled(run);
    assert_eq!(run.json["facts"]["scheduled"], wanted.len());
    assert_eq!(run.json["facts"]["never_sent"], 0, "requests held back by the cap are not the generator's fault");
    // The schedule continues as if the cap did not exist.
    assert!(wanted.iter().enumerate().all(|(k, at)| (expected(*at, 100.0, 200 * MS) - (k + 1) as f64).abs() < 1e-6));

    let ended: BTreeSet<u64> = rows(run).filter_map(|row| row.ended_ns).collect();
    let mut released = Vec::new();
    let (mut waited, mut held) = (0, 0);
    let mut by_number: Vec<&RequestRow> = rows(run).collect();
    by_number.sort_by_key(|row| row.request);
    for row in by_number {
        match row.released_ns {
            Some(at) => {
                assert_eq!(held, 0, "first come, first served: {row:?}");
                assert!(at >= row.scheduled_ns && row.sent_ns.is_none_or(|sent| sent >= at), "{row:?}");
                assert!(at == row.scheduled_ns || ended.contains(&at), "released when another request ended: {row:?}");
                waited += u32::from(at > row.scheduled_ns);
                released.push(at);
            }
            None => {
                held += 1;
                assert_eq!((row.outcome, row.sent_ns), (Outcome::CutAtDrain, None), "{row:?}");
                assert_eq!(row.error.as_deref(), Some("still waiting for the in-flight cap"));
            }
        }
    }
    // Responses that ended before the client woke up may be read in either order. With two slots, only
    // neighbors can swap.
    assert!(released.windows(3).all(|three| three[0] <= three[2]), "{released:?}");
    assert!(waited > 20, "{waited} waited and were released");
    assert!(held > 20, "{held} waited until the end");
    let held_in_window = rows(run).filter(|row| row.released_ns.is_none() && row.phase == Phase::Measure).count();
    assert!(held_in_window > 0, "a request of the window that was never released is a row of the window");
}

/// The messages of a request, as role and text.
type Messages = Vec<(String, String)>;

fn messages(line: &Value) -> Messages {
    let body: Value = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    body["messages"].as_array().unwrap().iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect()
}

/// Splits a text into its nonce and the rest.
fn split_nonce(text: &str) -> Option<(&str, &str)> {
    let nonce = text.strip_prefix("[ref ")?;
    let (nonce, rest) = nonce.split_once("] ")?;
    nonce.chars().all(|c| c.is_ascii_digit() || c == ' ').then_some((nonce, rest))
}

/// Returns the messages that open each item of a run: each request, or each conversation.
fn openings(experiment: &Experiment, run: &Run) -> BTreeMap<u64, Messages> {
    let both = experiment.both(run);
    let opening = both.values().filter(|both| both.row.turn.unwrap_or(0) == 0);
    opening.map(|both| (both.row.conversation.unwrap_or(both.row.request), messages(both.line))).collect()
}

/// Returns the values of both runs for the items that they share.
fn side_by_side<T: Clone>(one: &BTreeMap<u64, T>, other: &BTreeMap<u64, T>) -> Vec<(T, T)> {
    let pairs: Vec<(T, T)> = one.iter().filter_map(|(k, a)| Some((a.clone(), other.get(k)?.clone()))).collect();
    assert!(pairs.len() > 3, "{} items in both runs", pairs.len());
    pairs
}

#[test]
fn two_endpoints_get_the_same_texts_and_two_runs_share_no_prefix() {
    let experiment = Experiment::new(
        &["--slots", "8", "--itl", "1ms"],
        "scenarios:
  same: { base: A1, output_tokens: 4 }
  diverse: { base: B1, output_tokens: 4 }
  system: { base: C, system_tokens: 100, output_tokens: 4 }
  talk: { base: D, turns: 2, output_tokens: 4 }
phases: { fill: 20ms, stabilize: 50ms, measure: 250ms, drain: 30s }
sweeps:
  two: { repeats: 2, matrix: { endpoint: [a, b], model: [m], scenario: [same, diverse, system, talk], batch_size: [2] } }
",
    );
    assert_eq!(experiment.runs.len(), 16);
    let mut nonces: BTreeMap<String, usize> = BTreeMap::new();
    // The texts of each endpoint by scenario and repeat, without the nonce of the first message.
    let mut texts: BTreeMap<(String, u64), Vec<BTreeMap<u64, Messages>>> = BTreeMap::new();
    for (number, run) in experiment.runs.iter().enumerate() {
        let mut openings = openings(&experiment, run);
        let mut own = BTreeSet::new();
        for messages in openings.values_mut() {
            let first = &mut messages[0].1;
            let (nonce, rest) = split_nonce(first).unwrap_or_else(|| panic!("no nonce: {first}"));
            let taken = *nonces.entry(nonce.to_owned()).or_insert(number);
            assert_eq!(taken, number, "two runs share the nonce {nonce}");
            own.insert(nonce.to_owned());
            *first = rest.to_owned();
        }
        let spec = &run.json["spec"];
        let reuse = spec["scenario"]["reuse"].as_str().unwrap().to_owned();
        let expected = if matches!(&*reuse, "same_prompt" | "shared_system") { 1 } else { openings.len() };
        assert_eq!(own.len(), expected, "{reuse}");
        texts.entry((reuse, spec["repeat"].as_u64().unwrap())).or_default().push(openings);
    }
    for (what, texts) in &texts {
        let [a, b] = &texts[..] else { panic!("{what:?}: two endpoints") };
        assert!(side_by_side(a, b).iter().all(|(a, b)| a == b), "{what:?}: the endpoints get different texts");
        let said: BTreeSet<&String> = a.values().map(|messages| &messages.last().unwrap().1).collect();
        assert_eq!(said.len(), if what.0 == "same_prompt" { 1 } else { a.len() }, "{what:?}: texts of a run");
    }
    for reuse in ["same_prompt", "none", "shared_system", "conversation"] {
        let of_repeat = |repeat: u64| &texts[&(reuse.to_owned(), repeat)][0];
        let pairs = side_by_side(of_repeat(0), of_repeat(1));
        assert!(pairs.iter().all(|(one, other)| one.last() != other.last()), "{reuse}: each repeat has its own texts");
    }
}

#[test]
fn without_a_nonce_texts_are_sent_verbatim() {
    let experiment = Experiment::new(
        &["--slots", "8", "--itl", "1ms"],
        "nonce: off
scenarios: { diverse: { base: B1, output_tokens: 4 }, system: { base: C, system_tokens: 100, output_tokens: 4 } }
phases: { fill: 20ms, stabilize: 50ms, measure: 250ms, drain: 30s }
sweeps: { two: { matrix: { endpoint: [a, b], model: [m], scenario: [diverse, system], batch_size: [2] } } }
",
    );
    for reuse in ["none", "shared_system"] {
        let runs = experiment.runs.iter().filter(|run| run.json["spec"]["scenario"]["reuse"] == reuse);
        let texts: Vec<_> = runs.map(|run| openings(&experiment, run)).collect();
        for (a, b) in side_by_side(&texts[0], &texts[1]) {
            assert_eq!(a, b);
            assert!(split_nonce(&a[0].1).is_none(), "{a:?}");
        }
    }
}

#[test]
fn drain_keeps_the_load_until_the_last_measured_request_has_ended() {
    let experiment = Experiment::new(
        &["--ttft", "20ms", "--itl", "8ms", "--slots", "8", "--jitter", "40%"],
        "scenarios: { long: { base: B1, output_tokens: 25 } }
phases: { fill: 100ms, stabilize: 100ms, measure: 600ms, drain: 60s }
sweeps:
  keep: { matrix: { endpoint: [a], model: [m], scenario: [long], batch_size: [3] } }
  stop: { phases: { drain: { for: 60s, mode: stop } }, matrix: { endpoint: [a], model: [m], scenario: [long], batch_size: [3] } }
",
    );
    let keep = experiment.run_with("/phases/drain/mode", "keep");
    let last = rows(keep).filter(|row| row.phase == Phase::Measure).map(|row| row.ended_ns.unwrap()).max().unwrap();
    assert!(rows(keep).filter(|row| row.phase == Phase::Measure).all(|row| row.outcome.is_ok()));
    assert!(last > keep.window("measure_end_ns"), "a request of the window ends after it");
    assert!(rows(keep).any(|row| row.phase == Phase::Drain), "the load continues");
    let slots = last_of_slots(keep);
    assert_eq!(slots.len(), 3);
    assert!(slots.iter().all(|row| row.ended_ns.unwrap() >= last), "every slot works until {last}: {slots:?}");
    let steps = in_flight(&experiment.both(keep));
    let kept = mean(&steps, keep.window("measure_end_ns"), last);
    assert!(kept > 3.0 * 0.7, "{kept} of 3 in flight until the last measured request has ended");
    assert!(keep.window("end_ns") >= last && keep.window("end_ns") < last + 10_000 * MS, "and not much longer");

    let stop = experiment.run_with("/phases/drain/mode", "stop");
    let end = stop.window("measure_end_ns");
    assert!(rows(stop).all(|row| row.scheduled_ns < end), "no request starts after the window");
    let cut: Vec<&RequestRow> = rows(stop).filter(|row| !row.outcome.is_ok()).collect();
    assert!((1..=3).contains(&cut.len()), "{cut:?}");
    let both = experiment.both(stop);
    for row in cut {
        assert_eq!((row.outcome, row.phase), (Outcome::CutAtDrain, Phase::Measure), "{row:?}");
        assert!(row.ended_ns >= Some(end), "{row:?}");
        let line = both[&row.request].line;
        assert_eq!(line["outcome"], "client_closed", "aborted at once, not served to its end: {line}");
    }
}

#[test]
fn a_window_is_prolonged_until_it_holds_enough() {
    let experiment = Experiment::new(
        &["--ttft", "20ms", "--itl", "1ms", "--slots", "8"],
        "scenarios: { short: { base: B1, output_tokens: 5 } }
phases: { fill: 100ms, stabilize: 100ms, drain: 30s }
sweeps:
  enough:
    phases: { measure: { for: 100ms, min_requests: 40, at_most: 5m } }
    matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [2] }
  bounded:
    phases: { measure: { for: 100ms, min_requests: 5000, at_most: 500ms } }
    matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [2] }
  arrivals:
    phases: { measure: { for: 100ms, min_requests: 40, at_most: 5m } }
    matrix: { endpoint: [a], model: [m], scenario: [short], qps: [50] }
",
    );
    assert_eq!(experiment.runs.len(), 3);
    for run in &experiment.runs {
        let (start, end) = (run.window("measure_start_ns"), run.window("measure_end_ns"));
        let inside = rows(run).filter(|row| (start..end).contains(&row.scheduled_ns)).count();
        assert_eq!(rows(run).filter(|row| row.phase == Phase::Measure).count(), inside, "the phase is the window");
        assert_eq!(run.json["facts"]["scheduled_in_window"], inside);
        if run.json["spec"]["phases"]["measure"]["min_requests"] == 5000 {
            assert_eq!(end - start, 500 * MS, "not longer than allowed");
            assert!(inside < 5000);
        } else {
            assert!(end - start > 100 * MS, "longer than {} ns", end - start);
            assert_eq!(inside, 40, "and no longer than needed");
        }
    }
}
