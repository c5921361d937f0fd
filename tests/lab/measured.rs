//! The harness of `cargo test --test measured`: tests that measure, and that a machine without a free core
//! can make fail. A test that fails while the machine was busy has shown nothing: it is listed as *could not
//! be judged* and counted as ignored. It is never run again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// How late a sleeping thread may be woken on a quiet machine. The client's limit for `client_late` is 10
/// ms or less.
const LATE: Duration = Duration::from_millis(5);
/// The share of a test's time in which some task may wait for a CPU on a quiet machine (`some` in Linux's
/// `/proc/pressure/cpu`).
const WAITING: f64 = 0.05;

/// One test of the suite. [`measured_tests!`](crate::measured_tests) registers it.
pub struct MeasuredTest {
    /// Module and function.
    pub name: &'static str,
    /// The function, which panics if the test fails.
    pub run: fn(),
}

inventory::collect!(MeasuredTest);

/// Registers functions of this module as tests of the measured suite.
#[macro_export]
macro_rules! measured_tests {
    ($($name:ident),* $(,)?) => {
        $($crate::inventory::submit! {
            $crate::measured::MeasuredTest { name: concat!(module_path!(), "::", stringify!($name)), run: $name }
        })*
    };
}

/// Runs the registered tests that the command line selects.
pub fn main() -> ExitCode {
    let (filters, options) = filters_and_options(std::env::args().skip(1));
    let mut arguments = Arguments::from_iter(std::iter::once("measured".to_owned()).chain(options));
    // Tests that measure at the same time disturb each other, but most of them wait most of the time.
    arguments.test_threads.get_or_insert(2);
    let mut tests: Vec<&MeasuredTest> = inventory::iter::<MeasuredTest>().collect();
    tests.retain(|test| filters.is_empty() || filters.iter().any(|filter| test.name.contains(filter.as_str())));
    tests.sort_by_key(|test| test.name);
    let trial = |test: &MeasuredTest| {
        let (name, run) = (test.name.trim_start_matches("measured::"), test.run);
        Trial::ignorable_test(name, move || judge(run))
    };
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    if conclusion.num_ignored > 0 {
        eprintln!(
            "{} tests could not be judged, because the machine was busy. Run them again on a quiet machine.",
            conclusion.num_ignored
        );
    }
    conclusion.exit_code()
}

/// Divides a command line into names of tests, of which Rust's own harness takes any number, and options.
fn filters_and_options(words: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>) {
    const WITH_VALUE: [&str; 5] = ["--test-threads", "--skip", "--format", "--logfile", "--color"];
    let (mut filters, mut options) = (Vec::new(), Vec::<String>::new());
    for word in words {
        let is_value = options.last().is_some_and(|option| WITH_VALUE.contains(&option.as_str()));
        if is_value || word.starts_with('-') {
            options.push(word);
        } else {
            filters.push(word);
        }
    }
    (filters, options)
}

/// Runs a test. If it fails while the machine is busy, it could not be judged.
fn judge(run: fn()) -> Result<Completion, Failed> {
    let watch = Watch::begin();
    let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else { return Ok(Completion::Completed) };
    match watch.busy() {
        Some(busy) => Ok(Completion::Ignored { reason: Some(format!("could not be judged: {busy}")) }),
        None => std::panic::resume_unwind(panic),
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

/// What the harness makes of tests on a machine that is busy, and on any machine. Registered by the suite.
pub fn a_failure_on_a_busy_machine_is_no_judgement() {
    fn passes() {}
    fn fails_while_the_machine_is_busy() {
        let begin = Instant::now();
        // More threads than cores use the CPU until tasks have waited for it beyond doubt.
        let watch = &Watch::begin();
        let is_busy = || watch.waiting().is_some_and(|share| share > 4.0 * WAITING);
        std::thread::scope(|scope| {
            for _ in 0..4 * std::thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(|| {
                    while (begin.elapsed() < Duration::from_millis(500) || !is_busy())
                        && begin.elapsed() < crate::DEADLINE
                    {
                        spin(Duration::from_millis(20));
                    }
                });
            }
        });
        panic!("a figure is wrong");
    }
    assert!(matches!(judge(passes), Ok(Completion::Completed)));
    let Ok(Completion::Ignored { reason: Some(reason) }) = judge(fails_while_the_machine_is_busy) else {
        panic!("a failure on a busy machine was judged")
    };
    assert!(reason.starts_with("could not be judged: "), "{reason}");
}

/// Uses a CPU for this long. Reading the pressure all the time would not: its readers wait for each other.
fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}
