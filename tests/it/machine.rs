//! Whether the machine let a test work. Most tests here measure, and what they assert (that a run is valid, which requests it sent, that an
//! objective is held) rests on a client that gets the CPU when it asks for it. On two cores that tests share with each other and with strangers
//! it sometimes does not, and then the program says so rightly and the test fails for nothing.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How late a thread that sleeps may be woken on a machine that is called quiet: a client's own limit for `client_late` is 10 ms and less.
const LATE: Duration = Duration::from_millis(5);
/// Of the time of a test, how much some task may wait for a CPU on a machine that is called quiet (`some` of Linux's `/proc/pressure/cpu`).
const WAITING: f64 = 0.05;
/// How often a test is run at most.
const TIMES: usize = 4;

/// Runs a test; where it fails and the machine was busy meanwhile, again, and then beside no other timed test. A defect fails each time, and on a
/// quiet machine at once.
pub fn again_where_busy(test: impl Fn()) {
    static BESIDE: RwLock<()> = RwLock::new(());
    // Nothing is shared between two tries: a test has a folder and servers of its own.
    for time in 1.. {
        let beside = (time == 1).then(|| BESIDE.read().unwrap_or_else(PoisonError::into_inner));
        let alone = (time > 1).then(|| BESIDE.write().unwrap_or_else(PoisonError::into_inner));
        let watch = Watch::begin();
        let Err(why) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let Some(busy) = watch.busy().filter(|_| time < TIMES) else { resume_unwind(why) };
        eprintln!("\nfailed on a busy machine ({busy}): once more after {time} of {TIMES}\n");
        drop((beside, alone));
    }
}

/// Nanoseconds that the thread that watches was woken too late by, all together, counting only what was more than [`LATE`].
static OVERSLEPT: AtomicU64 = AtomicU64::new(0);

/// What the machine was like since a moment.
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

    /// Why the machine is not called quiet.
    fn busy(&self) -> Option<String> {
        let overslept = Duration::from_nanos(OVERSLEPT.load(Ordering::Relaxed) - self.overslept);
        if overslept > Duration::ZERO {
            return Some(format!("a sleeping thread was woken {overslept:?} late"));
        }
        let waited = waited_for_cpu()?.checked_sub(self.waited?)? as f64 / self.since.elapsed().as_micros() as f64;
        (waited > WAITING).then(|| format!("{:.0} % of the time something waited for a CPU", waited * 100.0))
    }
}

/// Microseconds since the machine's start in which some task waited for a CPU; none where the system does not count them.
fn waited_for_cpu() -> Option<u64> {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    pressure.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[test]
fn a_test_that_fails_on_a_busy_machine_is_run_again_and_a_defect_fails_each_time() {
    use std::cell::Cell;

    let spun = |tries: &Cell<usize>, holds_at: usize| {
        tries.set(tries.get() + 1);
        // Busy: more threads than there are cores, until something was seen to wait.
        let (watch, begin) = (&Watch::begin(), &Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..4 * std::thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(|| while watch.busy().is_none() && begin.elapsed() < crate::lab::DEADLINE {});
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
