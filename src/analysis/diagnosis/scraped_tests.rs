//! Tests with made-up server telemetry: they check which symptoms are found, and that no symptom is found if
//! a figure is missing.

use super::tests::{Made, among, closed, finding, seen};
use super::*;
use crate::analysis::curve::{Run, curves};
use crate::analysis::roofline::Prediction;
use crate::analysis::{Part, ServerFigure, Whole};
use crate::telemetry::canonical::Unit;

/// Returns a run with this many requests in flight and these server figures. A figure without a value has a
/// reason instead.
fn scraped(name: &str, batch: u32, figures: &[(&str, Option<f64>)]) -> Made {
    let mut made = Made::new(name, "B1", &closed(batch), 50.0);
    let figure = |(name, value): &(&str, Option<f64>)| ServerFigure {
        name: (*name).to_owned(),
        unit: Unit::Share,
        doc: String::new(),
        value: value.ok_or_else(|| "a scrape failed".to_owned()),
    };
    made.metrics.server = figures.iter().map(figure).collect();
    made
}

/// Returns a run with this many requests in flight and a mean TTFT of 100 ms, broken down into these parts.
fn parted(name: &str, batch: u32, parts: &[(&'static str, Option<f64>)]) -> Made {
    let mut made = scraped(name, batch, &[("requests_waiting_mean", Some(3.25))]);
    let part = |(name, ms): &(&'static str, Option<f64>)| Part {
        name,
        doc: "",
        ms: ms.ok_or_else(|| "no page has it".to_owned()),
    };
    made.metrics.wholes =
        vec![Whole { name: "ttft", requests: 90, mean_ms: 100.0, parts: parts.iter().map(part).collect() }];
    made
}

fn text_of(key: &str, made: &[Made]) -> String {
    seen(among(key, made)).remove(0).text
}

#[test]
fn a_queue_is_a_cause_from_a_quarter_of_ttft_on() {
    let at = |name, batch, queue| parted(name, batch, &[("queue", queue)]);
    let two = [at("a", 2, Some(3.0)), at("b", 8, Some(61.0))];
    let text = text_of("server_queue", &two);
    let wanted = "demo · B1: at batch_size 8, 61.0 of the 100.0 ms of mean TTFT are spent in the server's queue (61 \
                  %); 3.2 requests wait there (run b0000000); seen at 1 of 2 loads, most strongly here";
    assert_eq!(text, wanted);
    assert_eq!(seen(among("server_queue", &two))[0].runs, [two[1].labels.run_id.clone()]);
    assert!(matches!(among("server_queue", &[at("a", 2, Some(24.9))]), Finding::NotSeen(_)));
    let Finding::NotChecked(why) = among("server_queue", &[at("a", 2, None)]) else { panic!() };
    assert!(why.contains("queue_seconds"), "{why}");
}

#[test]
fn where_no_time_in_the_queue_is_known_those_that_wait_are_counted() {
    // llama.cpp's metrics page, with four slots and eight requests in flight.
    let at = |waiting, running| {
        scraped("a", 8, &[("requests_waiting_mean", Some(waiting)), ("requests_running_mean", running)])
    };
    let text = text_of("server_queue", &[at(3.67, Some(4.0))]);
    assert!(text.contains("3.7 of 7.7 requests at the server wait there on average (48 %)"), "{text}");
    for few in [at(0.9, Some(4.0)), at(0.3, Some(0.2)), at(0.0, Some(0.0))] {
        assert!(matches!(among("server_queue", &[few]), Finding::NotSeen(_)));
    }
    assert!(matches!(among("server_queue", &[at(3.67, None)]), Finding::NotChecked(_)));
}

#[test]
fn what_only_some_repeats_show_is_not_shown() {
    let at = |name, queue| parted(name, 8, &[("queue", Some(queue))]);
    let Finding::NotSeen(why) = among("server_queue", &[at("a", 10.0), at("b", 60.0), at("c", 12.0)]) else { panic!() };
    assert!(why.starts_with("not shown: ") && why.ends_with("in 1 of 3 repeats"), "{why}");
    // If one repeat lacks the figure, it is unknown whether the load has the symptom.
    let unknown = [at("a", 60.0), parted("b", 8, &[("queue", None)])];
    assert!(matches!(among("server_queue", &unknown), Finding::NotChecked(_)));
}

#[test]
fn each_figure_of_the_server_has_its_symptom() {
    let seen_in = |key: &str, figures: &[(&str, Option<f64>)]| among(key, &[scraped("a", 8, figures)]);
    let kv = |mean, most| [("kv_cache_usage_mean", Some(mean)), ("kv_cache_usage_max", Some(most))];
    assert!(seen(seen_in("kv_cache_short", &kv(0.93, 0.97)))[0].text.contains("93 % full on average, 97 % at most"));
    assert!(matches!(seen_in("kv_cache_short", &kv(0.5, 1.0)), Finding::Seen(_)));
    assert!(matches!(seen_in("kv_cache_short", &kv(0.89, 0.98)), Finding::NotSeen(_)));
    assert!(matches!(seen_in("preempted", &[("preemptions", Some(3.0))]), Finding::Seen(_)));
    assert!(matches!(seen_in("preempted", &[("preemptions", Some(0.2))]), Finding::NotSeen(_)));
    let hot = [("gpu_throttled_share", Some(0.31)), ("gpu_temperature_max", Some(88.0))];
    assert!(seen(seen_in("throttled", &hot))[0].text.contains("31 % of the scrapes; the hottest reaches 88 °C"));
    assert!(matches!(seen_in("throttled", &[("gpu_throttled_share", Some(0.04))]), Finding::NotSeen(_)));
    for (key, name) in [
        ("kv_cache_short", "kv_cache_usage_mean"),
        ("preempted", "preemptions"),
        ("throttled", "gpu_throttled_share"),
        ("few_at_a_time", "requests_running_mean"),
    ] {
        assert!(matches!(seen_in(key, &[(name, None)]), Finding::NotChecked(_)), "{key}: a null is no evidence");
        assert!(matches!(seen_in(key, &[]), Finding::NotChecked(_)), "{key}");
    }
}

#[test]
fn small_batches_are_held_against_what_is_in_flight_and_what_is_declared() {
    let at = |batch, running: f64, most: f64| {
        scraped("a", batch, &[("requests_running_mean", Some(running)), ("requests_running_max", Some(most))])
    };
    let look = |made: &Made, limits: &[(String, f64)]| {
        let runs = [made.run()];
        let curves = curves(&runs, false);
        let evident = Evident {
            curves: &curves,
            predicted: &[],
            unpredicted: &[],
            twins: &[],
            token_limit_ms: None,
            batch_limits: limits,
        };
        finding("few_at_a_time", &evident)
    };
    let few = at(16, 3.9, 4.0);
    let said = |limit: f64| seen(look(&few, &[(few.labels.run_id.clone(), limit)])).remove(0).text;
    assert!(said(4.0).contains("that is the declared limit of 4"), "{}", said(4.0));
    assert!(said(64.0).contains("the declared limit of 64 is not reached"), "{}", said(64.0));
    assert!(!seen(look(&few, &[]))[0].text.contains("declared"));
    assert!(matches!(look(&at(16, 15.0, 16.0), &[]), Finding::NotSeen(_)));
    assert!(matches!(look(&at(2, 0.5, 1.0), &[]), Finding::NotSeen(_)), "two in flight are too few");
}

#[test]
fn what_is_outside_is_named_by_its_parts() {
    let at =
        |outside| parted("a", 8, &[("client", Some(20.0)), ("connection", Some(0.0)), ("outside_server", outside)]);
    let text = text_of("outside_the_server", &[at(Some(30.0))]);
    let wanted = "50.0 of 100.0 ms of mean TTFT pass outside the server (50 %): the client 20.0, connecting 0.0, \
                  elsewhere \
                  outside the server 30.0";
    assert!(text.contains(wanted), "{text}");
    assert!(matches!(among("outside_the_server", &[at(Some(1.0))]), Finding::NotSeen(_)));
    assert!(
        matches!(among("outside_the_server", &[at(None)]), Finding::NotChecked(_)),
        "nothing is claimed for \
                                                                                        a half"
    );
}

#[test]
fn a_busy_memory_speaks_for_or_against_overhead() {
    let look = |busy: Option<f64>| {
        let made = scraped("a", 1, &[("gpu_memory_bandwidth_utilization_mean", busy)]);
        let predicted = [Predicted { run: made.run(), prediction: Prediction { by_weights: 1_000.0, with_kv: None } }];
        let evident = Evident {
            curves: &[],
            predicted: &predicted,
            unpredicted: &[],
            twins: &[],
            token_limit_ms: None,
            batch_limits: &[],
        };
        seen(finding("far_below_prediction", &evident)).remove(0).text
    };
    assert!(
        look(Some(0.12)).ends_with("moves data 12 % of the time, which confirms that its bandwidth is not the limit")
    );
    assert!(look(Some(0.7)).contains("which contradicts overhead"));
    assert!(look(Some(0.4)).ends_with("which is inconclusive"));
    assert!(!look(None).contains("memory moves"));
}

#[test]
fn what_was_scraped_is_no_longer_unmeasured() {
    let of = |made: &Made| {
        let runs: [Run; 1] = [made.run()];
        let curves = curves(&runs, false);
        not_measured(&Evident {
            curves: &curves,
            predicted: &[],
            unpredicted: &[],
            twins: &[],
            token_limit_ms: None,
            batch_limits: &[],
        })
    };
    let none = of(&scraped("a", 1, &[("preemptions", None)]));
    assert!(none.contains("these figures are the client's only") && none.contains("preemptions, GPU use"), "{none}");
    let some = of(&scraped("a", 1, &[("preemptions", Some(0.0)), ("requests_running_mean", Some(1.0))]));
    assert!(!some.contains("preemptions") && some.contains("GPU use") && !some.contains("the client's only"), "{some}");
}
