//! Reads the kernel's statistics of threads, of this process and of the machine. The kernel's files are
//! opened once and read repeatedly, so that a process without free file descriptors can still read its own
//! statistics.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::libc;
use nix::time::{ClockId, clock_gettime};

/// A handle to the statistics of one thread of this process.
#[derive(Debug)]
pub(crate) struct Thread {
    clock: ClockId,
    schedstat: Option<File>,
}

/// The CPU usage of one thread since the thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time in which the thread could have run but had no core, in nanoseconds; `None` if unknown. A wait
    /// is counted when it is over.
    pub wait_ns: Option<u64>,
}

/// Requests the scheduler's shortest time slices for a thread that sends and reads (Linux 6.12 and later,
/// sched_setattr(2)). Such a thread works for microseconds and then waits. With short slices it gets a core
/// soon after it wakes, while another thread could otherwise keep the core for milliseconds. This does not
/// increase its share of a core, and needs no privilege. It is meant for open loops, which must send at
/// exact instants. It causes more context switches, which cost a tenth of the CPU if a closed loop
/// saturates the server.
#[expect(unsafe_code, reason = "no safe call sets the slice of a thread")]
pub(crate) fn ask_for_short_slices() {
    /// `struct sched_attr`; the slice of an ordinary thread is `runtime`.
    #[derive(Default)]
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SHORTEST_NS: u64 = 100_000;
    // SAFETY: this call only queries the scheduling policy.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy != libc::SCHED_OTHER {
        // The user has already set the scheduling of this process.
        return;
    }
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let size = size_of::<Attributes>() as u32;
    let attributes = Attributes { size, nice, runtime: SHORTEST_NS, ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of a structure with the kernel's layout, and nothing else. An
    // older kernel leaves the slice unchanged. Requests are then sent slightly later, which the run's
    // lateness shows.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Lowers the priority of the calling thread below that of the threads that send and read. With few cores,
/// the calling thread could otherwise occupy a core for milliseconds while a request is due.
pub(crate) fn step_back() {
    /// The priority as a nice value. It gives the thread a third of the other threads' share if all need a
    /// core, which is enough to keep up with them.
    const NICE: i32 = 5;
    // Lowering the priority is always allowed. Even if it failed, the run would only be slightly less
    // punctual.
    let _ = rustix::process::setpriority_process(None, NICE);
}

impl Thread {
    /// Returns a handle to the calling thread.
    pub(crate) fn current() -> Thread {
        // On Linux, the id of a thread's CPU clock consists of the complement of the thread's id and three
        // low bits that mean "of a thread, by the scheduler's count". glibc's pthread_getcpuclockid computes
        // it in this way.
        const SCHEDULED_OF_THREAD: i32 = 0b110;
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let clock = ClockId::from_raw((!id << 3) | SCHEDULED_OF_THREAD);
        Thread { clock, schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Returns the thread's CPU usage until now; `None` once the thread has ended.
    pub(crate) fn used(&self) -> Option<Used> {
        let time = clock_gettime(self.clock).ok()?;
        let cpu_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
        // The fields are the time on a core, the time waiting for a core, and the number of times that the
        // thread was scheduled.
        let wait_ns = self.schedstat.as_ref().and_then(|file| numbers(file, |fields| fields.nth(1)));
        Some(Used { cpu_ns, wait_ns })
    }
}

/// The kernel's statistics of the machine and of this process.
#[derive(Debug)]
pub(crate) struct Kernel {
    stat: Option<File>,
    statm: Option<File>,
    tick_ns: u64,
    page: u64,
}

/// CPU time of the whole machine since it started, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    /// CPU time used by any process or the kernel itself.
    pub busy_ns: u64,
    /// CPU time that the hypervisor gave to other guests.
    pub stolen_ns: u64,
}

impl Kernel {
    /// Opens the kernel files that are available.
    pub(crate) fn open() -> Kernel {
        Kernel {
            stat: File::open("/proc/stat").ok(),
            statm: File::open("/proc/self/statm").ok(),
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page: rustix::param::page_size() as u64,
        }
    }

    /// Returns the machine's CPU time; `None` if the kernel does not report it.
    pub(crate) fn machine(&self) -> Option<Machine> {
        numbers(self.stat.as_ref()?, |fields| {
            // The fields are user, nice, system, idle, iowait, irq, softirq and steal. The time of guests
            // is already included in user.
            let mut ticks = [0; 8];
            let read = ticks.iter_mut().zip(fields).map(|(tick, field)| *tick = field).count();
            let [user, nice, system, _, _, irq, softirq, steal] = ticks;
            let busy = user + nice + system + irq + softirq;
            (read == 8).then_some(Machine { busy_ns: busy * self.tick_ns, stolen_ns: steal * self.tick_ns })
        })
    }

    /// Returns the resident memory of this process, in bytes; `None` if the kernel does not report it.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        numbers(self.statm.as_ref()?, |fields| fields.nth(1)).map(|pages| pages * self.page)
    }
}

/// Returns the number of online cores of the machine, including cores that this process may not
/// use.
pub(crate) fn machine_cores() -> u32 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.trim().parse::<u32>().ok()?.checked_sub(first.trim().parse().ok()?)? + 1)
    };
    online.split(',').map(count).sum::<Option<u32>>().filter(|cores| *cores > 0).unwrap_or_else(usable_cores)
}

/// Returns the number of cores that this process may use.
pub(crate) fn usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Passes the numbers in the first line of a kernel file to `read`, without allocating, and returns its
/// result. `None` if the file cannot be read.
fn numbers<T>(file: &File, read: impl FnOnce(&mut dyn Iterator<Item = u64>) -> Option<T>) -> Option<T> {
    let mut buffer = [0; 256];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?;
    read(&mut text.lines().next()?.split_ascii_whitespace().filter_map(|field| field.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sees_its_own_time() {
        let thread = Thread::current();
        let before = thread.used().unwrap();
        let mut sum = 0u64;
        let busy = std::iter::repeat_with(|| {
            (0..100_000u64).for_each(|n| sum = std::hint::black_box(sum.wrapping_add(n)));
            thread.used().unwrap()
        });
        let after = busy.into_iter().find(|used| used.cpu_ns > before.cpu_ns + 5_000_000).unwrap();
        assert!(after.wait_ns >= before.wait_ns);
    }

    #[test]
    fn a_thread_that_has_ended_is_not_known() {
        let thread = std::thread::spawn(Thread::current).join().unwrap();
        // The kernel may take a moment to remove the thread's statistics after it was joined.
        while thread.used().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_machine_only_gets_older() {
        let kernel = Kernel::open();
        let (first, second) = (kernel.machine().unwrap(), kernel.machine().unwrap());
        assert!(second.busy_ns >= first.busy_ns && second.stolen_ns >= first.stolen_ns);
        assert!(kernel.resident_bytes().unwrap() > 1 << 20);
        assert!(machine_cores() >= 1 && usable_cores() >= 1);
    }
}
