//! Tables in Markdown, and checks of the promises that they show.

/// A table.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Table {
        Table { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn print(&self) {
        for (at, row) in self.rows.iter().enumerate() {
            println!("| {} |", row.join(" | "));
            if at == 0 {
                println!("|{}", "---|".repeat(row.len()));
            }
        }
        println!();
    }
}

/// Formats a share as whole percent; `–` if there is nothing to count.
pub fn percent(hits: u64, of: u64) -> String {
    match of {
        0 => "–".to_owned(),
        _ => format!("{:.0}", 100.0 * hits as f64 / of as f64),
    }
}

/// Formats a share as percent with one decimal; `–` if there is nothing to count.
pub fn per_mille(hits: u64, of: u64) -> String {
    match of {
        0 => "–".to_owned(),
        _ => format!("{:.1}", 100.0 * hits as f64 / of as f64),
    }
}

/// The promises of a part's cells, and the cells that break them.
#[derive(Default)]
pub struct Promises {
    broken: Vec<String>,
}

/// The probability that a cell which just keeps its promise is reported as breaking it. It is small because
/// there are about a thousand cells.
const CHANCE: f64 = 0.001;

impl Promises {
    /// Checks that a share is at least this large, within chance.
    pub fn at_least(&mut self, what: impl Fn() -> String, hits: u64, of: u64, share: f64) {
        use sweepline::analysis::binomial::at_most;
        if of > 0 && at_most(of, share, hits) < CHANCE {
            self.broken.push(format!("{}: {hits} of {of}, at least {:.0} % was promised", what(), 100.0 * share));
        }
    }

    /// Checks that a share is at most this large, within chance.
    pub fn at_most(&mut self, what: impl Fn() -> String, hits: u64, of: u64, share: f64) {
        use sweepline::analysis::binomial::at_least;
        if of > 0 && at_least(of, share, hits) < CHANCE {
            self.broken.push(format!("{}: {hits} of {of}, at most {:.0} % was promised", what(), 100.0 * share));
        }
    }

    /// Prints the broken promises; returns whether there were none.
    pub fn print(&self) -> bool {
        if self.broken.is_empty() {
            println!("Every promise is kept, but for chance ({CHANCE}).");
        }
        self.broken.iter().for_each(|line| println!("- {line}"));
        println!();
        self.broken.is_empty()
    }
}
