//! Tests the threshold of each reason from both sides, on runs that are otherwise clean.

use super::*;
use crate::analysis::synthetic::{Run, fail, postpone, read, verdict};
use crate::rows::{HookOutcome, HookRun, ProbePrompt, PromptCount, Record, Replay, Telemetry};
use crate::units::{Nanos, Share};

const MS: u64 = 1_000_000;

/// Returns a closed-loop run and its facts. Its window contains exactly 1 000 requests and ends when the
/// next request is scheduled.
pub(super) fn clean() -> (Vec<Record>, Facts) {
    let (records, mut facts) = Run { seconds: 11.0, ..Run::default() }.make();
    let inside = records.iter().map(|record| record.row.scheduled_ns);
    let mut inside: Vec<u64> = inside.filter(|at| window::contains(&facts.windows, *at)).collect();
    inside.sort_unstable();
    assert!(inside[999] < inside[1000]);
    facts.windows.measure_end_ns = inside[1000];
    facts.scheduled_in_window = 1000;
    let observed = facts.observed.as_mut().expect("observed");
    observed.for_ns = inside[1000] - facts.windows.measure_start_ns;
    (records, facts)
}

/// Spoils `count` records of the window. They are spread out, so that the two halves of the window stay
/// alike.
pub(super) fn spoil(records: &mut [Record], facts: &Facts, count: usize, mut with: impl FnMut(&mut Record)) {
    let windows = facts.windows;
    let inside = records.iter_mut().filter(|record| window::contains(&windows, record.row.scheduled_ns));
    let mut inside: Vec<&mut Record> = inside.collect();
    let all = inside.len();
    (0..count).for_each(|k| with(inside[k * all / count]));
}

fn judged(records: &[Record], facts: &Facts) -> Verdict {
    verdict(records, facts, &Validity::default(), None)
}

/// Returns the state of one reason after `count` of 1 000 requests were spoiled.
fn state_of(name: &str, count: usize, with: impl FnMut(&mut Record)) -> Option<State> {
    let (mut records, facts) = clean();
    spoil(&mut records, &facts, count, with);
    let verdict = judged(&records, &facts);
    verdict.reasons.into_iter().find(|reason| reason.name == name).map(|reason| reason.state)
}

#[test]
fn a_clean_run_is_valid() {
    for run in [Run::default(), Run::open(50.0)] {
        let (records, facts) = run.make();
        let verdict = judged(&records, &facts);
        assert_eq!(verdict.to_string(), "valid", "{verdict:?}");
        let unchecked: Vec<&str> = verdict.not_checked.iter().map(|(name, _)| *name).collect();
        assert_eq!(unchecked, ["prompt_length", "warm_cache"]);
    }
}

#[test]
fn a_hook_that_failed_makes_a_run_suspect_and_one_that_did_not_does_not() {
    let hook = |outcome: HookOutcome, exit_code: Option<i32>, detail: Option<&str>| HookRun {
        when: "after_run".into(),
        what: "./collect.sh".into(),
        outcome,
        exit_code,
        status: None,
        detail: detail.map(str::to_owned),
        took_ns: MS,
        output: String::new(),
    };
    let (records, facts) = clean();
    let judged = |hooks: Vec<HookRun>| judged(&records, &Facts { hooks, ..facts.clone() });
    assert_eq!(judged(vec![hook(HookOutcome::Ok, Some(0), None)]).to_string(), "valid");
    let failed = hook(HookOutcome::Failed, Some(3), None);
    let late = hook(HookOutcome::TimedOut, None, Some("did not end within 60s"));
    let verdict = judged(vec![hook(HookOutcome::Ok, Some(0), None), late, failed]);
    assert_eq!(verdict.to_string(), "suspect: hook_failed");
    assert_eq!(
        verdict.reasons[0].text,
        "the after_run hook `./collect.sh` failed: did not end within 60s; 1 more failed"
    );
}

#[test]
fn a_server_that_is_not_near_as_the_plan_says_makes_a_run_suspect() {
    let (records, facts) = clean();
    let why = "`near: true`, but a connection takes 2.40 ms to open";
    let verdict = judged(&records, &Facts { not_near: Some(why.to_owned()), ..facts });
    assert_eq!(verdict.to_string(), "suspect: not_near");
    assert_eq!(verdict.reasons[0].text, why);
}

#[test]
fn runs_from_before_the_generator_observed_itself_are_judged_by_their_cpu() {
    let (records, facts) = clean();
    let old = Facts { observed: None, ..facts };
    let verdict = judged(&records, &old);
    assert_eq!(verdict.to_string(), "valid", "{verdict:?}");
    let why = &verdict.not_checked["client_saturated"];
    assert_eq!(why, "read delays are not known: only the CPU was checked");
}

#[test]
fn client_late() {
    let ask = |count, by| state_of("client_late", count, |record| postpone(record, by));
    assert_eq!([ask(10, 200 * MS), ask(11, 200 * MS)], [None, Some(State::Suspect)]);
    assert_eq!([ask(100, 200 * MS), ask(101, 200 * MS)], [Some(State::Suspect), Some(State::Invalid)]);
    // Whatever the share is, a lateness that changes no figure by 2 % does not count.
    assert_eq!(ask(200, 2 * MS), None);
    // A request is late if it is sent more than 1 ms late; requests of the clean run are already 20 µs late.
    let ask = |by| state_of("client_late", 500, |record| record.row.sent_ns = record.row.sent_ns.map(|sent| sent + by));
    assert_eq!([ask(980_000), ask(981_000)], [None, Some(State::Invalid)]);
}

#[test]
fn lateness_counts_where_it_changes_a_percentile_or_an_answer() {
    let (clean, facts) = Run { seconds: 20.0, ..Run::open(50.0) }.make();
    let ask = |count, by, limit: Option<u64>| {
        let mut records = clean.clone();
        spoil(&mut records, &facts, count, |record| postpone(record, by));
        let limits = |limit| [(Percentile::P95, Nanos::from_millis(limit))].into_iter().collect();
        let slo = limit.map(|limit| Slo { ttft: limits(limit), ..Slo::default() });
        let reasons = verdict(&records, &facts, &Validity::default(), slo.as_ref()).reasons;
        reasons.into_iter().find(|reason| reason.name == "client_late").map(|reason| (reason.state, reason.text))
    };
    // About 1 000 requests: 3 % of them do not change p95, but p99.
    assert_eq!(ask(30, MS + MS / 10, None), None);
    let (state, text) = ask(30, 60 * MS, None).unwrap();
    assert!(state == State::Suspect && text.contains("effect: ttft_from_schedule p99 would be "), "{text}");
    assert_eq!(ask(30, 60 * MS, Some(40)).unwrap().0, State::Suspect, "p95 holds with and without the late requests");
    // 9 % change p95: a limit of 40 ms is missed only because of the client.
    assert_eq!(ask(90, 60 * MS, None).unwrap().0, State::Suspect);
    let (state, text) = ask(90, 60 * MS, Some(40)).unwrap();
    assert!(state == State::Invalid && text.contains("effect: ttft_from_schedule p95 ≤ 40ms would be 2"), "{text}");
}

#[test]
fn lateness_is_measured_against_ttft_and_without_connecting() {
    let (mut records, facts) = Run { ttft: 500 * MS, seconds: 40.0, ..Run::default() }.make();
    spoil(&mut records, &facts, 400, |record| record.row.sent_ns = record.row.sent_ns.map(|at| at + 4 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "valid");
    spoil(&mut records, &facts, 400, |record| record.row.sent_ns = record.row.sent_ns.map(|at| at + 4 * MS));
    assert!(judged(&records, &facts).to_string().contains("client_late"));
    spoil(&mut records, &facts, 400, |record| record.row.connect_ns = Some(8 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "valid");
}

#[test]
fn errors() {
    let ask = |count| state_of("errors", count, |record| fail(record, Outcome::Http(500), MS));
    assert_eq!([ask(10), ask(11)], [None, Some(State::Suspect)]);
    assert_eq!([ask(100), ask(101)], [Some(State::Suspect), Some(State::Invalid)]);
}

#[test]
fn warm_cache() {
    let state = |cached: u32, reusable: Option<u32>| {
        let (mut records, facts) = clean();
        for record in &mut records {
            // 1 000 tokens by our count and 1 000 by the server's count: a template cannot be distinguished
            // from an error of a quarter in our count.
            let row = &mut record.row;
            (row.intended_prompt_tokens, row.prompt_tokens) = (1_000, Some(1_000));
            (row.cached_tokens, row.reusable_tokens) = (Some(cached), reusable);
        }
        let verdict = judged(&records, &facts);
        let found = verdict.reasons.iter().find(|reason| reason.name == "warm_cache").map(|reason| reason.state);
        assert_eq!(verdict.not_checked.contains_key("warm_cache"), reusable.is_none());
        found
    };
    // No reuse is declared, so the limits are the template's 96 tokens plus 2 points, and plus 10 points.
    assert_eq!([state(96 + 19, Some(0)), state(96 + 21, Some(0))], [None, Some(State::Suspect)]);
    assert_eq!([state(96 + 99, Some(0)), state(96 + 101, Some(0))], [Some(State::Suspect), Some(State::Invalid)]);
    assert_eq!([state(600 + 115, Some(600)), state(600 + 117, Some(600))], [None, Some(State::Suspect)]);
    assert_eq!(state(0, Some(600)), None, "less than declared is a result");
    assert_eq!(state(900, None), None);
}

/// The server's metrics are used if its responses do not report cached tokens.
#[test]
fn warm_cache_by_the_server_s_metrics() {
    let (mut records, mut facts) = clean();
    facts.telemetry = Some(Telemetry::default());
    for record in &mut records {
        let row = &mut record.row;
        (row.intended_prompt_tokens, row.prompt_tokens) = (1_000, Some(1_000));
        (row.cached_tokens, row.reusable_tokens) = (None, Some(600));
    }
    let sample = |at_ns, source: &str, name: &str, value| Sample {
        at_ns,
        source: source.to_owned(),
        name: name.to_owned(),
        value,
        url: Some(0),
        ..Sample::default()
    };
    // Returns the samples of three scrapes: before the load, at the start of the window and after the load.
    let scraped = |hits: f64, preemptions: f64| -> Vec<Sample> {
        let of = |(at, share): (u64, f64)| {
            [
                sample(at, "scrape", "up", 1.0),
                sample(at, "server", "prefix_cache_queries", 5e3 + 1e6 * share),
                sample(at, "server", "prefix_cache_hits", 4e3 + 1e6 * hits * share),
                sample(at, "server", "preemptions", preemptions * share),
            ]
        };
        [(0, 0.0), (facts.windows.measure_start_ns, 0.3), (facts.windows.end_ns, 1.0)]
            .into_iter()
            .flat_map(of)
            .collect()
    };
    let (run, events) = read(&records, &facts, None);
    let judged = |samples: &[Sample]| judge((run.rows(), samples), &events, &facts, &Validity::default(), None);
    let found = |samples: &[Sample]| judged(samples).reasons.into_iter().find(|reason| reason.name == "warm_cache");
    // 600 tokens are declared, the template has at most 96, and 2 points are allowed. However large the
    // excess, other users may have caused it.
    assert_eq!(found(&scraped(0.71, 0.0)), None);
    assert!(!judged(&scraped(0.71, 0.0)).not_checked.contains_key("warm_cache"));
    for hits in [0.72, 1.0] {
        let reason = found(&scraped(hits, 0.0)).unwrap();
        assert_eq!(reason.state, State::Suspect);
        assert!(reason.text.contains("the run's prompts share 60.0%"), "{}", reason.text);
    }
    let unchecked = |samples: &[Sample]| judged(samples).not_checked["warm_cache"].clone();
    assert!(unchecked(&[]).ends_with("does not report cached prompt tokens"));
    assert!(unchecked(&scraped(1.0, 3.0)).ends_with("requests were preempted, and their prompts were looked up again"));
    assert!(unchecked(&scraped(1.0, 0.0)[4..]).contains("had not finished when the load began"));
    let failed = Sample { error: Some("status".to_owned()), ..sample(facts.windows.end_ns + 1, "scrape", "up", 0.0) };
    assert!(
        unchecked(&[scraped(1.0, 0.0), vec![failed]].concat()).ends_with("the scrape after the load failed (status)")
    );
}

#[test]
fn prompt_length() {
    let found = |server: u32, probe: Option<ProbePrompt>, count: Option<PromptCount>| {
        let (mut records, mut facts) = clean();
        (facts.prompt_count, facts.probe_prompt) = (count, probe);
        for record in &mut records {
            (record.row.intended_prompt_tokens, record.row.prompt_tokens) = (1_000, Some(server));
        }
        // The length of a history is estimated rather than counted.
        spoil(&mut records, &facts, 100, |record| (record.row.turn, record.row.prompt_tokens) = (Some(1), Some(9_000)));
        let verdict = judged(&records, &facts);
        let unchecked = verdict.not_checked.contains_key("prompt_length");
        assert_eq!(unchecked, count != Some(PromptCount::Tokenizer));
        verdict
            .reasons
            .into_iter()
            .find(|reason| reason.name == "prompt_length")
            .map(|reason| (reason.state, reason.text))
    };
    let exact = Some(PromptCount::Tokenizer);
    for (server, differs) in [(1_000, false), (1_050, false), (1_051, true), (950, false), (949, true)] {
        assert_eq!(found(server, None, exact).is_some(), differs, "{server}");
    }
    // A server that adds 100 tokens to every prompt also adds them to the probe's prompt.
    let around = Some(ProbePrompt { ours: 12, server: 112 });
    assert_eq!(found(1_100, around, exact), None);
    let (state, text) = found(1_000, around, exact).unwrap();
    assert_eq!(state, State::Suspect);
    assert_eq!(text, "the server counts 1000.0 tokens per prompt, we 1100.0: 9.1% apart");
    for count in [None, Some(PromptCount::Estimate)] {
        assert_eq!(found(5_000, None, count), None);
    }
    estimates();
    let (mut records, mut facts) = clean();
    facts.prompt_count = exact;
    records.iter_mut().for_each(|record| record.row.prompt_tokens = None);
    assert!(judged(&records, &facts).not_checked.contains_key("prompt_length"));
}

/// An estimate is also compared with the server's count if the probe shows how many tokens the template
/// adds.
fn estimates() {
    let found = |server: u32| {
        let (mut records, mut facts) = clean();
        facts.prompt_count = Some(PromptCount::Estimate);
        facts.probe_prompt = Some(ProbePrompt { ours: 12, server: 52 });
        for record in &mut records {
            (record.row.intended_prompt_tokens, record.row.prompt_tokens) = (960, Some(server));
        }
        let reasons = judged(&records, &facts).reasons.into_iter();
        reasons.filter(|reason| reason.name == "prompt_length").map(|reason| (reason.state, reason.text)).next()
    };
    for (server, differs) in [(1_000, false), (1_050, false), (1_051, true), (950, false), (949, true)] {
        assert_eq!(found(server).is_some(), differs, "{server}");
    }
    let text = "the server counts 835.0 tokens per prompt, the estimate is 1000.0: 16.5% apart; set tokenizer: \
                FILE, or tokenizer: server, for the model";
    assert_eq!(found(835), Some((State::Suspect, text.to_owned())));
    // Recorded texts have no declared length; exact counts can still be compared.
    let of_data = |count: PromptCount| {
        let (mut records, mut facts) = clean();
        (facts.prompt_count, facts.recorded_texts) = (Some(count), true);
        facts.probe_prompt = Some(ProbePrompt { ours: 12, server: 52 });
        for record in &mut records {
            (record.row.intended_prompt_tokens, record.row.prompt_tokens) = (960, Some(835));
        }
        let verdict = judged(&records, &facts);
        let why = verdict.not_checked.get("prompt_length").cloned();
        (verdict.reasons.iter().any(|reason| reason.name == "prompt_length"), why)
    };
    let why = "lengths of a data set are estimates, and no lengths were declared".to_owned();
    assert_eq!(of_data(PromptCount::Estimate), (false, Some(why)));
    assert_eq!(of_data(PromptCount::Tokenizer), (true, None));
}

#[test]
fn output_length() {
    let ask = |count| state_of("output_length", count, |record| record.row.output_tokens = Some(15));
    assert_eq!([ask(10), ask(11), ask(1000)], [None, Some(State::Suspect), Some(State::Suspect)]);
    let (mut records, mut facts) = clean();
    spoil(&mut records, &facts, 1000, |record| record.row.token_source = Some(TokenSource::Events));
    let unchecked = |verdict: Verdict| verdict.not_checked.contains_key("output_length");
    assert!(unchecked(judged(&records, &facts)));
    facts.ignore_eos = false;
    assert!(unchecked(judged(&clean().0, &facts)));
}

#[test]
fn thresholds_are_the_plans() {
    let (mut records, facts) = clean();
    spoil(&mut records, &facts, 30, |record| fail(record, Outcome::Reset, MS));
    let with = |suspect, invalid| {
        let errors = Limits { suspect, invalid };
        verdict(&records, &facts, &Validity { errors, ..Validity::default() }, None).state
    };
    let percent = |value| Some(Share::percent(value));
    assert_eq!(with(percent(3), None), State::Valid);
    assert_eq!(with(None, percent(2)), State::Invalid);
    assert_eq!(with(percent(2), percent(3)), State::Suspect);
}

#[test]
fn impossible_usage() {
    let lies = |record: &mut Record| record.row.output_tokens = Some(2_000_000_000);
    assert_eq!(
        [0, 1, 1000].map(|count| state_of("impossible_usage", count, lies)),
        [None, Some(State::Suspect), Some(State::Suspect)]
    );
    let (mut records, facts) = clean();
    spoil(&mut records, &facts, 12, lies);
    let verdict = judged(&records, &facts);
    assert_eq!(verdict.to_string(), "suspect: impossible_usage");
    let text = "the usage of 12 of 1000 responses is impossible: 2000000000 completion tokens for max_tokens 16";
    assert_eq!(verdict.reasons[0].text, text);
}

#[test]
fn rate_missed() {
    let (records, mut facts) = Run::open(50.0).make();
    facts.never_sent = 1;
    assert_eq!(judged(&records, &facts).to_string(), "invalid: rate_missed");
    facts.open_loop = false;
    assert!(!judged(&records, &facts).to_string().contains("rate_missed"));
}

#[test]
fn client_saturated() {
    let (mut records, facts) = clean();
    let mut facts = Facts { observed: None, ..facts };
    let cores = u64::from(facts.client_cores);
    facts.client_cpu_ns = Some(facts.monotonic_ns * cores * 90 / 100);
    assert_eq!(judged(&records, &facts).to_string(), "valid");
    facts.client_cpu_ns = Some(facts.monotonic_ns * cores * 91 / 100);
    assert_eq!(judged(&records, &facts).to_string(), "suspect: client_saturated");
    facts.client_cpu_ns = None;
    let unchecked = judged(&records, &facts).not_checked;
    assert!(unchecked.iter().any(|(name, why)| *name == "client_saturated" && why.starts_with("neither")));
    spoil(&mut records, &facts, 1000, |record| record.row.read_delay_ns = Some(10 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "valid");
    spoil(&mut records, &facts, 20, |record| record.row.read_delay_ns = Some(11 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "suspect: client_saturated");
}

/// Returns a run in which all times of the server in the second half are multiplied by `factor`.
pub(super) fn slowing(factor: f64) -> (Vec<Record>, Facts) {
    let fast = Run { seconds: 10.0, ..Run::default() };
    let slow = |nanos: u64| (nanos as f64 * factor) as u64;
    let (before, mut facts) = fast.make();
    let after = Run { ttft: slow(fast.ttft), itl: slow(fast.itl), ..fast }.make().0;
    let half = (facts.windows.measure_start_ns + facts.windows.measure_end_ns) / 2;
    let first = before.into_iter().filter(|record| record.row.scheduled_ns < half);
    let records = first.chain(after.into_iter().filter(|record| record.row.scheduled_ns >= half)).collect();
    facts.client_cpu_ns = None;
    (records, facts)
}

#[test]
fn unsteady() {
    let verdict = |factor| {
        let (records, facts) = slowing(factor);
        judged(&records, &facts)
    };
    assert_eq!(verdict(1.03).to_string(), "valid");
    assert_eq!(verdict(1.08).to_string(), "suspect: unsteady");
    let both = verdict(1.3);
    assert!(both.reasons[0].text.contains("throughput") && both.reasons[0].text.contains("TTFT"), "{both:?}");
}

#[test]
fn an_open_loop_is_unsteady_by_ttft_when_it_keeps_up() {
    let shape = Run::open(50.0);
    let (before, facts) = shape.make();
    let after = Run { ttft: shape.ttft * 3 / 2, ..shape }.make().0;
    let half = (facts.windows.measure_start_ns + facts.windows.measure_end_ns) / 2;
    let records: Vec<Record> = before
        .into_iter()
        .filter(|record| record.row.scheduled_ns < half)
        .chain(after.into_iter().filter(|record| record.row.scheduled_ns >= half))
        .collect();
    let verdict = judged(&records, &facts);
    assert_eq!(verdict.to_string(), "suspect: unsteady");
    assert!(verdict.reasons[0].text.starts_with("TTFT"), "{verdict:?}");
}

#[test]
fn unsteady_needs_a_window_of_several_requests() {
    let (records, facts) = Run { seconds: 0.3, ..Run::default() }.make();
    let (_, why) = judged(&records, &facts).not_checked.into_iter().find(|(name, _)| *name == "unsteady").unwrap();
    assert!(why.contains("shorter than 3 typical requests"), "{why}");
}

#[test]
fn saturated() {
    // With 8 slots and 80 ms per request, the server serves 100 requests per second.
    let (mut records, facts) = Run::open(200.0).make();
    let verdict = judged(&records, &facts);
    assert_eq!(verdict.to_string(), "valid, saturated", "{verdict:?}");
    assert_eq!(verdict.not_checked["unsteady"], "the run is saturated");
    let (steady, steady_facts) = Run::open(80.0).make();
    assert_eq!(judged(&steady, &steady_facts).labels, []);
    // Truncations and timeouts are signs of saturation; resets are still errors.
    spoil(&mut records, &facts, 300, |record| fail(record, Outcome::CutAtDrain, 0));
    spoil(&mut records, &facts, 300, |record| fail(record, Outcome::Timeout, 9000 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "valid, saturated");
    spoil(&mut records, &facts, 300, |record| fail(record, Outcome::Reset, 5000 * MS));
    assert_eq!(judged(&records, &facts).to_string(), "invalid: errors, saturated");
}

#[test]
fn a_cap_cannot_hide_saturation() {
    let (mut records, facts) = Run::open(200.0).make();
    records.iter_mut().for_each(|record| {
        let row = &mut record.row;
        let released = row.first_token_ns.map(|first| first.saturating_sub(20 * MS).max(row.scheduled_ns));
        (row.released_ns, row.sent_ns) = (released, released);
    });
    assert_eq!(judged(&records, &facts).to_string(), "valid, saturated");
}

#[test]
fn few_samples() {
    let slo =
        |percentile| Slo { ttft: [(percentile, Nanos::from_millis(500))].into_iter().collect(), ..Slo::default() };
    let ask = |n: usize, percentile| {
        let (mut records, facts) = clean();
        let mut kept = 0;
        records.retain(|record| {
            kept += usize::from(window::contains(&facts.windows, record.row.scheduled_ns));
            !window::contains(&facts.windows, record.row.scheduled_ns) || kept <= n
        });
        let verdict = verdict(&records, &facts, &Validity::default(), Some(&slo(percentile)));
        verdict.reasons.iter().any(|reason| reason.name == "few_samples")
    };
    for (percentile, need) in [(Percentile::P99, 299), (Percentile::P95, 59), (Percentile::P90, 29)] {
        assert_eq!([ask(need - 1, percentile), ask(need, percentile)], [true, false]);
    }
    let (records, facts) = Run { seconds: 1.0, ..Run::default() }.make();
    assert!(!judged(&records, &facts).to_string().contains("few_samples"));
}

#[test]
fn clock() {
    let (records, clean) = clean();
    let with = |wall: i64, boottime: u64| {
        let monotonic = clean.monotonic_ns;
        let facts = Facts {
            wall_ns: monotonic as i64 + wall * MS as i64,
            boottime_ns: Some(monotonic + boottime * MS),
            ..clean.clone()
        };
        judged(&records, &facts).to_string()
    };
    assert_eq!([with(100, 0), with(-100, 0), with(0, 100)].map(|text| text == "valid"), [true; 3]);
    for verdict in [with(101, 0), with(-101, 0), with(0, 101)] {
        assert_eq!(verdict, "invalid: clock");
    }
    let unread = Facts { monotonic_ns: 0, ..clean.clone() };
    assert!(judged(&records, &unread).not_checked.contains_key("clock"));
}

#[test]
fn an_empty_window_is_invalid() {
    let (mut records, facts) = clean();
    records.retain(|record| !window::contains(&facts.windows, record.row.scheduled_ns));
    assert_eq!(judged(&records, &facts).to_string(), "invalid: empty_window");
    assert_eq!(judged(&[], &Facts::default()).state, State::Invalid);
}
