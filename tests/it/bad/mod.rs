//! Difficult situations: the program reports them in rows and verdict, loses nothing, terminates, and keeps
//! its memory bounded.

mod crowd;
mod hostile;
mod mutants;
mod raw;
mod trouble;

use lab::{Ended, Lab, Running, peak_memory, wait_for};

const MB: u64 = 1 << 20;

/// A run that was observed until it ended.
struct Watched {
    ended: Ended,
    /// Its peak memory, in bytes.
    peak: u64,
}

/// Runs a plan until it ends, however it ends, and observes its memory.
fn watched(lab: &Lab, plan: &str) -> Watched {
    lab.write("plan.yaml", plan);
    watch(lab.start(&["run", "plan.yaml"]))
}

/// Observes a run until it ends.
fn watch(mut running: Running) -> Watched {
    let mut peak = 0;
    wait_for("the end of the run", || {
        peak = peak_memory(running.id()).unwrap_or(0).max(peak);
        running.has_ended().then_some(())
    });
    Watched { ended: running.end(), peak }
}

impl Watched {
    /// Asserts that the run was committed, valid or not, and used less than `most` bytes.
    fn is_committed_within(&self, most: u64) {
        let Watched { ended, peak } = self;
        assert!(matches!(ended.code, Some(0 | 3)), "{}{}", ended.stdout, ended.stderr);
        eprintln!("at most {} MB", peak / MB);
        assert!(*peak > 0 && *peak < most, "{} MB of memory", peak / MB);
    }
}
