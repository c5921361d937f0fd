//! Width of output for people: the width of the terminal, or `COLUMNS`, but at most [`MOST`]; [`MOST`] if
//! neither is known.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// Maximum width of tables and paragraphs, because longer lines are hard to read.
pub(crate) const MOST: u16 = 100;

/// Minimum width for any layout.
const LEAST: u16 = 40;

/// Width of the screen; [`MOST`] until it is detected.
static COLUMNS: AtomicU16 = AtomicU16::new(MOST);

/// Whether output must fit a screen, because stdout is a terminal or `COLUMNS` is set.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// Detects the width of the screen, from `COLUMNS` or else from the terminal on stdout. Everything that is
/// printed from then on fits it.
pub(crate) fn look() {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<u16>().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col);
    let columns = said.filter(|columns| *columns > 0).or_else(terminal).filter(|columns| *columns > 0);
    IS_LIMITED.store(columns.is_some(), Ordering::Relaxed);
    COLUMNS.store(columns.unwrap_or(MOST).clamp(LEAST, MOST), Ordering::Relaxed);
}

/// Width available to output for people.
pub(crate) fn columns() -> usize {
    #[cfg(test)]
    if let Some(columns) = tests::narrowed() {
        return columns;
    }
    usize::from(COLUMNS.load(Ordering::Relaxed))
}

/// Whether every line must fit the screen; output to a pipe need not.
pub(crate) fn is_limited() -> bool {
    #[cfg(test)]
    if tests::narrowed().is_some() {
        return true;
    }
    IS_LIMITED.load(Ordering::Relaxed)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        static NARROWED: Cell<Option<usize>> = const { Cell::new(None) };
    }

    pub(super) fn narrowed() -> Option<usize> {
        NARROWED.get()
    }

    /// Calls `make` with a screen of this width.
    pub(crate) fn on_screen<T>(columns: usize, make: impl FnOnce() -> T) -> T {
        NARROWED.set(Some(columns));
        let made = make();
        NARROWED.set(None);
        made
    }
}
