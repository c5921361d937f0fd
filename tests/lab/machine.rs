//! Detects tests that failed because the machine was busy. Most tests here measure, and their assertions
//! (that a run is valid, which requests it sent, that an objective is met) require a client that gets the
//! CPU when it needs it. On two cores that tests share with each other and with other users this is
//! sometimes not the case. The program then reports that correctly, and the test fails without a defect.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How late a sleeping thread may be woken on a quiet machine. The client's limit for `client_late` is 10
/// ms or less.
const LATE: Duration = Duration::from_millis(5);
/// The share of a test's time in which some task may wait for a CPU on a quiet machine (`some` in Linux's
/// `/proc/pressure/cpu`).
const WAITING: f64 = 0.05;
/// The maximum number of tries of a test.
const TIMES: usize = 4;

/// Runs a test. If it fails while the machine is busy, runs it again without other timed tests in parallel.
/// A defect makes it fail every time, and immediately on a quiet machine.
pub fn again_where_busy(test: impl Fn()) {
    static BESIDE: RwLock<()> = RwLock::new(());
    // Two tries do not share anything, because a test has its own folder and servers.
    for time in 1.. {
        let beside = (time == 1).then(|| BESIDE.read().unwrap_or_else(PoisonError::into_inner));
        let alone = (time > 1).then(|| BESIDE.write().unwrap_or_else(PoisonError::into_inner));
        let watch = Watch::begin();
        let Err(why) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let Some(busy) = watch.busy().filter(|_| time < TIMES) else { resume_unwind(why) };
        eprintln!("\nfailed on a busy machine ({busy}): trying again after {time} of {TIMES}\n");
        drop((beside, alone));
    }
}

/// The total lateness of the watching thread's wake-ups in nanoseconds, counting only the part above
/// [`LATE`].
static OVERSLEPT: AtomicU64 = AtomicU64::new(0);

/// The state of the machine since an instant.
struct Watch {
    since: Instant,
    overslept: u64,
    waited: Option<u64>,
}

impl Watch {
    fn begin() -> Watch {
        static WATCHING: Once = Once::new();
        WATCHING.call_once(|| {
            std::thread::spawn(|| {
                const NAP: Duration = Duration::from_millis(5);
                loop {
                    let begin = Instant::now();
                    std::thread::sleep(NAP);
                    let late = begin.elapsed().saturating_sub(NAP);
                    if late > LATE {
                        OVERSLEPT.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
                    }
                }
            });
        });
        Watch { since: Instant::now(), overslept: OVERSLEPT.load(Ordering::Relaxed), waited: waited_for_cpu() }
    }

    /// Returns why the machine is not quiet, if it is busy.
    fn busy(&self) -> Option<String> {
        let overslept = self.overslept();
        if overslept > Duration::ZERO {
            return Some(format!("a sleeping thread was woken {overslept:?} late"));
        }
        let waiting = self.waiting()?;
        (waiting > WAITING).then(|| format!("{:.0} % of the time something waited for a CPU", waiting * 100.0))
    }

    /// Returns how late the watching thread was woken, in total.
    fn overslept(&self) -> Duration {
        Duration::from_nanos(OVERSLEPT.load(Ordering::Relaxed) - self.overslept)
    }

    /// Returns the share of the time in which something waited for a CPU.
    fn waiting(&self) -> Option<f64> {
        let waited = waited_for_cpu()?.checked_sub(self.waited?)?;
        Some(waited as f64 / self.since.elapsed().as_micros() as f64)
    }
}

/// Returns the microseconds since boot in which some task waited for a CPU; `None` if the system does not
/// count them.
fn waited_for_cpu() -> Option<u64> {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    pressure.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Uses a CPU for this long. Reading the pressure all the time would not: its readers wait for each other.
fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

#[test]
fn a_test_that_fails_on_a_busy_machine_is_run_again_and_a_defect_fails_each_time() {
    use std::cell::Cell;

    let spun = |tries: &Cell<usize>, holds_at: usize| {
        tries.set(tries.get() + 1);
        // Makes the machine busy with more threads than cores, until it is so beyond doubt: the share of the
        // time in which something waited falls again while the threads end one after another.
        let (watch, begin) = (&Watch::begin(), &Instant::now());
        let is_pressed = || watch.waiting().is_some_and(|share| share > 4.0 * WAITING);
        let clearly_busy =
            || begin.elapsed() > Duration::from_millis(500) && (watch.overslept() > Duration::ZERO || is_pressed());
        std::thread::scope(|scope| {
            for _ in 0..4 * std::thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(|| {
                    while !clearly_busy() && begin.elapsed() < crate::lab::DEADLINE {
                        spin(Duration::from_millis(20));
                    }
                });
            }
        });
        assert!(tries.get() >= holds_at, "a failure");
    };
    let tries = Cell::new(0);
    again_where_busy(|| spun(&tries, 3));
    assert_eq!(tries.get(), 3);
    let tries = Cell::new(0);
    let defect = catch_unwind(AssertUnwindSafe(|| again_where_busy(|| spun(&tries, usize::MAX))));
    assert!(defect.is_err());
    assert_eq!(tries.get(), TIMES);
}
