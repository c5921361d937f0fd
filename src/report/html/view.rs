//! The page as data, for the templates. No text in it is HTML; the templates escape.

use serde::Serialize;

use super::chart::Drawing;
use crate::report::format::{digits, plain};

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// The plan's name.
    pub(super) title: String,
    /// Program, version and time of creation.
    pub(super) made: String,
    /// The first screen.
    pub(super) first: First,
    /// Its sections, except those without data.
    pub(super) sections: Vec<Section>,
    /// Missing sections, with the reasons.
    pub(super) missing: Vec<Missing>,
}

/// The first screen.
#[derive(Debug, Serialize)]
pub(super) struct First {
    /// The question: the hypotheses of the plan, or a description of what it measures.
    pub(super) question: Vec<String>,
    /// The note between a hypothesis and the answer; `None` without a hypothesis.
    pub(super) beside: Option<&'static str>,
    /// The answer in one sentence.
    pub(super) answer: String,
    /// Further sentences.
    pub(super) more: Vec<String>,
    /// Its caveats.
    pub(super) caveats: Vec<String>,
    /// The objective, if the plan has one.
    pub(super) objective: Option<String>,
    /// The numbers of valid and other runs.
    pub(super) trust: String,
    /// The endpoints.
    pub(super) places: Table,
}

/// One section.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// Its anchor.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// Its content.
    pub(super) blocks: Vec<Block>,
}

/// A missing section.
#[derive(Debug, Serialize)]
pub(super) struct Missing {
    /// Its heading.
    pub(super) title: &'static str,
    /// The reason.
    pub(super) why: String,
}

/// The section, or why it is missing.
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
    /// Sentences, one per line.
    List {
        /// The sentences.
        items: Vec<String>,
    },
    /// Sentences under a heading that unfolds them.
    Folded {
        /// The heading.
        title: String,
        /// The sentences.
        items: Vec<String>,
    },
    /// Names with their values.
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
    /// Runs, each as a part that unfolds. `render` produced their HTML before, so that its size is
    /// known.
    Runs {
        /// The parts.
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
    /// Its title.
    pub(super) title: &'static str,
    /// Its unit, and which direction is better.
    pub(super) unit: String,
    /// The definition.
    pub(super) text: String,
}

/// A figure with its numbers.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    /// Its anchor, which is also the prefix of the names of files that are saved from it.
    pub(super) id: String,
    /// The finding.
    pub(super) title: String,
    /// The notes that are needed to read the figure.
    pub(super) caption: Caption,
    /// The metric that it shows, with a link to its definition; `None` if it shows several.
    pub(super) metric: Option<Link>,
    /// The drawing.
    pub(super) drawing: Drawing,
    /// The same values as numbers.
    pub(super) table: Table,
}

/// The notes that are needed to read a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Caption {
    /// Notes below the title: n, and everything that is needed to avoid misleading readers.
    pub(super) shown: Vec<String>,
    /// Notes on how it is drawn, one click away.
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
    /// Its title.
    pub(super) title: &'static str,
}

/// A table.
#[derive(Debug, Default, Serialize)]
pub(super) struct Table {
    /// Its caption.
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
    /// Whether it contains numbers.
    pub(super) numeric: bool,
}

/// A cell.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Cell {
    /// Its text.
    pub(super) text: String,
    /// The exact number as in exports, if the text has fewer digits.
    pub(super) value: Option<f64>,
    /// The state of a run or an objective, which determines the colour; the text contains it too.
    pub(super) tone: Option<&'static str>,
    /// The anchor of the part with details.
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
    /// A cell with a text, which may be foreign.
    pub(super) fn text(text: &str) -> Cell {
        Cell { text: plain(text), ..Cell::default() }
    }

    /// A text with a rating.
    pub(super) fn toned(text: &str, tone: &'static str) -> Cell {
        Cell { tone: Some(tone), ..Cell::text(text) }
    }

    /// A number; `n/a` if unknown.
    pub(super) fn number(value: Option<f64>) -> Cell {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Cell { text: digits(value), value: Some(value), ..Cell::default() },
            None => Cell::text("n/a"),
        }
    }

    /// A number that is computed from few samples.
    pub(super) fn marked(value: f64, few: bool) -> Cell {
        let cell = Cell::number(Some(value));
        if few { Cell { text: format!("{}*", cell.text), ..cell } } else { cell }
    }

    /// A number in its original form, such as a load, so its text is exact.
    pub(super) fn exact(value: f64) -> Cell {
        Cell { text: value.to_string(), ..Cell::default() }
    }

    /// A count, whose text is also exact.
    pub(super) fn count(count: u64) -> Cell {
        Cell { text: count.to_string(), ..Cell::default() }
    }
}

/// The name of the colour of a state or a result.
pub(super) fn tone(name: &str) -> &'static str {
    match name {
        "valid" | "holds" | "better" | "kept_up" => "good",
        "suspect" | "undecided" | "not_shown" | "excluded" => "doubt",
        "invalid" | "misses" | "worse" | "given up" | "saturated" | "unreadable" => "bad",
        _ => "plain",
    }
}
