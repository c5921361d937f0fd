//! A run of the engine and its rows.

use std::path::PathBuf;

use sweepline::rows::{RequestRow, Table, read_requests};

use crate::child::{self, Done, Order};
use crate::engine;

/// A run that the engine has executed and committed; deleted on drop.
pub struct Run {
    /// The cost of the run.
    pub done: Done,
    /// The folder of the results.
    pub dir: PathBuf,
    _folder: tempfile::TempDir,
}

impl Run {
    /// Executes the first run of `plan` in a child; its request ids start with `id_prefix`.
    pub fn make(port: u16, plan: String, id_prefix: &str) -> Run {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let results = folder.path().join("results");
        let runs = results.join("runs");
        let done = child::run(&Order::Engine(engine::Order { plan, port, results, id_prefix: id_prefix.to_owned() }));
        assert_eq!(done.seen.failed, 0, "requests failed");
        let run = std::fs::read_dir(runs).expect("runs").next().expect("a committed run").expect("an entry");
        Run { done, dir: run.path(), _folder: folder }
    }

    /// Returns the rows of the run, ordered by request number.
    pub fn rows(&self) -> Vec<RequestRow> {
        let (_, mut rows) = read_requests(&self.dir.join(Table::Requests.file())).expect("sealed rows");
        rows.sort_by_key(|row| row.request);
        rows
    }
}
