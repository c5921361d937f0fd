//! Tests each sign of a saturated generator on both sides of its threshold, and the cause that is
//! named.

use super::*;
use crate::analysis::synthetic::{Run, postpone, verdict};
use crate::analysis::verdict::State;
use crate::plan::Validity;
use crate::rows::{MachineTime, Record};

const MS: u64 = 1_000_000;

/// A modification of a clean run's observations.
type Change = fn(&mut Observed);

/// Returns a clean run whose observations are modified by `change`.
fn run(change: impl FnOnce(&mut Observed)) -> (Vec<Record>, Facts) {
    let (records, mut facts) = Run { seconds: 11.0, ..Run::default() }.make();
    change(facts.observed.as_mut().unwrap());
    (records, facts)
}

/// Returns the verdict's `client_saturated` reason for a clean run with changed observations, if any.
fn said(change: impl FnOnce(&mut Observed)) -> Option<String> {
    let (records, facts) = run(change);
    let verdict = verdict(&records, &facts, &Validity::default(), None);
    let reason = verdict.reasons.into_iter().next()?;
    assert_eq!((reason.name, reason.state), ("client_saturated", State::Suspect));
    Some(reason.text)
}

fn io(observed: &mut Observed) -> &mut ThreadTime {
    observed.threads.iter_mut().find(|thread| thread.is_io()).unwrap()
}

fn percent(observed: &Observed, share: u64) -> u64 {
    observed.for_ns * share / 100
}

fn slow_turns(observed: &mut Observed) {
    observed.turns.as_mut().unwrap().p99_ns = 23 * MS;
}

#[test]
fn one_io_thread_without_a_core_left_is_saturated_on_any_machine() {
    let busy = |share| {
        move |observed: &mut Observed| {
            io(observed).cpu_ns = percent(observed, share);
            observed.process_cpu_ns = percent(observed, share + 3);
        }
    };
    assert_eq!(said(busy(90)), None);
    assert!(said(busy(91)).is_some());
    let text = "the I/O thread used 97% of a core: use engine: { threads: 2 } or a second client";
    assert_eq!(said(busy(97)).as_deref(), Some(text));
    let large = |cores, threads: usize| {
        let (_, mut facts) = run(busy(97));
        facts.client_cores = cores;
        let observed = facts.observed.as_mut().unwrap();
        let thread = io(observed).clone();
        observed.threads.retain(|thread| !thread.is_io());
        let named = |n| ThreadTime { name: format!("io-{n}"), cpu_ns: thread.cpu_ns - n as u64, ..thread.clone() };
        observed.threads.extend((1..=threads).map(named));
        Generator::new(&facts, vec![]).saturated().unwrap().unwrap()
    };
    assert_eq!(large(64, 4), "I/O thread io-1 used 97% of a core: use engine: { threads: 8 } or a second client");
    assert!(large(4, 4).ends_with("use a second client"));
    let starts = said(|observed| {
        let executor = ThreadTime { name: "executor".into(), cpu_ns: percent(observed, 95), wait_ns: None };
        observed.threads.push(executor);
    });
    assert_eq!(starts.as_deref(), Some("the thread that starts requests used 95% of a core: use a second client"));
}

#[test]
fn a_busy_thread_that_spins_is_judged_by_its_stalls() {
    let spinning = |share, open_loop, change: fn(&mut Observed)| {
        let (_, mut facts) = run(|observed| io(observed).cpu_ns = percent(observed, share));
        (facts.client_timer, facts.open_loop) = ("spin".into(), open_loop);
        change(facts.observed.as_mut().unwrap());
        let generator = Generator::new(&facts, vec![]);
        (generator.saturated().unwrap(), generator.unchecked())
    };
    let text = "the I/O thread used 99% of a core, maybe only for busy-waiting on the clock: only stalls were \
               checked";
    assert_eq!(spinning(99, true, |_| ()), (None, Some(text.into())));
    let (saturated, _) = spinning(99, true, slow_turns);
    assert_eq!(saturated.as_deref(), Some("p99 of the delay of the I/O thread's loop was 23.0 ms"));
    // If the CPU share is low even with busy-waiting, the share without it is lower still.
    assert_eq!(spinning(5, true, |_| ()), (None, None));
    // A closed loop has no arrivals to wait for, so it never busy-waits.
    let (saturated, unchecked) = spinning(99, false, |_| ());
    assert!(saturated.unwrap().starts_with("the I/O thread used 99% of a core"));
    assert_eq!(unchecked, None);
}

#[test]
fn a_stop_is_not_blamed_on_neighbours() {
    let stop = |waited: u64| {
        move |observed: &mut Observed| {
            (observed.turns.as_mut().unwrap().p99_ns, observed.wakes.as_mut().unwrap().max_ns) = (1912 * MS, 2000 * MS);
            io(observed).wait_ns = Some(waited);
        }
    };
    let text = "p99 of the delay of the I/O thread's loop was 1912.0 ms: the process or the machine was stopped for up \
                to 2000 ms at a time";
    assert_eq!(said(stop(330 * MS)).as_deref(), Some(text));
    assert_eq!(said(stop(3000 * MS)).as_deref(), Some(text));
    // If no sleep of the canary was long enough to explain the delay, the waits for a core must be as long as
    // the delay.
    let waits = |waited| {
        said(move |observed| {
            stop(waited)(observed);
            observed.wakes.as_mut().unwrap().max_ns = 200 * MS;
        })
    };
    assert_eq!(waits(330 * MS).as_deref(), Some("p99 of the delay of the I/O thread's loop was 1912.0 ms"));
    assert!(waits(2000 * MS).unwrap().contains("other processes held the cores: the I/O thread waited 18%"));
}

#[test]
fn what_was_found_is_not_listed_as_unchecked() {
    let (records, mut facts) = run(|observed| {
        io(observed).cpu_ns = percent(observed, 99);
        slow_turns(observed);
    });
    (facts.client_timer, facts.open_loop) = ("spin".into(), true);
    let listed = |facts: &Facts| {
        let verdict = verdict(&records, facts, &Validity::default(), None);
        let found = verdict.reasons.iter().any(|reason| reason.name == "client_saturated");
        (found, verdict.not_checked.iter().any(|(name, _)| *name == "client_saturated"))
    };
    assert_eq!(listed(&facts), (true, false));
    facts.observed.as_mut().unwrap().turns.as_mut().unwrap().p99_ns = MS;
    assert_eq!(listed(&facts), (false, true));
}

#[test]
fn all_cores_together() {
    let busy = |share| move |observed: &mut Observed| observed.process_cpu_ns = percent(observed, share);
    assert_eq!(said(busy(180)), None);
    assert!(said(busy(181)).is_some());
    assert_eq!(said(busy(190)).as_deref(), Some("sweepline used 95% of its 2 cores"));
}

#[test]
fn stalls_name_what_held_the_cores() {
    assert_eq!(said(|observed| observed.turns.as_mut().unwrap().p99_ns = 10 * MS), None);
    let hog = said(|observed| {
        slow_turns(observed);
        io(observed).wait_ns = Some(percent(observed, 23));
        observed.machine = Some(MachineTime { cores: 2, busy_ns: percent(observed, 200), stolen_ns: 0 });
    });
    let text = "p99 of the delay of the I/O thread's loop was 23.0 ms: other processes held the cores: the I/O thread \
                waited 23% of the window for a core";
    assert_eq!(hog.as_deref(), Some(text));
    let own = said(|observed| {
        slow_turns(observed);
        io(observed).wait_ns = Some(percent(observed, 23));
        observed.process_cpu_ns = percent(observed, 100);
        observed.machine = Some(MachineTime { cores: 2, busy_ns: percent(observed, 110), stolen_ns: 0 });
    });
    assert!(own.unwrap().contains("sweepline's own threads held the cores"));
    let unknown = said(|observed| {
        slow_turns(observed);
        io(observed).wait_ns = Some(percent(observed, 23));
        observed.machine = None;
    });
    assert!(unknown.unwrap().contains("the cores were taken: the I/O thread waited"));
}

#[test]
fn stalls_name_other_causes_too() {
    let causes: [(Change, &str); 5] = [
        (
            |observed| observed.writer_backlog_max = observed.writer_backlog_limit,
            "the writer fell behind (1024 batches waited for it and used 1% of a core)",
        ),
        (
            |observed| observed.machine.as_mut().unwrap().stolen_ns = percent(observed, 50),
            "the hypervisor took 25% of the machine's CPU time",
        ),
        (
            |observed| observed.wakes.as_mut().unwrap().max_ns = 2000 * MS,
            "the process or the machine was stopped for up to 2000 ms at a time",
        ),
        (
            |observed| {
                observed.wakes.as_mut().unwrap().max_ns = 150 * MS;
                let canary = observed.threads.iter_mut().find(|thread| thread.name == "canary");
                canary.unwrap().wait_ns = Some(140 * MS);
            },
            "other processes held the cores for up to 150 ms at a time",
        ),
        (
            |observed| {
                observed.turns.as_mut().unwrap().max_ns = 300 * MS;
                io(observed).cpu_ns = percent(observed, 60);
            },
            "bursts kept the I/O thread busy for up to 300 ms at a time",
        ),
    ];
    for (cause, text) in causes {
        let said = said(|observed| {
            slow_turns(observed);
            io(observed).wait_ns = None;
            cause(observed);
        });
        assert_eq!(said.unwrap().split_once(" ms: ").unwrap().1, text);
        // A cause alone does not raise the reason.
        assert_eq!(self::said(cause), None);
    }
}

#[test]
fn no_cause_is_named_where_none_fits() {
    let bare = Some("p99 of the delay of the I/O thread's loop was 23.0 ms");
    let burst = |cpu, longest| {
        said(move |observed| {
            slow_turns(observed);
            (io(observed).wait_ns, io(observed).cpu_ns) = (None, percent(observed, cpu));
            observed.turns.as_mut().unwrap().max_ns = longest;
        })
    };
    assert_eq!(burst(2, 300 * MS).as_deref(), bare);
    assert_eq!(burst(60, 11 * MS).as_deref(), bare);
}

#[test]
fn lateness_names_its_cause() {
    let (mut records, facts) = run(|observed| io(observed).wait_ns = Some(percent(observed, 40)));
    records.iter_mut().step_by(20).for_each(|record| postpone(record, 40 * MS));
    let verdict = verdict(&records, &facts, &Validity::default(), None);
    assert_eq!(verdict.to_string(), "suspect: client_late");
    let text = &verdict.reasons[0].text;
    assert!(text.contains(
        "ms late: other processes held the cores: the I/O thread waited 40% of the window for a core; effect: "
    ));
}

#[test]
fn lateness_names_contents_that_were_not_made_yet() {
    let text = |wait: u64, cpu: u64| {
        let (mut records, facts) = run(|observed| {
            let cpu_ns = percent(observed, cpu);
            observed.threads.iter_mut().filter(|thread| thread.name == "content").for_each(|t| t.cpu_ns = cpu_ns);
        });
        for record in records.iter_mut().step_by(20) {
            postpone(record, 40 * MS);
            record.row.content_wait_ns = Some(wait);
        }
        verdict(&records, &facts, &Validity::default(), None).reasons.remove(0).text
    };
    let wanted = "ms late: for 75% of that time their contents were not yet generated (by a thread that used 97% \
                 of a core); effect: ";
    assert!(text(30 * MS, 97).contains(wanted), "{}", text(30 * MS, 97));
    // If contents were ready most of the time, the thread that creates them is not the cause.
    assert!(text(18 * MS, 97).contains("ms late; effect: "), "{}", text(18 * MS, 97));
}

#[test]
fn the_read_delay_goes_before_the_canaries_where_there_is_enough_of_it() {
    let (_, facts) = run(slow_turns);
    let stalled = |delays: Vec<f64>| Generator::new(&facts, delays).saturated().unwrap();
    assert_eq!(stalled(vec![9.9; 368]), None);
    assert!(stalled(vec![10.1; 368]).unwrap().starts_with("p99 of the read delay was 10.1 ms"));
    assert!(stalled(vec![9.9; 367]).unwrap().starts_with("p99 of the delay of the I/O thread's loop was 23.0 ms"));
}

/// p99 of 1 000 values lies between the 990th and the 991st.
#[test]
fn stalls_are_judged_at_p99() {
    let (_, facts) = run(|_| ());
    let stalled = |above| {
        let delays = [vec![10.0; 1000 - above], vec![11.0; above]].concat();
        Generator::new(&facts, delays).saturated().unwrap().is_some()
    };
    assert_eq!([stalled(9), stalled(10)], [false, true]);
    let late = |p99_ns, count| Some(Spread { count, p50_ns: MS, p99_ns, max_ns: p99_ns });
    let turns = |p99_ns, count| said(move |observed| observed.turns = late(p99_ns, count)).is_some();
    assert_eq!([turns(10 * MS, 368), turns(10 * MS + 1, 368), turns(10 * MS + 1, 367)], [false, true, false]);
    // Without samples of the I/O thread's loop, those of the canary, a thread that only sleeps, are used
    // instead.
    let wakes = |p99_ns, count| {
        let change = move |observed: &mut Observed| (observed.turns, observed.wakes) = (None, late(p99_ns, count));
        said(change).is_some()
    };
    assert_eq!([wakes(10 * MS, 368), wakes(10 * MS + 1, 368), wakes(10 * MS + 1, 367)], [false, true, false]);
}

#[test]
fn what_is_not_known_is_not_checked() {
    let unchecked = |change: &dyn Fn(&mut Facts)| {
        let (_, mut facts) = run(|_| ());
        change(&mut facts);
        Generator::new(&facts, vec![]).unchecked()
    };
    assert_eq!(unchecked(&|_| ()), None);
    let no_canary = |facts: &mut Facts| {
        let observed = facts.observed.as_mut().unwrap();
        (observed.turns, observed.wakes) = (None, observed.wakes.map(|wakes| Spread { count: 367, ..wakes }));
    };
    assert!(unchecked(&no_canary).unwrap().starts_with("the window is too short to judge stalls"));
    assert!(unchecked(&|facts| facts.observed = None).unwrap().starts_with("read delays are not known"));
    let nothing = Facts::default();
    assert!(Generator::new(&nothing, vec![]).saturated().is_err());
}
