use super::*;
use crate::analysis::replicates::IntervalKind;
use crate::analysis::slo::{self, Answer, SloTest};
use crate::analysis::state::State;
use crate::analysis::synthetic::{Run as Server, measured, read, verdict};
use crate::analysis::{Events, Gaps, MeanTokens, PlanMetrics, RunMetrics, Verdict};
use crate::plan::{Slo, Validity};
use crate::rows::{GivenUp, Replay, SpoilCause, Spoiled};

/// A made-up run, which owns everything that a curve borrows.
struct Made {
    labels: RunLabels,
    metrics: RunMetrics,
    plan_metrics: PlanMetrics,
    verdict: Verdict,
    slo: Vec<SloTest>,
}

impl Made {
    fn new(server: &Server, repeat: u32, slo: &Slo) -> Made {
        let (records, facts) = server.make();
        let (run, events) = read(&records, &facts, Some(slo));
        let Ok(gaps): Result<Gaps, _> = Gaps::of(&run, &facts, &events);
        let labels = RunLabels {
            run_id: format!("{:08x}{repeat:056x}", server.qps.unwrap_or(0.0) as u32),
            endpoint: "demo".into(),
            model: "m".into(),
            scenario: "B1".into(),
            batch_size: server.batch_size,
            qps: server.qps,
            repeat,
            ..RunLabels::default()
        };
        let events: &Events = &events;
        Made {
            labels,
            metrics: measured(&records, &facts),
            plan_metrics: PlanMetrics::default(),
            verdict: verdict(&records, &facts, &Validity::default(), None),
            slo: slo::test(run.rows(), (events, &gaps), &facts, slo),
        }
    }

    /// Makes the run behave as if its window had been long enough to decide.
    fn decide(&mut self) {
        for test in &mut self.slo {
            test.evidence.worth.requests = test.evidence.n as f64;
        }
        if let Some(saturation) = &mut self.metrics.saturation {
            (saturation.swings, saturation.growth) = (60, 0.0);
        }
    }

    fn run(&self) -> Run<'_> {
        Run {
            sweep: "ladder",
            labels: &self.labels,
            metrics: &self.metrics,
            plan_metrics: &self.plan_metrics,
            verdict: &self.verdict,
            saturation: self.metrics.saturation,
            slo: &self.slo,
            cost: None,
            tokens: MeanTokens::default(),
        }
    }
}

/// Returns a run at this load that was given up, in a plan with an objective.
fn given_up<'a>(labels: &'a RunLabels, given_up: &'a GivenUp) -> Point<'a> {
    Point::GivenUp(GivenUpRun { sweep: "ladder", labels, given_up, objective: true })
}

fn for_what(cause: SpoilCause) -> GivenUp {
    GivenUp { spoiled: Spoiled { cause, detail: String::new(), retry_after: None }, retries: 3 }
}

fn objective(text: &str) -> Slo {
    serde_json::from_str(text).unwrap()
}

/// Returns runs of a server with eight slots and 80 ms per request, so it serves at most 100 requests
/// per second.
fn ladder(rungs: &[f64], repeats: u32, slo: &Slo) -> Vec<Made> {
    let of = |qps: f64, repeat: u32| {
        let seed = u64::from(repeat) * 1000 + qps as u64;
        Made::new(&Server { seconds: 20.0, jitter: 0.3, seed, ..Server::open(qps) }, repeat, slo)
    };
    rungs.iter().flat_map(|qps| (0..repeats).map(move |repeat| of(*qps, repeat))).collect()
}

#[test]
fn the_highest_load_under_an_objective_is_found_within_the_ladder() {
    // Loads from a tenth of the capacity to a fifth above the capacity. Queueing begins near 100, and p95
    // stays below 60 ms up to that load.
    let slo = objective(r#"{ "ttft": { "p95": "60ms" } }"#);
    let rungs = [20.0, 40.0, 60.0, 80.0, 120.0];
    let made = ladder(&rungs, 3, &slo);
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curves = curves(&runs, false);
    assert_eq!(curves.len(), 1);
    let curve = &curves[0];
    assert_eq!(curve.rungs.iter().map(|rung| rung.runs.len()).collect::<Vec<_>>(), [3; 5]);
    let bracket = curve.bracket().unwrap();
    assert!(bracket.holds.is_some_and(|load| (60.0..=80.0).contains(&load)), "{bracket:?}");
    assert!(bracket.misses.is_some_and(|load| (80.0..=120.0).contains(&load)), "{bracket:?}");
    assert_eq!(curve.saturation(), (Some(80.0), Some(120.0)));
}

#[test]
fn figures_say_what_their_intervals_rest_on() {
    let made = ladder(&[40.0], 3, &objective("{}"));
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let reading = Ordinate::named("ttft_p50").unwrap();
    let kind = |runs: &[Run]| {
        let curves = curves(runs, false);
        let figure = curves[0].rungs[0].figure(reading).unwrap();
        let ends = figure.ends.unwrap();
        assert!(ends.low <= figure.value && figure.value <= ends.high, "{figure:?}");
        ends.kind
    };
    assert_eq!(kind(&runs), IntervalKind::LogTOverRuns);
    assert_eq!(kind(&runs[..1]), IntervalKind::OrderStatistic);
}

#[test]
fn a_figure_that_one_repeat_does_not_have_is_not_averaged_over_the_others() {
    let slo = objective("{}");
    let mut made = ladder(&[40.0], 2, &slo);
    // A repeat with too few requests for p99.
    made.push(Made::new(&Server { seconds: 2.0, ..Server::open(40.0) }, 2, &slo));
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curves = curves(&runs, false);
    let figure = |name: &str| curves[0].rungs[0].figure(Ordinate::named(name).unwrap());
    assert!(figure("ttft_p99").is_none());
    assert!(figure("ttft_p50").is_some());
}

#[test]
fn invalid_runs_are_left_out_and_kept() {
    let slo = objective(r#"{ "ttft": { "p95": "60ms" } }"#);
    let mut made = ladder(&[20.0, 40.0], 1, &slo);
    made[1].verdict.state = State::Invalid;
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let rung = &curves(&runs, false)[0].rungs[1];
    assert_eq!((rung.runs.len(), rung.left_out.len(), rung.answer()), (0, 1, None));
    assert_eq!(curves(&runs, true)[0].rungs[1].runs.len(), 1);
}

#[test]
fn the_share_of_failed_requests_is_also_of_runs_that_are_invalid_for_them() {
    let slo = objective("{}");
    let mut made = ladder(&[20.0], 2, &slo);
    made[1].verdict.state = State::Invalid;
    made[1].verdict.reasons =
        vec![super::super::verdict::Reason { name: "errors", state: State::Invalid, text: String::new() }];
    let of = |made: &[Made], only: usize| {
        let runs: Vec<Run> = made[only..].iter().map(Made::run).collect();
        let rung = &curves(&runs, false)[0].rungs[0];
        (rung.error_share(), rung.figure(Ordinate::named("error_share").unwrap()))
    };
    let (share, of_valid) = of(&made, 1);
    assert!(share.is_some_and(|share| share.ends.is_some()) && of_valid.is_none(), "{share:?} {of_valid:?}");
    // Two runs are more informative than one.
    let wide = |figure: Option<Figure>| figure.and_then(|figure| figure.ends).map(|ends| ends.high - ends.low).unwrap();
    let (both, one) = of(&made, 0);
    assert!(wide(both) < wide(one));
    // Client errors provide no evidence about the server.
    made[1].verdict.reasons[0].name = "client_late";
    assert!(of(&made, 1).0.is_none());
}

#[test]
fn a_load_at_which_the_server_failed_is_none_to_promise() {
    let slo = objective(r#"{ "ttft": { "p95": "60ms" } }"#);
    let mut made = ladder(&[20.0, 40.0, 60.0], 1, &slo);
    let invalid = |name| super::super::verdict::Reason { name, state: State::Invalid, text: String::new() };
    made[1].verdict.state = State::Invalid;
    made[1].verdict.reasons = vec![invalid("errors")];
    let bracket = |made: &[Made]| {
        let runs: Vec<Run> = made.iter().map(Made::run).collect();
        curves(&runs, false)[0].bracket().unwrap()
    };
    let found = bracket(&made);
    assert_eq!((found.holds, found.misses, &found.out_of_order[..]), (Some(20.0), Some(40.0), &[60.0][..]));
    // Client errors provide no evidence about the server.
    made[1].verdict.reasons = vec![invalid("client_late"), invalid("errors")];
    let found = bracket(&made);
    assert_eq!((found.holds, found.misses, &found.unknown[..]), (Some(60.0), None, &[40.0][..]));
}

#[test]
fn a_load_that_was_given_up_is_not_met_and_ends_the_curve() {
    let slo = objective(r#"{ "ttft": { "p95": "500ms" } }"#);
    let mut made = ladder(&[20.0, 40.0, 60.0, 80.0], 1, &slo);
    made.iter_mut().for_each(Made::decide);
    // One repeat was measured at 80, none at 70.
    let [above, between] = [80.0, 70.0].map(|qps| RunLabels { qps: Some(qps), repeat: 1, ..made[3].labels.clone() });
    let of = |labels, cause: SpoilCause| {
        let (cause, mut points) = (for_what(cause), made.iter().map(|made| made.run().into()).collect::<Vec<Point>>());
        points.push(given_up(labels, &cause));
        let curve = &curves(&points, false)[0];
        let knees = (curve.knee(), curve.bracket().unwrap());
        let rung = curve.rung(labels.qps.unwrap()).unwrap();
        (knees, (rung.answer(), rung.why_given_up(), FRONTS[1].values(rung).is_some()))
    };
    let ((knee, found), (answer, why, on_front)) = of(&above, SpoilCause::RateLimited);
    assert_eq!((found.holds, found.misses, answer), (Some(60.0), Some(80.0), Some(Answer::Misses)));
    assert_eq!((why.as_deref(), on_front), (Some("429 (3 of 3)"), false), "one repeat of the two exists");
    let beside = |low, high| Range { low: Some(low), high: Some(high), basis: Basis::Neighbours };
    let at_60 = |above| Knee::At { load: 60.0, between: (40.0, above), range: beside(40.0, above) };
    assert_eq!(knee, at_60(80.0), "power rises up to the load that is not met");
    let ((knee, found), _) = of(&between, SpoilCause::Refused);
    assert_eq!((found.holds, found.misses, &found.out_of_order[..]), (Some(60.0), Some(70.0), &[80.0][..]));
    assert_eq!(knee, at_60(70.0));
    // The server does not know the model, so the result is the same as for a load that was not
    // measured.
    let ((knee, found), (answer, ..)) = of(&between, SpoilCause::UnknownModel);
    assert_eq!((found.holds, found.misses, &found.unknown[..], answer), (Some(80.0), None, &[70.0][..], None));
    assert!(matches!(knee, Knee::NotReached { .. }), "{knee:?}");
    let ((_, found), (answer, ..)) = of(&above, SpoilCause::UnknownModel);
    assert_eq!((found.holds, answer), (Some(80.0), Some(Answer::Holds)), "the existing repeat decides");
}

#[test]
fn only_what_serves_the_same_is_weighed() {
    let slo = objective("{}");
    let mut made = ladder(&[20.0, 40.0], 1, &slo);
    for (one, tokens) in made.iter_mut().zip(["4", "32"]) {
        one.labels.axes.insert("output_tokens".into(), tokens.into());
    }
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curves = curves(&runs, false);
    assert_eq!(alike(&curves, |curve| &curve.series), [[0], [1]]);
    assert_eq!(curves[0].series.served(), "B1 · output_tokens=4 (model m)");
}

/// Returns the curves of five settings of a server with two loads each, and of a second endpoint without settings.
fn settings(slo: &Slo) -> Vec<Made> {
    let mut made = Vec::new();
    for (slots, batch) in [("1", "64"), ("2", "64"), ("4", "64"), ("8", "64"), ("16", "64")] {
        for mut one in ladder(&[20.0, 40.0], 1, slo) {
            one.labels.axes.insert("server.slots".into(), slots.into());
            one.labels.axes.insert("server.batch".into(), batch.into());
            one.labels.axes.insert("output_tokens".into(), "4".into());
            made.push(one);
        }
    }
    made
}

#[test]
fn settings_of_a_server_are_drawn_and_weighed_together_and_named_by_what_varies() {
    let slo = objective("{}");
    let mut made = settings(&slo);
    let of = |made: &[Made], most: usize| -> Vec<Together> {
        let runs: Vec<Run> = made.iter().map(Made::run).collect();
        together(&curves(&runs, false), most)
    };
    let names = ["1", "2", "4", "8", "16"].map(|slots| format!("server.slots={slots}"));
    let all = of(&made, 6);
    assert_eq!((all.len(), &all[0].labels[..], all[0].part_of()), (1, &names[..], String::new()));
    // The parts of a group that is too large for a chart keep the labels of the whole group.
    let parts = of(&made, 4);
    let members: Vec<&[usize]> = parts.iter().map(|part| &part.members[..]).collect();
    assert_eq!(members, [&[0, 1, 2, 3][..], &[4]]);
    assert_eq!((&parts[1].labels[..], parts[1].part_of()), (&names[4..], ", part 2 of 2".to_owned()));
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let found = curves(&runs, false);
    assert_eq!(alike(&found, |curve| &curve.series), [[0, 1, 2, 3, 4]]);
    assert_eq!(found[0].series.served(), "B1 · output_tokens=4 (model m)");
    drop(found);
    // With a second endpoint, labels name the endpoint, too.
    let mut other = ladder(&[20.0, 40.0], 1, &slo);
    for one in &mut other {
        one.labels.endpoint = "other".into();
        one.labels.axes.insert("output_tokens".into(), "4".into());
    }
    made.extend(other);
    let endpoint = made[0].labels.endpoint.clone();
    let labels = of(&made, 6).remove(0).labels;
    assert_eq!(
        (&labels[0], &labels[5]),
        (&format!("{endpoint}, server.batch=64, server.slots=1"), &"other".to_owned())
    );
}

#[test]
fn a_saturated_run_misses_every_objective() {
    // Requests do not queue between two tokens, however long the queue is.
    let slo = objective(r#"{ "itl": { "p95": "10ms" } }"#);
    let made = ladder(&[40.0, 150.0], 1, &slo);
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curve = &curves(&runs, false)[0];
    let answers: Vec<Option<Answer>> = curve.rungs.iter().map(Rung::answer).collect();
    assert_eq!(answers, [Some(Answer::Holds), Some(Answer::Misses)]);
    assert_eq!(curve.rungs[0].limits()[0].answer, Answer::Holds);
}

#[test]
fn closed_loops_are_curves_over_requests_in_flight() {
    let slo = objective("{}");
    let of =
        |batch: u32| Made::new(&Server { batch_size: Some(batch), seed: batch.into(), ..Server::default() }, 0, &slo);
    let made: Vec<Made> = [1, 2, 4, 8, 16, 32].map(of).into();
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curves = curves(&runs, false);
    let Knee::At { load, between, range } = curves[0].knee() else { panic!("{:?}", curves[0].knee()) };
    assert_eq!(range.basis, Basis::Neighbours, "one run of each load");
    // The server has eight slots, so the knee is near a load of 8.
    assert!((load - 8.0).abs() < 0.8 && between.0 <= 8.0 && between.1 >= 8.0, "{load} in {between:?}");
    assert!(curves[0].bracket().is_none());
    assert!(
        curves[0].rungs.iter().all(|rung| rung.counts() && rung.state().is_none() && rung.arrived_rate().is_none())
    );
}

/// Returns a reason that makes a verdict suspect.
fn suspect(name: &'static str) -> super::super::verdict::Reason {
    super::super::verdict::Reason { name, state: State::Suspect, text: String::new() }
}

/// Returns three repeats of one load that meet an objective. The first `hit` of them had an outage in
/// which a fifth of their requests failed at once.
fn hit_by_an_outage(hit: usize) -> Vec<Made> {
    let mut made = ladder(&[40.0], 3, &objective(r#"{ "ttft": { "p95": "500ms" } }"#));
    for one in &mut made[..hit] {
        one.slo[0].evidence.above = one.slo[0].evidence.n / 5;
        one.slo[0].evidence.worth.requests = 20.0;
        one.verdict.reasons.push(suspect("errors_bunched"));
    }
    made
}

#[test]
fn a_repeat_that_most_are_not_like_is_excluded_by_name() {
    let read = |made: &[Made]| {
        let runs: Vec<Run> = made.iter().map(Made::run).collect();
        let rung = &curves(&runs, false)[0].rungs[0];
        (rung.runs.len(), rung.why_excluded(), rung.answer())
    };
    let named = Some("repeat 0: errors_bunched".to_owned());
    assert_eq!(read(&hit_by_an_outage(1)), (2, named, Some(Answer::Holds)));
    let (counted, excluded, answer) = read(&hit_by_an_outage(2));
    assert_eq!((counted, excluded), (3, None), "two of three: the server's own behavior");
    assert_ne!(answer, Some(Answer::Holds));
    assert_eq!(read(&hit_by_an_outage(1)[..1]).0, 1, "a single repeat has no exception");
    // The invalid repeat is also excluded and does not count as a miss. The remaining repeat is invalid
    // because of the client.
    let mut made = hit_by_an_outage(1);
    for (one, name) in made.iter_mut().zip(["errors", "client_late", "client_late"]) {
        one.verdict.state = State::Invalid;
        one.verdict.reasons.push(super::super::verdict::Reason { state: State::Invalid, ..suspect(name) });
    }
    let (counted, excluded, answer) = read(&made);
    assert_eq!((counted, excluded.is_some(), answer), (0, true, Some(Answer::Undecided)), "no repeat remains");
}

#[test]
fn a_share_over_repeats_lies_in_its_interval() {
    let mut made = ladder(&[40.0], 2, &objective("{}"));
    // A long repeat without failures, and a short repeat in which half of the requests failed.
    for (one, [requests, failed]) in made.iter_mut().zip([[4_000, 0], [20, 10]]) {
        let evidence = one.metrics.error_evidence.as_mut().unwrap();
        (evidence.n, evidence.above, evidence.worth.requests) = (requests, failed, requests as f64);
        (one.metrics.counts.requests, one.metrics.counts.failed) = (requests, failed);
    }
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let rung = &curves(&runs, false)[0].rungs[0];
    let figure = rung.figure(Ordinate::named("error_share").unwrap()).unwrap();
    let ends = figure.ends.unwrap();
    assert!((figure.value - 10.0 / 4_020.0).abs() < 1e-12, "the mean of both would be a quarter: {figure:?}");
    assert!(ends.low <= figure.value && figure.value <= ends.high, "{figure:?}");
}

#[test]
fn repeats_on_both_sides_of_a_limit_decide_nothing() {
    let mut made = ladder(&[40.0], 3, &objective(r#"{ "ttft": { "p95": "500ms" } }"#));
    made[0].slo[0].evidence.above = made[0].slo[0].evidence.n / 10;
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let rung = &curves(&runs, false)[0].rungs[0];
    let [limit] = rung.limits()[..] else { panic!("{:?}", rung.limits()) };
    assert_eq!((limit.answer, rung.answer()), (Answer::Undecided, Some(Answer::Undecided)), "{limit:?}");
    let whole: f64 = made.iter().map(|one| one.slo[0].evidence.worth.requests).sum();
    assert!(limit.evidence.worth.requests < whole / 2.0, "{limit:?} of {whole}");
}

#[test]
fn a_load_that_is_not_shown_to_be_kept_up_with_does_not_count() {
    let slo = objective(r#"{ "ttft": { "p95": "500ms" } }"#);
    let mut made = ladder(&[20.0, 40.0, 60.0, 80.0], 1, &slo);
    made.iter_mut().for_each(Made::decide);
    for load in [0, 3] {
        made[load].metrics.saturation.as_mut().unwrap().swings = 4;
    }
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curve = &curves(&runs, false)[0];
    assert_eq!(curve.not_shown().map(|rung| rung.load).collect::<Vec<_>>(), [20.0, 80.0]);
    let found = curve.bracket().unwrap();
    assert_eq!((found.holds, found.misses, &found.undecided[..]), (Some(60.0), None, &[20.0, 80.0][..]));
    assert_eq!((curve.knee(), curve.saturation()), (Knee::TooFew(2), (Some(60.0), None)));
    assert!(FRONTS[1].values(&curve.rungs[0]).is_none() && FRONTS[1].values(&curve.rungs[1]).is_some());
    let came = curve.rungs[1].arrived_rate().unwrap();
    assert!((came / 40.0 - 1.0).abs() < 0.2 && came != 40.0, "{came}");
}

#[test]
fn two_repeats_are_a_pair_and_three_are_not() {
    let made = ladder(&[40.0], 3, &objective("{}"));
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let of = |runs: &[Run], name: &str| curves(runs, false)[0].rungs[0].figure(Ordinate::named(name).unwrap()).unwrap();
    let own: Vec<f64> = made[..2].iter().map(|one| one.metrics.flow.output_throughput.unwrap()).collect();
    let two = of(&runs[..2], "output_throughput");
    assert_eq!(two.pair, Some([own[0].min(own[1]), own[0].max(own[1])]));
    assert!(two.span() == two.pair && two.ends.is_some(), "the interval stays for programs: {two:?}");
    assert_eq!([of(&runs, "output_throughput").pair, of(&runs[..1], "output_throughput").pair], [None, None]);
    assert_eq!(of(&runs[..2], "error_share").pair, None, "a share of requests is over those of both runs");
}

#[test]
fn an_undecided_limit_says_to_which_side_it_leans() {
    let slo = objective(r#"{ "ttft": { "p95": "60ms" } }"#);
    let mut made = ladder(&[60.0], 1, &slo);
    let test = &mut made[0].slo[0];
    (test.evidence.n, test.evidence.above, test.evidence.worth.requests) = (1_000, 41, 15.0);
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let limit = curves(&runs, false)[0].rungs[0].limits()[0];
    assert_eq!(limit.answer, Answer::Undecided);
    let p95 = made[0].metrics.ttft_from_schedule.percentile(crate::plan::Percentile::P95).value().unwrap().short();
    let said = limit.why_undecided();
    let observed = format!("observed p95 {p95} ms, 41 of 1000 requests (4.10 %) above the limit, 5 % allowed; ");
    assert!(said.starts_with(&observed) && said.contains("; worth 15 independent requests; "), "{said}");
    // The number that is needed is one without any request above the limit.
    assert!(!said.contains("needed"), "{said}");
}

#[test]
fn a_saturated_throughput_is_what_a_server_serves_at_most() {
    let made = ladder(&[40.0, 200.0], 1, &objective("{}"));
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let found = curves(&runs, false);
    assert!(found[0].rungs[1].is_saturated());
    // With eight slots and 80 ms per request, the server serves about 100 requests per second.
    let most = found[0].serves_at_most().unwrap();
    assert!((95.0..115.0).contains(&most), "{most}");
    assert_eq!(curves(&runs[..1], false)[0].serves_at_most(), None);
}
