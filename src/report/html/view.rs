//! The page as data: what the templates write. No text in it is HTML; the templates escape.

use serde::Serialize;

use super::chart::Drawing;
use crate::report::format::{digits, plain};

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// The plan's name.
    pub(super) title: String,
    /// What made it: program, version, instant.
    pub(super) made: String,
    /// What it shows first.
    pub(super) first: First,
    /// Its sections, those without data left out.
    pub(super) sections: Vec<Section>,
    /// What is not there, and why.
    pub(super) missing: Vec<Missing>,
}

/// The first screen.
#[derive(Debug, Serialize)]
pub(super) struct First {
    /// What was asked: hypotheses of the plan, or what it measures.
    pub(super) question: Vec<String>,
    /// What stands between a hypothesis and the answer; none without a hypothesis.
    pub(super) beside: Option<&'static str>,
    /// The answer in one sentence.
    pub(super) answer: String,
    /// What else there is to say, a sentence each.
    pub(super) more: Vec<String>,
    /// What must be known before it is believed.
    pub(super) caveats: Vec<String>,
    /// The objective; none where the plan has none.
    pub(super) objective: Option<String>,
    /// How many runs are valid, and how many are not.
    pub(super) trust: String,
    /// What was measured where.
    pub(super) places: Table,
}

/// One section.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// Its anchor.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// What is in it.
    pub(super) blocks: Vec<Block>,
}

/// A section that is not there.
#[derive(Debug, Serialize)]
pub(super) struct Missing {
    /// Its heading.
    pub(super) title: &'static str,
    /// Why.
    pub(super) why: String,
}

/// What a section came to: itself, or why it is missing.
pub(super) type Found = Result<Section, Missing>;

/// A part of a section.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Block {
    /// A heading below the section's.
    Heading {
        /// Its text.
        text: String,
    },
    /// A paragraph.
    Text {
        /// Its text.
        text: String,
    },
    /// Sentences, a line each.
    List {
        /// The sentences.
        items: Vec<String>,
    },
    /// Sentences behind a heading that is clicked.
    Folded {
        /// The heading.
        title: String,
        /// The sentences.
        items: Vec<String>,
    },
    /// Names with what is known of them.
    Facts {
        /// The pairs.
        facts: Vec<(String, String)>,
    },
    /// A table.
    Table {
        /// The table.
        table: Table,
    },
    /// Figures side by side.
    Figures {
        /// The figures.
        figures: Vec<Figure>,
    },
    /// Runs, each a part that is opened: HTML that `render` made before, so that its size was known.
    Runs {
        /// The parts.
        parts: Vec<String>,
    },
    /// Definitions, each with an anchor of its metric.
    Definitions {
        /// The definitions.
        definitions: Vec<Definition>,
    },
}

/// What a metric is.
#[derive(Debug, Serialize)]
pub(super) struct Definition {
    /// The metric's key.
    pub(super) key: &'static str,
    /// What people read.
    pub(super) title: &'static str,
    /// Unit and which way is better.
    pub(super) unit: String,
    /// What it is.
    pub(super) text: String,
}

/// A figure with its numbers.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    /// Its anchor, and the beginning of the names of files that are saved from it.
    pub(super) id: String,
    /// The finding.
    pub(super) title: String,
    /// What must be known to read it.
    pub(super) caption: Caption,
    /// The metric that it shows, to link its definition; none where it shows several.
    pub(super) metric: Option<Link>,
    /// What is drawn.
    pub(super) drawing: Drawing,
    /// The same as numbers.
    pub(super) table: Table,
}

/// What must be known to read a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Caption {
    /// What stands below the title: n, and whatever a reader would be misled without.
    pub(super) shown: Vec<String>,
    /// How it is drawn, one click away.
    pub(super) details: Vec<String>,
}

impl From<Vec<String>> for Caption {
    fn from(shown: Vec<String>) -> Caption {
        Caption { shown, details: Vec::new() }
    }
}

/// A link to the definition of a metric.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Link {
    /// The metric's key.
    pub(super) key: &'static str,
    /// What people read.
    pub(super) title: &'static str,
}

/// A table.
#[derive(Debug, Default, Serialize)]
pub(super) struct Table {
    /// What it holds.
    pub(super) caption: String,
    /// Its columns.
    pub(super) columns: Vec<Column>,
    /// Its rows.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Debug, Serialize)]
pub(super) struct Column {
    /// Its heading.
    pub(super) title: String,
    /// Whether it holds numbers.
    pub(super) numeric: bool,
}

/// A cell.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Cell {
    /// What is read.
    pub(super) text: String,
    /// The number in full, as exports have it, where the text has fewer digits.
    pub(super) value: Option<f64>,
    /// What its text says of a run or an objective, for its colour; the text says it too.
    pub(super) tone: Option<&'static str>,
    /// The anchor of the part that tells more.
    pub(super) link: Option<String>,
}

impl Table {
    /// An empty table; a heading that ends with `#` is of numbers.
    pub(super) fn new(caption: impl Into<String>, columns: &[&str]) -> Table {
        let column = |title: &&str| match title.strip_suffix('#') {
            Some(title) => Column { title: title.to_owned(), numeric: true },
            None => Column { title: (*title).to_owned(), numeric: false },
        };
        Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }
}

impl Cell {
    /// A text of others or ours.
    pub(super) fn text(text: &str) -> Cell {
        Cell { text: plain(text), ..Cell::default() }
    }

    /// A text that says how good something is.
    pub(super) fn toned(text: &str, tone: &'static str) -> Cell {
        Cell { tone: Some(tone), ..Cell::text(text) }
    }

    /// A number; `n/a` where it is not known.
    pub(super) fn number(value: Option<f64>) -> Cell {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Cell { text: digits(value), value: Some(value), ..Cell::default() },
            None => Cell::text("n/a"),
        }
    }

    /// A number from few samples.
    pub(super) fn marked(value: f64, few: bool) -> Cell {
        let cell = Cell::number(Some(value));
        if few { Cell { text: format!("{}*", cell.text), ..cell } } else { cell }
    }

    /// A number that is read as a person wrote it, like a load: its text says all of it.
    pub(super) fn exact(value: f64) -> Cell {
        Cell { text: value.to_string(), ..Cell::default() }
    }

    /// A count, likewise.
    pub(super) fn count(count: u64) -> Cell {
        Cell { text: count.to_string(), ..Cell::default() }
    }
}

/// What a state's or an answer's colour is called.
pub(super) fn tone(name: &str) -> &'static str {
    match name {
        "valid" | "holds" | "better" | "kept_up" => "good",
        "suspect" | "undecided" | "not_shown" | "excluded" => "doubt",
        "invalid" | "misses" | "worse" | "given up" | "saturated" | "unreadable" => "bad",
        _ => "plain",
    }
}
