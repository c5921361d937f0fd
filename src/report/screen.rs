//! How wide a text for people may be: as wide as the terminal, or as `COLUMNS` says, at most [`MOST`]; [`MOST`] where neither says
//! anything.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// Columns that no table and no paragraph goes beyond: longer lines are hard to read.
pub(crate) const MOST: u16 = 100;

/// The narrowest that anything is laid out for.
const LEAST: u16 = 40;

/// Columns of the screen; [`MOST`] until somebody has looked.
static COLUMNS: AtomicU16 = AtomicU16::new(MOST);

/// Whether there is a screen to fit: stdout is a terminal, or `COLUMNS` is set.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// Looks how wide the screen is: `COLUMNS`, then the terminal that stdout is. What is printed from here on fits it.
pub(crate) fn look() {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<u16>().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col);
    let columns = said.filter(|columns| *columns > 0).or_else(terminal).filter(|columns| *columns > 0);
    IS_LIMITED.store(columns.is_some(), Ordering::Relaxed);
    COLUMNS.store(columns.unwrap_or(MOST).clamp(LEAST, MOST), Ordering::Relaxed);
}

/// Columns that a text for people may take.
pub(crate) fn columns() -> usize {
    #[cfg(test)]
    if let Some(columns) = tests::narrowed() {
        return columns;
    }
    usize::from(COLUMNS.load(Ordering::Relaxed))
}

/// Whether every line must fit: what goes into a pipe need not.
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

    /// What `make` makes on a screen of so many columns.
    pub(crate) fn on_screen<T>(columns: usize, make: impl FnOnce() -> T) -> T {
        NARROWED.set(Some(columns));
        let made = make();
        NARROWED.set(None);
        made
    }
}
