//! The page as data, for the templates. No text in this data is HTML, except rendered parts of runs; the
//! templates escape all other texts.

use serde::Serialize;

use super::chart::Drawing;
use crate::report::format::{digits, plain};

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// The plan's name.
    pub(super) title: String,
    /// The program, its version and the time of the page's creation, as text.
    pub(super) made: String,
    /// The first screen.
    pub(super) first: First,
    /// The sections of the page, except those without data.
    pub(super) sections: Vec<Section>,
    /// Missing sections, with the reasons.
    pub(super) missing: Vec<Missing>,
}

/// The first screen of the page.
#[derive(Debug, Serialize)]
pub(super) struct First {
    /// The question: the hypotheses of the plan, or a description of what it measures.
    pub(super) question: Vec<String>,
    /// The note between a hypothesis and the answer; `None` without a hypothesis.
    pub(super) beside: Option<&'static str>,
    /// The answer in one sentence.
    pub(super) answer: String,
    /// Further sentences of the answer.
    pub(super) more: Vec<String>,
    /// Caveats about the answer.
    pub(super) caveats: Vec<String>,
    /// The objective, if the plan has one.
    pub(super) objective: Option<String>,
    /// The number of runs in each state, as text.
    pub(super) trust: String,
    /// A table of the endpoints.
    pub(super) places: Table,
}

/// A section of the page.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// The anchor of the section.
    pub(super) id: &'static str,
    /// The heading of the section.
    pub(super) title: &'static str,
    /// The content of the section.
    pub(super) blocks: Vec<Block>,
}

/// A section that is missing on the page.
#[derive(Debug, Serialize)]
pub(super) struct Missing {
    /// The heading of the section.
    pub(super) title: &'static str,
    /// The reason why the section is missing.
    pub(super) why: String,
}

/// A section, or the reason why it is missing.
pub(super) type Found = Result<Section, Missing>;

/// A part of a section.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Block {
    /// A heading within a section.
    Heading {
        /// The text of the heading.
        text: String,
    },
    /// A paragraph.
    Text {
        /// The text of the paragraph.
        text: String,
    },
    /// A list of sentences, one per line.
    List {
        /// The sentences.
        items: Vec<String>,
    },
    /// Collapsed sentences under a heading; a click on the heading shows them.
    Folded {
        /// The heading.
        title: String,
        /// The sentences.
        items: Vec<String>,
    },
    /// A list of facts, each with its name.
    Facts {
        /// The names and the facts.
        facts: Vec<(String, String)>,
    },
    /// A table.
    Table {
        /// The table.
        table: Table,
    },
    /// Figures, side by side if there is enough space.
    Figures {
        /// The figures.
        figures: Vec<Figure>,
    },
    /// Parts for single runs, each of them collapsed.
    Runs {
        /// The parts as HTML. They are rendered before the page, so that their sizes are known.
        parts: Vec<String>,
    },
    /// Definitions, each with the anchor of its metric.
    Definitions {
        /// The definitions.
        definitions: Vec<Definition>,
    },
}

/// The definition of a metric.
#[derive(Debug, Serialize)]
pub(super) struct Definition {
    /// The metric's key.
    pub(super) key: &'static str,
    /// The metric's title.
    pub(super) title: &'static str,
    /// The metric's unit, and which direction is better.
    pub(super) unit: String,
    /// The text of the definition.
    pub(super) text: String,
}

/// A figure with its numbers.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    /// The anchor of the figure, which is also the name of files that are saved from it.
    pub(super) id: String,
    /// The finding that the figure shows.
    pub(super) title: String,
    /// The notes that are needed to read the figure.
    pub(super) caption: Caption,
    /// The metric that the figure shows, with a link to its definition; `None` if there is no single metric.
    pub(super) metric: Option<Link>,
    /// The drawn chart.
    pub(super) drawing: Drawing,
    /// The drawn values as numbers.
    pub(super) table: Table,
}

/// The notes that are needed to read a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Caption {
    /// Notes that are always visible below the title: n, and everything without which the figure would
    /// mislead readers.
    pub(super) shown: Vec<String>,
    /// Notes on how the figure is drawn, which are collapsed.
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
    /// The metric's title.
    pub(super) title: &'static str,
}

/// A table.
#[derive(Debug, Default, Serialize)]
pub(super) struct Table {
    /// The caption of the table.
    pub(super) caption: String,
    /// The columns of the table.
    pub(super) columns: Vec<Column>,
    /// The rows of the table.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Debug, Serialize)]
pub(super) struct Column {
    /// The heading of the column.
    pub(super) title: String,
    /// Whether the column contains numbers.
    pub(super) numeric: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Cell {
    /// The text of the cell.
    pub(super) text: String,
    /// The exact number as in exports, if the text may have fewer digits.
    pub(super) value: Option<f64>,
    /// The class of the text's colour, which repeats a state or a result that the text names.
    pub(super) tone: Option<&'static str>,
    /// The anchor of the part with details, if the cell links to one.
    pub(super) link: Option<String>,
}

impl Table {
    /// Creates an empty table; a heading that ends with `#` marks a column of numbers.
    pub(super) fn new(caption: impl Into<String>, columns: &[&str]) -> Table {
        let column = |title: &&str| match title.strip_suffix('#') {
            Some(title) => Column { title: title.to_owned(), numeric: true },
            None => Column { title: (*title).to_owned(), numeric: false },
        };
        Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }
}

impl Cell {
    /// Creates a cell with a text, which may be untrusted.
    pub(super) fn text(text: &str) -> Cell {
        Cell { text: plain(text), ..Cell::default() }
    }

    /// Creates a cell with a coloured text.
    pub(super) fn toned(text: &str, tone: &'static str) -> Cell {
        Cell { tone: Some(tone), ..Cell::text(text) }
    }

    /// Creates a cell with a number; `n/a` if it is unknown.
    pub(super) fn number(value: Option<f64>) -> Cell {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Cell { text: digits(value), value: Some(value), ..Cell::default() },
            None => Cell::text("n/a"),
        }
    }

    /// Creates a cell with a number, marked with `*` if it is computed from few samples.
    pub(super) fn marked(value: f64, few: bool) -> Cell {
        let cell = Cell::number(Some(value));
        if few { Cell { text: format!("{}*", cell.text), ..cell } } else { cell }
    }

    /// Creates a cell with an unrounded number, such as a load.
    pub(super) fn exact(value: f64) -> Cell {
        Cell { text: value.to_string(), ..Cell::default() }
    }

    /// Creates a cell with a count.
    pub(super) fn count(count: u64) -> Cell {
        Cell { text: count.to_string(), ..Cell::default() }
    }
}

/// Returns the class of the colour for a state or a result.
pub(super) fn tone(name: &str) -> &'static str {
    match name {
        "valid" | "holds" | "better" | "kept_up" => "good",
        "suspect" | "undecided" | "not_shown" | "excluded" => "doubt",
        "invalid" | "misses" | "worse" | "given up" | "saturated" | "unreadable" => "bad",
        _ => "plain",
    }
}
