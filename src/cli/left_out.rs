//! Results that an answer is made without, because they are damaged or cannot be read. One bad run stops no command, and is
//! never left out silently: it is named on stderr, once, and the command exits with 5.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::cli::colour::{Colour, When};
use crate::cli::failure::{Exit, Failure};
use crate::store::StoreError;

/// The results that were left out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    named: RefCell<BTreeSet<String>>,
    any: Cell<bool>,
}

impl LeftOut {
    /// What was read; an error is named, and its run left out.
    pub(super) fn take<T>(&self, read: Result<T, StoreError>) -> Option<T> {
        read.map_err(|error| self.name(error)).ok()
    }

    /// Names what is wrong with a run.
    pub(super) fn name(&self, error: StoreError) {
        self.any.set(true);
        if self.named.borrow_mut().insert(error.to_string()) {
            let _ = Failure::Store(error).report(Colour { when: When::Never });
        }
    }

    /// Whether a result was left out.
    pub(super) fn any(&self) -> bool {
        self.any.get()
    }

    /// That nothing is left to answer from, where that is so because of what was left out.
    pub(crate) fn nothing_left(&self) -> Result<(), Failure> {
        if self.any() { Err(Failure::Said(Exit::Store)) } else { Ok(()) }
    }

    /// How the command ends: what would be done well without them is not.
    pub(super) fn exit(&self, exit: Exit) -> Exit {
        if self.any() && exit == Exit::Done { Exit::Store } else { exit }
    }
}
