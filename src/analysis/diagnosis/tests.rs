use super::*;
use crate::analysis::curve::{Run, curves};
use crate::analysis::roofline::Prediction;
use crate::analysis::synthetic::{Run as Server, measured, verdict};
use crate::analysis::{LengthCount, LengthFailures, MeanTokens, Part, PlanMetrics, RunMetrics, Verdict, Whole};
use crate::plan::Validity;
use crate::rows::RunLabels;

pub(super) struct Made {
    pub(super) labels: RunLabels,
    pub(super) metrics: RunMetrics,
    plan_metrics: PlanMetrics,
    verdict: Verdict,
    tokens: MeanTokens,
}

impl Made {
    pub(super) fn new(name: &str, scenario: &str, server: &Server, prompt: f64) -> Made {
        let (records, facts) = server.make();
        let labels = RunLabels {
            run_id: format!("{name:0<64}"),
            endpoint: "demo".into(),
            scenario: scenario.into(),
            batch_size: server.batch_size,
            qps: server.qps,
            ..RunLabels::default()
        };
        Made {
            labels,
            metrics: measured(&records, &facts),
            plan_metrics: PlanMetrics::default(),
            verdict: verdict(&records, &facts, &Validity::default(), None),
            tokens: MeanTokens { prompt: Some(prompt), output: Some(16.0) },
        }
    }

    pub(super) fn run(&self) -> Run<'_> {
        Run {
            sweep: "s",
            labels: &self.labels,
            metrics: &self.metrics,
            plan_metrics: &self.plan_metrics,
            verdict: &self.verdict,
            saturation: self.metrics.saturation,
            slo: &[],
            cost: None,
            tokens: self.tokens,
        }
    }
}

pub(super) fn closed(batch: u32) -> Server {
    Server { batch_size: Some(batch), slots: 64, ..Server::default() }
}

pub(super) fn finding(key: &str, evident: &Evident) -> Finding {
    diagnose(evident).into_iter().find(|one| one.symptom.key == key).unwrap().finding
}

/// Returns the finding of the check `key` in these runs.
pub(super) fn among(key: &str, made: &[Made]) -> Finding {
    let runs: Vec<Run> = made.iter().map(Made::run).collect();
    let curves = curves(&runs, false);
    finding(
        key,
        &Evident {
            curves: &curves,
            predicted: &[],
            unpredicted: &[],
            twins: &[],
            token_limit_ms: None,
            batch_limits: &[],
        },
    )
}

pub(super) fn seen(finding: Finding) -> Vec<Evidence> {
    let Finding::Seen(evidence) = finding else { panic!("{finding:?}") };
    evidence
}

#[test]
fn failures_of_long_responses_point_to_ignore_eos() {
    let made = |name: &str, length: u32, failed: u64| {
        let mut made = Made::new(name, "B1", &closed(length), 50.0);
        let count = LengthCount { requests: 100, failed };
        made.metrics.length_failures = LengthFailures([(length, count)].into());
        made
    };
    let key = "failures_grow_with_output";
    let found = seen(among(key, &[made("a", 32, 0), made("b", 256, 40)]));
    let text = "demo: 0 of 100 responses of less than 64 tokens failed midway, and 40 of 100 of at least 256";
    assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [text]);
    assert!(matches!(among(key, &[made("a", 32, 40), made("b", 256, 40)]), Finding::NotSeen(_)));
    let few = among(key, &[made("a", 32, 0), made("b", 256, 2)]);
    assert!(matches!(&few, Finding::NotSeen(text) if text.starts_with(NOT_SHOWN)), "{few:?}");
    assert!(matches!(among(key, &[made("b", 256, 40)]), Finding::NotChecked(_)), "one length shows nothing");
}

#[test]
fn nothing_is_said_of_what_was_not_measured() {
    let evident =
        Evident { curves: &[], predicted: &[], unpredicted: &[], twins: &[], token_limit_ms: None, batch_limits: &[] };
    let all = diagnose(&evident);
    assert_eq!(all.len(), 13);
    assert!(all.iter().all(|one| matches!(one.finding, Finding::NotChecked(_))), "{all:?}");
}

#[test]
fn prefill_shows_where_long_prompts_wait_longer() {
    let short = Made::new("a", "B1", &closed(1), 50.0);
    let long = |ttft| Made::new("b", "B2", &Server { ttft, ..closed(1) }, 2_500.0);
    let evidence = seen(among("ttft_grows_with_input", &[short, long(120_000_000)]));
    assert_eq!(evidence[0].runs.len(), 2);
    assert!(evidence[0].text.contains("ms per 1 000 tokens"), "{}", evidence[0].text);
    let short = Made::new("a", "B1", &closed(1), 50.0);
    assert!(matches!(among("ttft_grows_with_input", &[short, long(24_000_000)]), Finding::NotSeen(_)));
    let same = [Made::new("a", "B1", &closed(1), 50.0), Made::new("b", "B2", &closed(1), 80.0)];
    assert!(matches!(among("ttft_grows_with_input", &same), Finding::NotChecked(_)));
}

#[test]
fn tpot_is_high_where_most_of_it_is_there_already_alone() {
    let at = |name, batch, itl| Made::new(name, "B1", &Server { itl, ..closed(batch) }, 50.0);
    let evidence = seen(among("tpot_high_alone", &[at("a", 1, 8_000_000), at("b", 16, 10_000_000)]));
    assert!(evidence[0].text.contains("bandwidth bound is unknown"), "{}", evidence[0].text);
    let low = [at("a", 1, 2_000_000), at("b", 16, 10_000_000)];
    assert!(matches!(among("tpot_high_alone", &low), Finding::NotSeen(_)));
}

#[test]
fn a_tail_that_spikes_is_told_from_a_curve_that_rises() {
    let lasting = |name, batch, ttft, jitter, seconds| {
        let server = Server { ttft, jitter, seconds, ..closed(batch) };
        Made::new(name, "B1", &server, 50.0)
    };
    let at = |name, batch, ttft, jitter| lasting(name, batch, ttft, jitter, 300.0);
    // With a jitter of 1, gaps reach twice the median; a jitter of 0.05 barely changes them.
    let spiky = [at("a", 1, 20_000_000, 0.01), at("b", 2, 20_000_000, 1.0)];
    assert!(matches!(among("ttft_tail_spikes", &spiky), Finding::NotSeen(_)), "1.98 × is not a spike");
    let raise = |spiked: &mut [Made; 2], seconds| {
        let raised = lasting("c", 2, 90_000_000, 0.05, seconds);
        spiked[1].metrics.ttft.percentiles[4] = raised.metrics.ttft.percentiles[4];
    };
    let mut spiked = [at("a", 1, 20_000_000, 0.01), at("b", 2, 20_000_000, 0.05)];
    raise(&mut spiked, 300.0);
    let evidence = seen(among("ttft_tail_spikes", &spiked));
    assert!(evidence[0].text.contains("p99 from") && !evidence[0].text.contains("queue"), "{}", evidence[0].text);
    // The lightest load has too few requests for p99, and p99 is the same at the others: p95 shows the spike.
    let mut light = [("a", 1, 25.0), ("b", 2, 300.0), ("c", 4, 300.0)]
        .map(|(name, batch, seconds)| lasting(name, batch, 20_000_000, 0.05, seconds));
    assert!(matches!(among("ttft_tail_spikes", &light), Finding::NotSeen(_)), "no tail grows");
    let raised = at("d", 2, 90_000_000, 0.05);
    for made in &mut light[1..] {
        made.metrics.ttft.percentiles[3..5].clone_from_slice(&raised.metrics.ttft.percentiles[3..5]);
    }
    let evidence = seen(among("ttft_tail_spikes", &light));
    assert!(evidence[0].text.contains("p95 from"), "{}", evidence[0].text);
    // The server's own queue shows whether requests wait there, if it is known at both loads.
    let mut with_queue = |queues: [Result<f64, String>; 2]| {
        for (made, ms) in spiked.iter_mut().zip(queues) {
            let queue = Part { name: "queue", doc: "", ms };
            made.metrics.wholes = vec![Whole { name: "ttft", requests: 9, mean_ms: 90.0, parts: vec![queue] }];
        }
        seen(among("ttft_tail_spikes", &spiked)).remove(0).text
    };
    let text = with_queue([Ok(0.2), Ok(35.0)]);
    assert!(text.ends_with("queue goes from 0.2 to 35.0 ms, which confirms that requests wait there"), "{text}");
    for little in [[0.1, 0.9], [20.0, 35.0]] {
        assert!(with_queue(little.map(Ok)).contains("which does not confirm"));
    }
    assert!(!with_queue([Ok(0.2), Err("no page has queue_seconds".to_owned())]).contains("queue"));
    // 750 requests at the lightest load are too few for an interval of p99, so the spike may be due to
    // chance.
    let mut few =
        [("a", 1, 0.01), ("b", 2, 0.05)].map(|(name, batch, jitter)| lasting(name, batch, 20_000_000, jitter, 60.0));
    raise(&mut few, 60.0);
    let Finding::NotSeen(text) = among("ttft_tail_spikes", &few) else {
        panic!(
            "a spike of few samples was \
                                                                               reported as seen"
        )
    };
    assert!(
        text.starts_with("not shown: ") && text.contains(": demo · B1: ") && text.contains("ms (few samples)"),
        "{text}"
    );
}

#[test]
fn more_throughput_at_a_worse_tpot_is_a_trade() {
    let at = |name, batch, itl| Made::new(name, "B1", &Server { itl, ..closed(batch) }, 50.0);
    let traded = [at("a", 1, 4_000_000), at("b", 8, 6_000_000)];
    assert_eq!(seen(among("throughput_for_tpot", &traded))[0].runs.len(), 2);
    let free = [at("a", 1, 4_000_000), at("b", 8, 4_000_000)];
    assert!(matches!(among("throughput_for_tpot", &free), Finding::NotSeen(_)));
}

#[test]
fn a_cache_that_gives_nothing_shows_in_its_twin() {
    let mut warm = Made::new("a", "C", &closed(1), 2_050.0);
    warm.metrics.reuse.declared = Some(0.9);
    let twins_of = |ttft| Made::new("b", "C-cold", &Server { ttft, ..closed(1) }, 2_050.0);
    let look = |cold: &Made| {
        let twins = [Twins { warm: warm.run(), cold: cold.run() }];
        finding(
            "warm_equals_cold",
            &Evident {
                curves: &[],
                predicted: &[],
                unpredicted: &[],
                twins: &twins,
                token_limit_ms: None,
                batch_limits: &[],
            },
        )
    };
    assert!(seen(look(&twins_of(20_500_000)))[0].text.contains("90 %"));
    assert!(matches!(look(&twins_of(200_000_000)), Finding::NotSeen(_)));
}

#[test]
fn what_is_far_below_the_bound_says_by_how_much() {
    let made = Made::new("a", "B1", &closed(1), 50.0);
    // 4 ms per token are 250 tokens/s.
    let look = |by_weights: f64| {
        let predicted = [Predicted { run: made.run(), prediction: Prediction { by_weights, with_kv: None } }];
        let evident = Evident {
            curves: &[],
            predicted: &predicted,
            unpredicted: &[],
            twins: &[],
            token_limit_ms: None,
            batch_limits: &[],
        };
        finding("far_below_prediction", &evident)
    };
    assert!(seen(look(1_000.0))[0].text.contains("25 %"));
    assert!(matches!(look(400.0), Finding::NotSeen(_)));
    let reasons = ["demo declares no memory_bandwidth".to_owned()];
    let evident = Evident {
        curves: &[],
        predicted: &[],
        unpredicted: &reasons,
        twins: &[],
        token_limit_ms: None,
        batch_limits: &[],
    };
    let Finding::NotChecked(text) = finding("far_below_prediction", &evident) else { panic!() };
    assert!(text.contains("memory_bandwidth"));
}

#[test]
fn sentences_name_the_model_where_there_are_several() {
    let of = |name: &str, model: &str, batch, itl| {
        let mut made = Made::new(name, "B1", &Server { itl, ..closed(batch) }, 50.0);
        made.labels.model = model.to_owned();
        made
    };
    let one = [of("a", "small", 1, 4_000_000), of("b", "small", 8, 6_000_000)];
    assert!(seen(among("throughput_for_tpot", &one))[0].text.starts_with("demo · B1: "), "a single model is not named");
    let [first, second] = one;
    let two = [first, second, of("c", "large", 1, 4_000_000), of("d", "large", 8, 6_000_000)];
    let texts: Vec<String> = seen(among("throughput_for_tpot", &two)).into_iter().map(|one| one.text).collect();
    assert!(texts[0].starts_with("small · demo · B1: ") && texts[1].starts_with("large · demo · B1: "), "{texts:?}");
}

#[test]
fn a_trend_within_its_intervals_is_not_shown() {
    // With few, scattered requests, TPOT is a sixth higher at the heavier load.
    let at = |name, batch, itl| {
        let server = Server { itl, jitter: 0.6, seconds: 1.0, ..closed(batch) };
        Made::new(name, "B1", &server, 50.0)
    };
    let made = [at("a", 1, 4_000_000), at("b", 8, 4_700_000)];
    let tpots = made.each_ref().map(|made| made.metrics.tpot.percentile(crate::plan::Percentile::P50).exact().unwrap());
    assert!(tpots[1] >= 1.1 * tpots[0], "the figures alone suggest that it grows: {tpots:?}");
    let Finding::NotSeen(text) = among("throughput_for_tpot", &made) else { panic!("noise was reported as a trend") };
    assert!(text.starts_with("not shown: "), "{text}");
}
