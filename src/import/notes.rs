//! What goes along with all that is read of commands.

use std::cell::RefCell;

use super::draft::Listed;
use super::secrets::Secrets;

/// What must not be repeated, and what did not get into the plan.
pub(super) struct Notes<'a> {
    pub(super) secrets: &'a Secrets,
    pub(super) listed: RefCell<Vec<Listed>>,
}

impl Notes<'_> {
    /// Lists something that has no counterpart.
    pub(super) fn missing(&self, what: &str, why: &str, line: usize) {
        self.listed.borrow_mut().push(Listed::missing(self.secrets.hide(what), self.secrets.hide(why), line));
    }

    /// Lists something that is done in another way.
    pub(super) fn needless(&self, what: &str, why: &str, line: usize) {
        self.listed.borrow_mut().push(Listed::needless(self.secrets.hide(what), self.secrets.hide(why), line));
    }
}
