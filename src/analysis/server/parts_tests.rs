//! Tests of the sums, with made-up requests and histograms.

use super::*;
use crate::analysis::server::wholes as wholes_with;
use crate::rows::{Outcome, Phase, RequestRow, Sample, Telemetry, Windows};

/// Returns the sums if no stalls are known.
fn of_samples(samples: &[Sample], rows: &[Measured], facts: &Facts) -> Vec<Whole> {
    let Ok(wholes) = wholes_with(samples, rows, facts, || Ok::<_, std::convert::Infallible>(Stalls::default()));
    wholes
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Returns a window from 10 to 20 s.
fn facts() -> Facts {
    let windows = Windows { stabilize_ns: 5 * S, measure_start_ns: 10 * S, measure_end_ns: 20 * S, end_ns: 25 * S };
    Facts { windows, stream: true, telemetry: Some(Telemetry::default()), ..Facts::default() }
}

/// Returns ten requests per second, each with 1 ms in the client, 2 ms to connect, 60 ms to the first token
/// and 160 ms to the last token.
fn rows() -> Vec<Measured> {
    let row = |request: u64| {
        let scheduled = request * 100 * MS;
        let sent = scheduled + 3 * MS;
        let row = RequestRow {
            released_ns: Some(scheduled),
            sent_ns: Some(sent),
            connect_ns: Some(2 * MS),
            first_token_ns: Some(sent + 60 * MS),
            first_output_ns: Some(sent + 60 * MS),
            last_token_ns: Some(sent + 160 * MS),
            done_ns: Some(sent + 160 * MS),
            ended_ns: Some(sent + 160 * MS),
            outcome: Outcome::Ok,
            ..RequestRow::wanted(request, Phase::Measure, scheduled)
        };
        Measured::from(&row)
    };
    (0..250).map(row).collect()
}

/// Returns a histogram of one page that counts `rate` requests per second, each with a value of `ms`
/// milliseconds. It is scraped every second, except at `gap`.
fn histogram(name: &str, rate: f64, ms: f64, gap: Option<u64>) -> Vec<Sample> {
    let at = |at: u64| {
        let seconds = at as f64;
        let one = Sample { at_ns: at * S, url: Some(0), ..Sample::default() };
        let value = |half: &str, value| Sample {
            source: "server".into(),
            name: format!("{name}.{half}"),
            value,
            ..one.clone()
        };
        let is_gap = gap == Some(at);
        let error = is_gap.then(|| "timeout".to_owned());
        let up = f64::from(u8::from(!is_gap));
        let up = Sample { source: "scrape".into(), name: "up".into(), value: up, error, ..one.clone() };
        let halves = [value("sum", seconds * rate * ms / 1e3), value("count", seconds * rate)];
        std::iter::once(up).chain(halves.into_iter().filter(move |_| !is_gap)).collect::<Vec<_>>()
    };
    (0..=25).flat_map(at).collect()
}

/// Returns all histograms of a server: 20 ms of queue, 30 ms of prefill, 100 ms of decode, 56 ms to the
/// first token and 155 ms in total.
fn told() -> Vec<(&'static str, f64)> {
    [("queue", 20.0), ("prefill", 30.0), ("decode", 100.0), ("ttft", 56.0), ("e2e", 155.0)].to_vec()
}

fn samples(told: &[(&str, f64)]) -> Vec<Sample> {
    told.iter().flat_map(|(name, ms)| histogram(&format!("{name}_seconds"), 10.0, *ms, None)).collect()
}

fn sums(samples: &[Sample]) -> [Whole; 2] {
    of_samples(samples, &rows(), &facts()).try_into().unwrap()
}

fn ms(whole: &Whole, name: &str) -> Result<f64, String> {
    whole.parts.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("no {name}")).ms.clone()
}

fn is(whole: &Whole, parts: &[(&str, f64)]) {
    for (name, wanted) in parts {
        let found = ms(whole, name).unwrap();
        assert!((found - wanted).abs() < 1e-6, "{} {name}: {found} is not {wanted}", whole.name);
    }
    let sum: f64 = whole.parts.iter().filter_map(|part| part.ms.as_ref().ok()).sum();
    assert!((sum - whole.mean_ms).abs() < 1e-6, "{sum} is not {}", whole.mean_ms);
}

#[test]
fn the_parts_come_to_the_whole() {
    let [ttft, e2e] = sums(&samples(&told()));
    assert_eq!([(ttft.name, ttft.requests), (e2e.name, e2e.requests)], [("ttft", 100), ("e2e", 100)]);
    let outer = [("client", 1.0), ("connection", 2.0), ("queue", 20.0), ("prefill", 30.0), ("unknown", 0.0)];
    is(&ttft, &outer);
    is(&ttft, &[("outside_server", 4.0), ("server_unassigned", 6.0)]);
    is(&e2e, &outer);
    is(&e2e, &[("outside_server", 5.0), ("decode", 100.0), ("server_unassigned", 5.0)]);
    assert!((ttft.mean_ms - 63.0).abs() < 1e-6 && (e2e.mean_ms - 163.0).abs() < 1e-6);
    assert!((ttft.assigned_share().unwrap() - 57.0 / 63.0).abs() < 1e-9);
    let columns = ttft.columns();
    let queue = columns.iter().find(|(name, ..)| name == "ttft_queue_ms").unwrap();
    assert!((queue.3.unwrap() - 20.0).abs() < 1e-6);
}

#[test]
fn what_a_page_does_not_have_is_unknown() {
    // Text Generation Inference reports only the queue time and the total time.
    let [ttft, e2e] = sums(&samples(&[("queue", 20.0), ("e2e", 155.0)]));
    is(&ttft, &[("queue", 20.0), ("unknown", 40.0)]);
    assert_eq!(ms(&ttft, "outside_server"), Err("no page has ttft_seconds".to_owned()));
    assert_eq!(ms(&ttft, "server_unassigned"), Err("unknown without outside server, prefill".to_owned()));
    is(&e2e, &[("outside_server", 5.0), ("queue", 20.0), ("unknown", 135.0)]);
    assert!((e2e.assigned_share().unwrap() - 28.0 / 163.0).abs() < 1e-9);
    // llama.cpp has no histogram, but the client's parts are still known.
    let [ttft, _] = sums(&histogram("other", 1.0, 1.0, None));
    is(&ttft, &[("client", 1.0), ("connection", 2.0), ("unknown", 60.0)]);
    assert!(of_samples(&[], &rows(), &facts()).is_empty(), "nothing was scraped");
}

#[test]
fn a_gap_or_a_restart_takes_a_part_with_it() {
    let mut with_gap = samples(&told()[1..]);
    with_gap.extend(histogram("queue_seconds", 10.0, 20.0, Some(15)));
    let [ttft, _] = sums(&with_gap);
    assert_eq!(ms(&ttft, "queue"), Err("1 scrape in the window failed (timeout)".to_owned()));
    // The server restarted at 15 s.
    let mut restarted = samples(&told());
    for sample in restarted.iter_mut().filter(|sample| sample.source == "server" && sample.at_ns >= 15 * S) {
        sample.value *= (sample.at_ns - 15 * S) as f64 / sample.at_ns as f64;
    }
    let [ttft, e2e] = sums(&restarted);
    for whole in [&ttft, &e2e] {
        for part in ["queue", "prefill", "outside_server"] {
            assert!(ms(whole, part).unwrap_err().contains("restarted"), "{whole:?}");
        }
        is(whole, &[("client", 1.0), ("connection", 2.0), ("unknown", whole.mean_ms - 3.0)]);
    }
}

#[test]
fn a_histogram_of_other_requests_is_not_taken() {
    let with_rate = |rate: f64| {
        let mut samples = samples(&told()[1..]);
        samples.extend(histogram("queue_seconds", rate, 20.0, None));
        ms(&sums(&samples)[0], "queue")
    };
    assert!((with_rate(10.4).unwrap() - 20.0).abs() < 1e-6);
    for (rate, counted) in [(10.6, "106"), (9.4, "94")] {
        let why = format!("queue_seconds counted {counted} requests in the window, the client 100");
        assert_eq!(with_rate(rate), Err(why));
    }
}

#[test]
fn a_part_below_zero_is_said() {
    let with = |name: &str, ms: f64| {
        let changed: Vec<(&str, f64)> =
            told().into_iter().map(|(one, other)| (one, if one == name { ms } else { other })).collect();
        sums(&samples(&changed))
    };
    // A negative part that is within the accuracy of means is shown as is.
    let [ttft, _] = with("ttft", 60.5);
    is(&ttft, &[("outside_server", -0.5), ("server_unassigned", 10.5)]);
    let [ttft, _] = with("ttft", 70.0);
    let why = "the server's own TTFT of 70.0 ms exceeds the client's of 60.0 ms";
    assert_eq!(ms(&ttft, "outside_server"), Err(why.to_owned()));
    is(&ttft, &[("unknown", 10.0)]);
    let [ttft, e2e] = with("queue", 40.0);
    let why = "the parts exceed the whole by 14.0 ms";
    assert_eq!([ms(&ttft, "server_unassigned"), ms(&ttft, "unknown")], [Err(why.to_owned()), Err(why.to_owned())]);
    assert_eq!((ttft.assigned_share(), e2e.assigned_share()), (None, None));
}

#[test]
fn answers_that_come_whole_have_no_ttft() {
    let facts = Facts { stream: false, ..facts() };
    let wholes = of_samples(&samples(&told()), &rows(), &facts);
    assert_eq!(wholes.iter().map(|whole| whole.name).collect::<Vec<_>>(), ["e2e"]);
    is(&wholes[0], &[("outside_server", 5.0), ("decode", 100.0)]);
}

/// Returns responses of 3 s each, ten per second from 5 s on, so that more requests start than end in the
/// window.
fn long_rows() -> Vec<Measured> {
    let row = |request: u64| {
        let sent = 5 * S + request * 100 * MS;
        let end = Some(sent + 3 * S + if request < 100 { 0 } else { 20 * S });
        let row = RequestRow {
            released_ns: Some(sent),
            sent_ns: Some(sent),
            first_token_ns: Some(sent + 60 * MS),
            first_output_ns: Some(sent + 60 * MS),
            last_token_ns: end,
            done_ns: end,
            ended_ns: end,
            outcome: Outcome::Ok,
            ..RequestRow::wanted(request, Phase::Measure, sent)
        };
        Measured::from(&row)
    };
    (0..150).map(row).collect()
}

#[test]
fn histograms_are_of_the_requests_that_the_server_counts_then() {
    let of = |exporters: &[&str]| {
        let exporters = exporters.iter().map(|title| Some((*title).to_owned())).collect();
        let facts = Facts { telemetry: Some(Telemetry { exporters, ..Telemetry::default() }), ..facts() };
        let rows = long_rows();
        let ended = rows.iter().filter(|row| contains(&facts.windows, row.done_ns().unwrap())).count();
        let begun = rows.iter().filter(|row| contains(&facts.windows, row.first_token_ns().unwrap())).count();
        assert!(begun as f64 > 1.1 * ended as f64, "{begun} and {ended}");
        // SGLang counts a request in these histograms at its first token, so they count ten requests per
        // second.
        let told = [("queue", 20.0), ("prefill", 30.0), ("ttft", 56.0)];
        let [ttft, e2e]: [Whole; 2] = of_samples(&samples(&told), &rows, &facts).try_into().unwrap();
        assert_eq!(e2e.requests, ended as u64);
        (ttft, begun as u64, ended as u64)
    };
    let (ttft, begun, _) = of(&["SGLang"]);
    assert_eq!(ttft.requests, begun);
    is(&ttft, &[("queue", 20.0), ("prefill", 30.0), ("outside_server", 4.0), ("server_unassigned", 6.0)]);
    let (ttft, _, ended) = of(&["vLLM"]);
    assert_eq!(ttft.requests, ended);
    assert!(ms(&ttft, "queue").unwrap_err().contains("counted 100 requests"), "{ttft:?}");
    is(&ttft, &[("outside_server", 4.0)]);
    let (ttft, ..) = of(&["TensorRT-LLM"]);
    assert!(ms(&ttft, "outside_server").unwrap_err().contains("ttft_seconds counted 100"), "{ttft:?}");
    let (ttft, ..) = of(&["vLLM", "SGLang"]);
    assert!(ms(&ttft, "queue").unwrap_err().contains("at different moments"), "{ttft:?}");
}

/// Returns a round trip of this many milliseconds at each of these seconds.
fn round_trips(ms: f64, at: &[u64]) -> Vec<Sample> {
    let sample = |second: &u64| Sample {
        at_ns: second * 1_000_000_000,
        source: "network".into(),
        name: "round_trip_seconds".into(),
        value: ms / 1e3,
        ..Sample::default()
    };
    at.iter().map(sample).collect()
}

#[test]
fn a_round_trip_is_taken_out_of_what_is_outside() {
    let with = |more: Vec<Sample>| sums(&[samples(&told()), more].concat());
    let window = [10, 12, 14, 16, 18];
    let [ttft, e2e] = with(round_trips(3.0, &window));
    is(&ttft, &[("network", 3.0), ("outside_server", 1.0), ("server_unassigned", 6.0)]);
    is(&e2e, &[("network", 3.0), ("outside_server", 2.0), ("decode", 100.0), ("server_unassigned", 5.0)]);
    // With too few round trips or none, the network time is part of the rest and is not reported separately.
    for other in [with(round_trips(3.0, &window[..2])), with(Vec::new())] {
        assert!(other.iter().all(|whole| whole.parts.iter().all(|part| part.name != "network")), "{other:?}");
        is(&other[0], &[("outside_server", 4.0)]);
    }
    // The requests took less time than this round trip, so it does not belong to them.
    is(&with(round_trips(9.0, &window))[0], &[("outside_server", 4.0)]);
    // If the server's own time is unknown, the network time is still known.
    let few: Vec<_> = told().into_iter().filter(|(name, _)| *name != "ttft").collect();
    let [ttft, _] = sums(&[samples(&few), round_trips(3.0, &window)].concat());
    assert_eq!((ms(&ttft, "network"), ms(&ttft, "outside_server").is_err()), (Ok(3.0), true));
}

/// Returns the rows, each with the times that `told` returns for its number: queue, prefill, decode and
/// total, in ms.
fn rows_told(told: impl Fn(u64) -> [Option<u64>; 4]) -> Vec<Measured> {
    let row = |request: u64| {
        let sent = request * 100 * MS + 3 * MS;
        let [queue, prefill, decode, total] = told(request).map(|ms| ms.map(|ms| ms * MS));
        let row = RequestRow {
            released_ns: Some(sent - 3 * MS),
            sent_ns: Some(sent),
            connect_ns: Some(2 * MS),
            first_token_ns: Some(sent + 60 * MS),
            first_output_ns: Some(sent + 60 * MS),
            last_token_ns: Some(sent + 160 * MS),
            done_ns: Some(sent + 160 * MS),
            ended_ns: Some(sent + 160 * MS),
            outcome: Outcome::Ok,
            server_queue_ns: queue,
            server_prefill_ns: prefill,
            server_decode_ns: decode,
            server_total_ns: total,
            ..RequestRow::wanted(request, Phase::Measure, sent - 3 * MS)
        };
        Measured::from(&row)
    };
    (0..250).map(row).collect()
}

#[test]
fn what_answers_tell_goes_before_histograms_and_without_them() {
    // llama.cpp reports prefill and decode in its responses; its page has no histograms, or does not exist.
    let llama = rows_told(|request| [None, Some(30 + request % 2), Some(99), None]);
    for samples in [Vec::new(), histogram("other", 1.0, 1.0, None)] {
        let [ttft, e2e]: [Whole; 2] = of_samples(&samples, &llama, &facts()).try_into().unwrap();
        is(&ttft, &[("client", 1.0), ("prefill", 30.5), ("unknown", 29.5)]);
        is(&e2e, &[("prefill", 30.5), ("decode", 99.0), ("unknown", 30.5)]);
        assert_eq!(ms(&e2e, "queue"), Err("no page has queue_seconds".to_owned()));
    }
    // The reported times belong to exactly these requests.
    let all = rows_told(|_| [Some(21), Some(31), Some(101), Some(156)]);
    let [_, e2e]: [Whole; 2] = of_samples(&samples(&told()), &all, &facts()).try_into().unwrap();
    is(&e2e, &[("queue", 21.0), ("prefill", 31.0), ("decode", 101.0), ("outside_server", 4.0)]);
}

#[test]
fn what_some_answers_tell_is_not_that_of_all() {
    let some = rows_told(|request| [(request % 2 == 0).then_some(21), None, None, None]);
    let [ttft, _]: [Whole; 2] = of_samples(&[], &some, &facts()).try_into().unwrap();
    assert_eq!(ms(&ttft, "queue"), Err("no page has queue_seconds; only 50 of 100 responses report it".to_owned()));
    let [ttft, _]: [Whole; 2] = of_samples(&samples(&told()), &some, &facts()).try_into().unwrap();
    is(&ttft, &[("queue", 20.0)]);
}

/// Returns the rows as records, each with 20 gaps of 5 ms, except that the first gap is longer.
fn stalled(more: impl Fn(u64) -> u64) -> crate::rows::Records {
    let record = |row: &Measured| {
        let mut gaps_ns = vec![5 * MS; 20];
        gaps_ns[0] += more(row.request) * MS;
        let [sent, first, last] = [row.sent_ns(), row.first_token_ns(), row.last_token_ns()];
        let row = RequestRow {
            sent_ns: sent,
            first_token_ns: first,
            first_output_ns: first,
            last_token_ns: last,
            done_ns: last,
            ended_ns: last,
            outcome: Outcome::Ok,
            events: 21,
            ..RequestRow::wanted(row.request, Phase::Measure, row.scheduled_ns)
        };
        crate::rows::Record { row, gaps_ns }
    };
    rows().iter().map(record).collect()
}

#[test]
fn stalls_are_taken_out_of_the_decode() {
    let of = |samples: &[Sample], more: fn(u64) -> u64| {
        let run = stalled(more);
        let Ok(wholes) = wholes_with(samples, &rows(), &facts(), || Stalls::of(&run, &facts()));
        let [ttft, e2e]: [Whole; 2] = wholes.try_into().unwrap();
        assert!(ttft.parts.iter().all(|part| part.name != "stalls"));
        e2e
    };
    // Every other response stalled for 40 ms.
    let e2e = of(&samples(&told()), |request| request % 2 * 40);
    is(&e2e, &[("decode", 80.0), ("stalls", 20.0), ("server_unassigned", 5.0), ("unknown", 0.0)]);
    // If the server does not report its decode time, the stalls are still known.
    let few: Vec<_> = told().into_iter().filter(|(name, _)| *name != "decode").collect();
    let e2e = of(&samples(&few), |request| request % 2 * 40);
    is(&e2e, &[("stalls", 20.0), ("unknown", 85.0)]);
    // The stalls exceed the decode time that contains them, so they belong to another request.
    let e2e = of(&samples(&told()), |_| 140);
    is(&e2e, &[("decode", 100.0), ("unknown", 0.0)]);
    let why = "stalls are 140.0 ms, the server's decode only 100.0 ms";
    assert_eq!(ms(&e2e, "stalls"), Err(why.to_owned()));
}

#[test]
fn stalls_without_a_pace_are_in_the_decode() {
    let [_, e2e] = sums(&samples(&told()));
    is(&e2e, &[("decode", 100.0), ("unknown", 0.0), ("server_unassigned", 5.0)]);
    assert!(ms(&e2e, "stalls").unwrap_err().contains("have no steady pace"));
    let facts = Facts { stream: false, ..facts() };
    let whole = of_samples(&samples(&told()), &rows(), &facts).remove(0);
    assert_eq!(ms(&whole, "stalls"), Err("responses were not streamed".to_owned()));
}
