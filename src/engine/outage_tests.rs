use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const URL: &str = "http://h:1/v1";

fn watching(streams: bool) -> Outage {
    Outage::new(URL.to_owned(), streams, Nanos::from_secs(10))
}

fn at(at: u64, received: u64, in_flight: u64) -> Now {
    Now { at, received, in_flight, tokens: received }
}

fn seen(request: u64, outcome: Outcome) -> Seen<'static> {
    let error = match outcome {
        Outcome::Ok => "",
        Outcome::Connect => "no connection to h:1: Connection refused (os error 111)",
        Outcome::Http(_) => "full",
        _ => "the connection broke",
    };
    Seen { request, outcome, error, aside: None, took: Some(SECOND) }
}

fn away() -> Checked {
    Checked::Away(format!("{URL} does not respond: Connection refused"))
}

fn spoiled(step: Step) -> Spoiled {
    match step {
        Step::End(spoiled) => spoiled,
        other => panic!("{other:?}"),
    }
}

/// Reports five failures in a row, one per millisecond, with `in_flight` other requests in flight;
/// returns the step after the last failure.
fn five(outage: &mut Outage, outcome: Outcome, from: u64, in_flight: u64) -> Step {
    let mut steps = (0..5).map(|n| outage.ended(at(from + n * MS, 7, in_flight), seen(100 + n, outcome), 101 + n));
    assert!(steps.by_ref().take(4).all(|step| step == Step::GoOn));
    steps.next().unwrap()
}

#[test]
fn three_429_or_404_of_an_attempt_end_it_wherever_they_are() {
    for (status, cause) in [(429, SpoilCause::RateLimited), (404, SpoilCause::UnknownModel)] {
        let mut outage = watching(true);
        for n in 0..2 {
            assert_eq!(outage.ended(at(n, n, 1), seen(n, Outcome::Http(status)), n + 1), Step::GoOn);
            assert_eq!(outage.ended(at(n, n, 1), seen(n, Outcome::Ok), n + 1), Step::GoOn);
        }
        let third = Seen { aside: Some(Aside::RetryAfter(Nanos::from_secs(20))), ..seen(3, Outcome::Http(status)) };
        let Spoiled { cause: found, detail, retry_after } = spoiled(outage.ended(at(9, 9, 1), third, 4));
        assert_eq!((found, retry_after), (cause, Some(Nanos::from_secs(20))));
        assert_eq!(detail, format!("HTTP {status} three times: full"));
    }
}

#[test]
fn five_in_a_row_and_two_checks_that_find_it_away_are_an_outage() {
    for (outcome, detail) in [
        (Outcome::Connect, "connection refused 5 times in a row"),
        (Outcome::Reset, "connection reset 5 times in a row"),
        (Outcome::Http(503), "HTTP 503 5 times in a row: full"),
    ] {
        let mut outage = watching(true);
        assert_eq!(five(&mut outage, outcome, SECOND, 0), Step::Check);
        let now = |ms: u64| at(SECOND + ms * MS, 7, 0);
        assert_eq!(outage.answered(now(10), away()), Step::GoOn);
        assert_eq!(outage.look(now(100)), Step::GoOn, "the second check follows a moment later");
        assert_eq!(outage.look(now(210)), Step::Check);
        assert_eq!(outage.look(now(220)), Step::GoOn, "one at a time");
        let found = spoiled(outage.answered(now(230), away()));
        assert_eq!(found.detail, format!("{detail}, and {URL} does not respond: Connection refused"));
    }
}

#[test]
fn anything_good_takes_the_suspicion_away() {
    // Four cases: a token between the checks, a token between the failures, a response to the first check, a
    // response to the second check.
    let now = |ms: u64, received| at(SECOND + ms * MS, received, 0);
    let mut outage = watching(true);
    assert_eq!(five(&mut outage, Outcome::Reset, SECOND, 0), Step::Check);
    assert_eq!(outage.answered(now(10, 8), away()), Step::GoOn);
    assert!(!outage.asks());

    let mut outage = watching(true);
    for n in 0..50 {
        assert_eq!(outage.ended(now(n, n / 4), seen(n, Outcome::Http(503)), n + 1), Step::GoOn);
    }

    for well_at in 1..=2 {
        let mut outage = watching(true);
        assert_eq!(five(&mut outage, Outcome::Reset, SECOND, 0), Step::Check);
        if well_at == 2 {
            assert_eq!(outage.answered(now(10, 7), away()), Step::GoOn);
            assert_eq!(outage.look(now(300, 7)), Step::Check);
        }
        assert_eq!(outage.answered(now(310, 7), Checked::Well), Step::GoOn);
        assert!(!outage.asks());
        // The count restarts, and no check follows within a second, because checks must not add load.
        let steps: Vec<Step> = (0..40).map(|n| outage.ended(now(311 + n, 7), seen(n, Outcome::Reset), n + 1)).collect();
        assert!(steps.iter().all(|step| *step == Step::GoOn), "not within a second");
        assert_eq!(outage.look(now(1_311, 7)), Step::Check);
    }
}

#[test]
fn other_outcomes_are_no_row() {
    for outcome in [Outcome::Timeout, Outcome::Stalled, Outcome::Http(500), Outcome::Malformed, Outcome::Empty] {
        let mut outage = watching(true);
        assert!((0..99).all(|n| outage.ended(at(n, 0, 3), seen(n, outcome), n + 1) == Step::GoOn), "{outcome}");
    }
    for aside in [Aside::Local, Aside::Late] {
        let mut outage = watching(true);
        let refused = |n| Seen { aside: Some(aside), ..seen(n, Outcome::Connect) };
        assert!((0..99).all(|n| outage.ended(at(n, 0, 3), refused(n), n + 1) == Step::GoOn), "{aside:?}");
    }
    let mut outage = watching(true);
    let kinds = [Outcome::Reset, Outcome::Reset, Outcome::Reset, Outcome::Reset, Outcome::Http(500)];
    assert!((0..99).all(|n| outage.ended(at(n, 0, 0), seen(n, kinds[n as usize % 5]), n + 1) == Step::GoOn));
}

#[test]
fn a_server_at_work_on_what_it_took_before_may_turn_others_away() {
    let mut outage = watching(true);
    // Two earlier requests are in flight.
    assert_eq!(five(&mut outage, Outcome::Http(503), SECOND, 2), Step::Check);
    let now = |ms: u64| at(SECOND + ms * MS, 7, 2);
    assert_eq!(outage.answered(now(10), away()), Step::GoOn);
    assert_eq!(outage.look(now(300)), Step::Check);
    assert_eq!(outage.answered(now(310), away()), Step::GoOn, "it may be full");
    assert_eq!(outage.look(now(1_400)), Step::Check, "and is checked again");
    assert_eq!(outage.answered(now(1_410), away()), Step::GoOn);
    assert_eq!(outage.look(now(10_100)), Step::Check);
    // Nothing has succeeded for ten seconds.
    assert_eq!(spoiled(outage.answered(now(10_110), away())).cause, SpoilCause::Unavailable);

    let mut outage = watching(true);
    five(&mut outage, Outcome::Http(503), SECOND, 2);
    outage.answered(now(10), away());
    for request in [3, 4] {
        outage.ended(now(20), seen(request, Outcome::Reset), 200);
    }
    outage.look(now(300));
    // The earlier requests are gone too, so the server cannot be working on any request.
    assert_eq!(spoiled(outage.answered(now(310), away())).cause, SpoilCause::Reset);
}

#[test]
fn silence_is_an_outage_where_two_checks_time_out() {
    let mut outage = watching(true);
    assert_eq!(outage.look(at(0, 5, 0)), Step::GoOn);
    assert_eq!(outage.look(at(99 * SECOND, 5, 0)), Step::GoOn, "nothing is in flight");
    assert_eq!(outage.look(at(100 * SECOND, 5, 3)), Step::GoOn);
    assert_eq!(outage.look(at(109 * SECOND, 5, 3)), Step::GoOn);
    assert_eq!(outage.look(at(110 * SECOND, 5, 3)), Step::Check);
    assert_eq!(outage.answered(at(120 * SECOND, 5, 3), Checked::TimedOut), Step::Check);
    let found = spoiled(outage.answered(at(130 * SECOND, 5, 3), Checked::TimedOut));
    let detail = "nothing was received for 30s with 3 requests in flight, and http://h:1/v1 did not respond to a \
         check within 10s, twice";
    assert_eq!((found.cause, found.detail.as_str()), (SpoilCause::Silent, detail));
}

#[test]
fn a_silence_that_ended_with_data_makes_longer_ones_likely() {
    let mut outage = watching(true);
    outage.look(at(0, 0, 1));
    assert_eq!(outage.look(at(10 * SECOND, 0, 1)), Step::Check);
    assert_eq!(outage.answered(at(20 * SECOND, 0, 1), Checked::TimedOut), Step::Check);
    assert_eq!(outage.answered(at(28 * SECOND, 1, 1), Checked::TimedOut), Step::GoOn, "its prefill took that long");
    assert_eq!(outage.look(at(83 * SECOND, 1, 1)), Step::GoOn);
    assert_eq!(outage.look(at(84 * SECOND, 1, 1)), Step::Check);
    // A response to a check is not data, but it shows that the server is alive.
    assert_eq!(outage.answered(at(85 * SECOND, 1, 1), Checked::Well), Step::GoOn);
    assert_eq!(outage.look(at(100 * SECOND, 1, 1)), Step::GoOn, "not checked again at once");
}

#[test]
fn without_streaming_the_longest_answer_counts() {
    let mut outage = watching(false);
    outage.look(at(0, 0, 1));
    assert_eq!(outage.look(at(59 * SECOND, 0, 1)), Step::GoOn);
    assert_eq!(outage.look(at(60 * SECOND, 0, 1)), Step::Check);

    let mut outage = watching(false);
    outage.look(at(0, 0, 2));
    let took = Some(9 * SECOND);
    outage.ended(at(9 * SECOND, 2, 1), Seen { took, ..seen(0, Outcome::Ok) }, 2);
    assert_eq!(outage.look(at(26 * SECOND, 2, 1)), Step::GoOn);
    assert_eq!(outage.look(at(27 * SECOND, 2, 1)), Step::Check);
}

#[test]
fn the_end_of_a_run_waits_for_what_is_being_asked() {
    let mut outage = watching(true);
    assert_eq!(five(&mut outage, Outcome::Reset, SECOND, 0), Step::Check);
    outage.answered(at(SECOND + 10 * MS, 7, 0), Checked::Well);
    // Five more failures do not cause a check, because the last suspicion was less than a second ago.
    assert!((0..5).all(|n| outage.ended(at(SECOND + 20 * MS, 7, 0), seen(n, Outcome::Reset), n + 1) == Step::GoOn));
    assert_eq!(outage.at_the_end(at(SECOND + 30 * MS, 7, 0)), Step::Check);
    assert!(outage.asks());
    outage.answered(at(SECOND + 40 * MS, 7, 0), away());
    assert!(outage.asks());
    assert_eq!(outage.look(at(SECOND + 400 * MS, 7, 0)), Step::Check);
    assert_eq!(spoiled(outage.answered(at(SECOND + 500 * MS, 7, 0), away())).cause, SpoilCause::Reset);

    let mut outage = watching(true);
    assert_eq!(outage.at_the_end(at(SECOND, 7, 3)), Step::GoOn);
    assert!(!outage.asks(), "a run without problems ends at once");
}

proptest! {
    /// If there are never five failures in a row without data in between, and there is no 429 or 404, the
    /// endpoint is never checked and the attempt never ends.
    #[test]
    fn sporadic_failures_are_measurements(
        rounds in prop::collection::vec((prop::collection::vec(0..7usize, 0..5), any::<bool>(), 1..2_000u64), 1..200),
    ) {
        let kinds = [
            Outcome::Connect, Outcome::Reset, Outcome::Http(503), Outcome::Http(500), Outcome::Timeout, Outcome::Stalled,
            Outcome::Malformed,
        ];
        let (mut outage, mut received, mut time, mut request) = (watching(true), 0, 0, 0);
        for (failures, completes, pause) in rounds {
            for kind in failures {
                request += 1;
                prop_assert_eq!(outage.ended(at(time, received, 3), seen(request, kinds[kind]), request + 1), Step::GoOn);
            }
            time += pause * MS;
            received += 1;
            if completes {
                request += 1;
                prop_assert_eq!(outage.ended(at(time, received, 3), seen(request, Outcome::Ok), request + 1), Step::GoOn);
            }
            prop_assert_eq!(outage.look(at(time, received, 3)), Step::GoOn);
        }
    }

    /// Whatever the events, an attempt ends only after three responses with 429 or three with 404, the end of
    /// the server process, or two checks that did not reach the endpoint.
    #[test]
    fn nothing_ends_without_its_reason(events in prop::collection::vec((0..16usize, 0..4_000u64, 0..3u64), 1..300)) {
        let kinds = [
            Outcome::Ok, Outcome::Connect, Outcome::Reset, Outcome::Http(503), Outcome::Http(500), Outcome::Timeout,
            Outcome::Http(429), Outcome::Http(404), Outcome::Empty, Outcome::Http(503),
        ];
        let (mut outage, mut time, mut received, mut under_way) = (watching(true), 0, 0, false);
        let (mut bad, mut turned) = (0, [0, 0]);
        for (request, (event, pause, come)) in events.into_iter().enumerate() {
            time += pause * MS;
            received += come / 2;
            let now = at(time, received, 2);
            let step = match event {
                0..10 => {
                    turned[0] += usize::from(kinds[event] == Outcome::Http(429));
                    turned[1] += usize::from(kinds[event] == Outcome::Http(404));
                    outage.ended(now, seen(request as u64, kinds[event]), request as u64 + 1)
                }
                10..14 if under_way => {
                    under_way = false;
                    let checked = [Checked::Well, away(), away(), Checked::TimedOut][event - 10].clone();
                    bad = if checked == Checked::Well { 0 } else { bad + 1 };
                    outage.answered(now, checked)
                }
                _ => outage.look(now),
            };
            match step {
                Step::GoOn => {}
                Step::Check => {
                    prop_assert!(!under_way, "one at a time");
                    under_way = true;
                }
                Step::End(Spoiled { cause: SpoilCause::RateLimited, .. }) => {
                    prop_assert_eq!(turned[0], 3);
                    return Ok(());
                }
                Step::End(Spoiled { cause: SpoilCause::UnknownModel, .. }) => {
                    prop_assert_eq!(turned[1], 3);
                    return Ok(());
                }
                Step::End(_) => {
                    prop_assert!(bad >= 2);
                    return Ok(());
                }
            }
        }
        prop_assert!(turned.iter().all(|count| *count < 3));
    }
}

/// A simulated server with a queue.
#[derive(Debug, Clone, Copy)]
struct Queue {
    slots: usize,
    /// Number of requests that can wait in the queue; further requests get a 503.
    places: usize,
    /// Time from the beginning of service to the first token.
    prefill: u64,
    /// Time from the beginning to the end of service.
    service: u64,
    streams: bool,
    /// Arrival rate relative to the server's capacity.
    load: f64,
    /// Probabilities, per thousand, that an arriving request gets a 500, is reset, or gets a 503.
    chances: [u32; 3],
    check: Door,
    /// When the server goes away, and the outcome of all requests from then on; `None` if it stays available.
    gone: Option<(u64, Outcome)>,
}

/// How the server responds to a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The server responds to the check independently of the queue.
    Own,
    /// A gateway rejects the check if the queue is full.
    Gateway,
    /// The server's only thread responds to the check when the requests in service are done.
    Thread,
}

/// Simulates `secs` seconds of load in steps of twenty milliseconds. Returns why and when the attempt was
/// spoiled; `None` if it was not.
fn simulate(seed: u64, queue: Queue, secs: u64) -> Option<(Spoiled, u64)> {
    const STEP: u64 = 20 * MS;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut outage = watching(queue.streams);
    let rate = queue.load * queue.slots as f64 / (queue.service as f64 / 1e9);
    let mut next = 0u64;
    // Waiting requests, each with its number and arrival time; requests in service also have the time at
    // which their service began.
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let mut served: Vec<(u64, u64, u64)> = Vec::new();
    let (mut request, mut received) = (0, 0);
    let mut check: Option<u64> = None;
    for time in (0..secs * SECOND).step_by(STEP as usize) {
        let mut steps = Vec::new();
        let gone = queue.gone.filter(|(since, _)| *since <= time).map(|(_, outcome)| outcome);
        let hangs = gone == Some(Outcome::Timeout);
        let mut ended = Vec::new();
        if let Some(outcome) = gone.filter(|_| !hangs) {
            ended.extend(waiting.drain(..).map(|(number, _)| (number, outcome, 0)));
            ended.extend(served.drain(..).map(|(number, ..)| (number, outcome, 0)));
        }
        while next <= time {
            next += (-(1.0 - rng.random::<f64>()).ln() / rate * 1e9) as u64;
            let dice = rng.random_range(0..1_000u32);
            let [bad, reset, full] = queue.chances;
            let struck =
                [(bad, Outcome::Http(500)), (bad + reset, Outcome::Reset), (bad + reset + full, Outcome::Http(503))];
            let struck = struck.into_iter().find(|(chance, _)| dice < *chance).map(|(_, outcome)| outcome);
            match (gone, struck) {
                (Some(outcome), _) if !hangs => ended.push((request, outcome, 0)),
                (None, Some(outcome)) => ended.push((request, outcome, 0)),
                (None, None) if waiting.len() >= queue.places => ended.push((request, Outcome::Http(503), 0)),
                _ => waiting.push((request, time)),
            }
            request += 1;
        }
        if !hangs {
            while served.len() < queue.slots && !waiting.is_empty() {
                let (number, arrived) = waiting.remove(0);
                served.push((number, arrived, time));
            }
            if queue.streams {
                received += served.iter().filter(|(.., began)| time >= began + queue.prefill).count() as u64;
            }
            served.retain(|(number, arrived, began)| {
                let done = time >= began + queue.service;
                if done {
                    ended.push((*number, Outcome::Ok, time - arrived));
                }
                !done
            });
        }
        received += ended.iter().filter(|(_, outcome, _)| *outcome == Outcome::Ok).count() as u64;
        let mut in_flight = (waiting.len() + served.len() + ended.len()) as u64;
        for (number, outcome, took) in ended {
            in_flight -= 1;
            let seen = Seen { took: Some(took), ..seen(number, outcome) };
            steps.push(outage.ended(at(time, received, in_flight), seen, request));
        }
        let now = at(time, received, in_flight);
        if let Some(asked) = check {
            let begins_anew = served.iter().all(|(.., began)| *began >= asked);
            let answer = match gone {
                _ if time >= asked + 10 * SECOND => Some(Checked::TimedOut),
                Some(_) if hangs => None,
                Some(_) => Some(away()),
                None => match queue.check {
                    Door::Gateway if waiting.len() >= queue.places => Some(away()),
                    Door::Thread => begins_anew.then_some(Checked::Well),
                    Door::Own | Door::Gateway => Some(Checked::Well),
                },
            };
            if let Some(answer) = answer {
                check = None;
                steps.push(outage.answered(now, answer));
            }
        }
        steps.push(outage.look(now));
        for step in steps {
            match step {
                Step::GoOn => {}
                Step::Check => check = Some(time),
                Step::End(spoiled) => return Some((spoiled, time)),
            }
        }
    }
    None
}

/// Creates a random queue from `seed`; `load` is the range of its load.
fn queue(seed: u64, load: std::ops::Range<f64>) -> Queue {
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    let streams = rng.random::<bool>();
    let slots = rng.random_range(1..12usize);
    // Service takes at most twenty seconds, or forty without streaming, so even a single-threaded server is
    // never silent for long enough to count as an outage.
    let service = rng.random_range(50..if streams { 20_000 } else { 40_000u64 }) * MS;
    Queue {
        slots,
        places: rng.random_range(1..40),
        prefill: service * rng.random_range(1..90) / 100,
        service,
        streams,
        load: rng.random_range(load),
        chances: [rng.random_range(0..100), rng.random_range(0..100), rng.random_range(0..100)],
        check: [Door::Own, Door::Gateway, Door::Thread][rng.random_range(0..3usize)],
        gone: None,
    }
}

/// Returns the number of simulations: the value of `SWEEPLINE_OUTAGE_RUNS` (for example 100000), or else
/// `default`, as in docs/METRICS.md.
fn runs(default: u64) -> u64 {
    std::env::var("SWEEPLINE_OUTAGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

#[test]
fn no_clean_run_is_taken_for_an_outage() {
    for seed in 0..runs(2_000) {
        let queue = Queue { chances: [0, 0, 0], places: usize::MAX, ..queue(seed, 0.1..0.95) };
        assert_eq!(simulate(seed, queue, 90), None, "{seed} {queue:?}");
    }
}

#[test]
fn no_overloaded_run_is_taken_for_an_outage() {
    for seed in 0..runs(200) {
        let with_errors = queue(seed, 1.1..1.3);
        for queue in [with_errors, Queue { chances: [0, 0, 500], ..with_errors }] {
            assert_eq!(simulate(seed, queue, 180), None, "{seed} {queue:?}");
        }
    }
}

#[test]
fn a_server_that_goes_away_is_missed_soon() {
    let mut found = 0;
    for seed in 0..200 {
        let mut queue = queue(seed, 0.5..0.9);
        // Limits the service time, so that enough requests arrive for five of them to fail.
        (queue.service, queue.prefill) = (queue.service.min(500 * MS), queue.prefill.min(200 * MS));
        for (outcome, within) in [(Outcome::Connect, 25), (Outcome::Http(503), 25), (Outcome::Timeout, 60)] {
            let gone = 40 * SECOND;
            let (spoiled, when) = simulate(seed, Queue { gone: Some((gone, outcome)), ..queue }, 140)
                .unwrap_or_else(|| panic!("{seed} {outcome} {queue:?}"));
            let cause = match outcome {
                Outcome::Connect => SpoilCause::Refused,
                Outcome::Http(_) => SpoilCause::Unavailable,
                _ => SpoilCause::Silent,
            };
            assert_eq!(spoiled.cause, cause, "{seed} {queue:?}");
            assert!((gone..gone + within * SECOND).contains(&when), "{seed} {outcome} {} ms {queue:?}", when / MS);
            found += 1;
        }
    }
    assert_eq!(found, 600);
}
