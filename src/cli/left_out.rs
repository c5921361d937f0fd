//! Results that are excluded because they are damaged or cannot be read. A bad run does not stop a command,
//! but its exclusion is never silent: the run is named once on stderr, and the command exits with 5.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::cli::colour::{Colour, When};
use crate::cli::failure::{Exit, Failure};
use crate::store::StoreError;

/// The excluded results.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    named: RefCell<BTreeSet<String>>,
    any: Cell<bool>,
}

impl LeftOut {
    /// Returns a result that was read. If reading it failed, reports the error, excludes the run and
    /// returns `None`.
    pub(super) fn take<T>(&self, read: Result<T, StoreError>) -> Option<T> {
        read.map_err(|error| self.name(error)).ok()
    }

    /// Reports an error of a run.
    pub(super) fn name(&self, error: StoreError) {
        self.any.set(true);
        if self.named.borrow_mut().insert(error.to_string()) {
            let _ = Failure::Store(error).report(Colour { when: When::Never });
        }
    }

    /// Whether a result was excluded.
    pub(super) fn any(&self) -> bool {
        self.any.get()
    }

    /// Fails if results were excluded. Called by commands that have no result to show.
    pub(crate) fn nothing_left(&self) -> Result<(), Failure> {
        if self.any() { Err(Failure::Said(Exit::Store)) } else { Ok(()) }
    }

    /// Returns the exit status of the command: success becomes a failure if results were excluded.
    pub(super) fn exit(&self, exit: Exit) -> Exit {
        if self.any() && exit == Exit::Done { Exit::Store } else { exit }
    }
}
