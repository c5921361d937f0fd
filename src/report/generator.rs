//! Describes the load generator of a run in a few lines.

use crate::analysis::quantile;
use crate::plan::Percentile;
use crate::rows::{Facts, MachineTime, Observed, Pauses, Spread, Standstill, ThreadTime, Worker};
use crate::units::text::counted;

use super::format::{digits, fill, plain};

/// Renders the description; returns an empty string if nothing was recorded.
pub(super) fn block(facts: &Facts) -> String {
    if !facts.workers.is_empty() {
        return workers(facts);
    }
    let Some(observed) = &facts.observed else { return String::new() };
    let lines = [
        Some(("engine", engine(facts))),
        Some(("cpu", cpu(observed, facts.client_cores))),
        waited(observed).map(|text| ("waited", text)),
        observed.others_ns().zip(observed.machine).map(|(others, machine)| ("others", held(observed, others, machine))),
        observed.turns.map(|turns| ("loop", format!("{} late", spread(&turns)))),
        observed.wakes.map(|wakes| ("wake-ups", format!("{} late", spread(&wakes)))),
        facts.pauses.map(|pauses| ("pauses", stood_still(facts, &pauses))),
        observed.lateness.map(|lateness| ("lateness", spread(&lateness))),
        observed.read_delay.map(|delay| ("read delay", spread(&delay))),
        Some(("writer", writer(observed))),
    ];
    let lines = lines.into_iter().flatten().map(|(title, text)| fill(&format!("  {title:<10}  "), 14, &text));
    std::iter::once("generator in the window\n".to_owned()).chain(lines).collect()
}

/// Renders a line for each process that sent a share of the load.
fn workers(facts: &Facts) -> String {
    let line = |worker: &Worker| {
        let share = |cpu: u64| percent(cpu as f64 / worker.monotonic_ns.max(1) as f64);
        let clock = worker.clock;
        let said = [
            Some(counted(worker.requests, "request")),
            worker.cpu_ns.map(|cpu| format!("{} of a core", share(cpu))),
            worker
                .observed
                .as_ref()
                .and_then(|observed| observed.lateness)
                .map(|late| format!("late {}", spread(&late))),
            Some(format!("clock known to within {} ms", millis(clock.uncertainty_ns))),
            Some(format!("drift {} ms", millis(clock.drift_ns.unsigned_abs()))),
        ];
        let said: Vec<String> = said.into_iter().flatten().collect();
        fill(
            &format!("  {:<10}  ", plain(&worker.name)),
            14,
            &format!("on {}: {}", plain(&worker.host), said.join(", ")),
        )
    };
    std::iter::once("workers\n".to_owned()).chain(facts.workers.iter().map(line)).collect()
}

/// Describes the generator's settings: `3 threads, timer spin`.
fn engine(facts: &Facts) -> String {
    let threads = facts.client_threads;
    format!("{}, timer {}", counted(threads, "thread"), plain(&facts.client_timer))
}

/// Describes the CPU time: `io 8.00%, writer 1.00% of a core; in all 10.0% of 2 cores`.
fn cpu(observed: &Observed, cores: u32) -> String {
    let threads = each(observed, |thread| Some(thread.cpu_ns));
    let all = observed.share(observed.process_cpu_ns) / f64::from(cores.max(1));
    format!("{threads} of a core; in all {} of {}", percent(all), counted(cores, "core"))
}

fn waited(observed: &Observed) -> Option<String> {
    let threads = each(observed, |thread| thread.wait_ns);
    (!threads.is_empty()).then(|| format!("{threads} of the time for a core"))
}

fn each(observed: &Observed, of: impl Fn(&ThreadTime) -> Option<u64>) -> String {
    let share = |thread: &ThreadTime| {
        let nanos = of(thread)?;
        Some(format!("{} {}", plain(&thread.name), percent(observed.share(nanos))))
    };
    observed.threads.iter().filter_map(share).collect::<Vec<_>>().join(", ")
}

fn held(observed: &Observed, others: u64, machine: MachineTime) -> String {
    let of_machine = |nanos| percent(observed.share(nanos) / f64::from(machine.cores.max(1)));
    let stolen = format!(", and the hypervisor {}", of_machine(machine.stolen_ns));
    let stolen = if machine.stolen_ns > 0 { stolen } else { String::new() };
    format!("used {} of the machine's {} cores{stolen}", of_machine(others), machine.cores)
}

fn spread(spread: &Spread) -> String {
    let at = |percentile: Percentile, nanos: u64| {
        let (n, need) = (spread.count, quantile::need(percentile));
        let few = if n < quantile::unmarked_from(percentile) { " (few samples)" } else { "" };
        if n < need { format!("n/a (n={n} < {need})") } else { format!("{}{few}", millis(nanos)) }
    };
    let (p50, p99) = (at(Percentile::P50, spread.p50_ns), at(Percentile::P99, spread.p99_ns));
    format!("p50 {p50}, p99 {p99}, max {} ms", millis(spread.max_ns))
}

/// Describes the pauses of the process: `stopped 1 time, up to 1003 ms, 20.1% of the window; no core 2 times,
/// up to 170 ms, 6.00% of the window`.
fn stood_still(facts: &Facts, pauses: &Pauses) -> String {
    let window = facts.windows.measure_end_ns.saturating_sub(facts.windows.measure_start_ns);
    let said = |(what, kind): (&str, Standstill)| {
        let Standstill { count, in_window_ns, longest_ns } = kind;
        let (times, longest) = (if count == 1 { "time" } else { "times" }, longest_ns as f64 / 1e6);
        let share = percent(in_window_ns as f64 / window.max(1) as f64);
        format!("{what} {count} {times}, up to {longest:.0} ms, {share} of the window")
    };
    let kinds = [("stopped", pauses.stopped), ("no core", pauses.starved)];
    let told: Vec<String> = kinds.into_iter().filter(|(_, kind)| kind.count > 0).map(said).collect();
    if told.is_empty() { "never for 100 ms or more".to_owned() } else { told.join("; ") }
}

fn millis(nanos: u64) -> String {
    digits(nanos as f64 / 1e6)
}

fn writer(observed: &Observed) -> String {
    format!("at most {} of {} batches waited", observed.writer_backlog_max, observed.writer_backlog_limit)
}

fn percent(share: f64) -> String {
    format!("{}%", digits(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::Run;

    #[test]
    fn the_block_of_a_quiet_generator() {
        let (_, facts) = Run::default().make();
        insta::assert_snapshot!(block(&facts), @r"
        generator in the window
          engine      1 thread, timer timerfd
          cpu         io 8.00%, canary 0.200%, writer 1.00%, content 0.500% of a core; in all 5.00% of 2
                      cores
          waited      io 1.00%, canary 0.000%, writer 0.000%, content 0.000% of the time for a core
          others      used 15.0% of the machine's 2 cores
          loop        p50 0.030, p99 0.200, max 4.00 ms late
          wake-ups    p50 0.008, p99 0.090, max 2.50 ms late
          pauses      never for 100 ms or more
          lateness    p50 0.020, p99 0.021, max 0.025 ms
          writer      at most 2 of 1024 batches waited
        ");
        assert_eq!(block(&Facts { observed: None, ..facts }), "");
    }

    #[test]
    fn what_stood_still() {
        let (_, facts) = Run::default().make();
        let stopped = Standstill { count: 1, in_window_ns: 1_003_000_000, longest_ns: 1_003_000_000 };
        let starved = Standstill { count: 2, in_window_ns: 300_000_000, longest_ns: 170_000_000 };
        let both =
            "stopped 1 time, up to 1003 ms, 10.0% of the window; no core 2 times, up to 170 ms, 3.00% of the window";
        assert_eq!(stood_still(&facts, &Pauses { stopped, starved }), both);
        assert_eq!(stood_still(&facts, &Pauses::default()), "never for 100 ms or more");
    }

    #[test]
    fn percentiles_of_few_delays_say_so() {
        let of = |count| super::spread(&Spread { count, p50_ns: 1_000_000, p99_ns: 2_000_000, max_ns: 3_000_000 });
        assert_eq!(of(5), "p50 n/a (n=5 < 6), p99 n/a (n=5 < 368), max 3.00 ms");
        assert_eq!(of(367), "p50 1.00, p99 n/a (n=367 < 368), max 3.00 ms");
        assert_eq!([of(368), of(999)], ["p50 1.00, p99 2.00 (few samples), max 3.00 ms"; 2]);
        assert_eq!(of(1_000), "p50 1.00, p99 2.00, max 3.00 ms");
    }

    #[test]
    fn the_block_of_a_crowded_machine_fits_the_page() {
        let (_, mut facts) = Run::default().make();
        let observed = facts.observed.as_mut().unwrap();
        observed.read_delay = observed.lateness;
        observed.machine.as_mut().unwrap().stolen_ns = observed.for_ns / 4;
        observed.threads.extend((0..12).map(|n| ThreadTime { name: format!("io-{n}"), ..ThreadTime::default() }));
        let text = block(&facts);
        assert!(text.contains("read delay  p50 0.020") && text.contains("and the hypervisor 12.5%"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
