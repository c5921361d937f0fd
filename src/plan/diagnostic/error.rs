//! The errors of a plan and its fragments, each with a stable code, its place, its cause and its remedy.

use std::fmt;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer};
use serde_with::SerializeDisplay;

use crate::plan::diagnostic::mask::Mask;
use crate::plan::diagnostic::snippet;
use crate::plan::text::place::Place;
use crate::plan::text::source::Sources;
use crate::plan::text::span::{Span, clamp, shifted};

/// Maximum number of errors in one report. A file with more errors is probably not a plan, so further errors
/// are dropped.
pub(crate) const MOST_MISTAKES: usize = 200;

/// The kind of error. Its number never changes. Messages and the documentation show it in the form `E012`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
#[repr(u16)]
pub enum Code {
    /// The file cannot be read, or its name shows that it is neither YAML nor TOML.
    File = 1,
    /// The text is not valid YAML or TOML.
    Syntax = 2,
    /// The text is nested too deeply or expands to too many values.
    TooLarge = 3,
    /// A duplicate key in a table.
    DuplicateKey = 4,
    /// An unknown key.
    UnknownKey = 5,
    /// A required field is missing.
    MissingField = 6,
    /// A value of the wrong type.
    WrongType = 7,
    /// A value that the field does not accept: a wrong unit, an unknown choice.
    WrongValue = 8,
    /// A key without a value.
    NoValue = 9,
    /// An unsupported version of the plan format.
    Version = 10,
    /// A table, list or text that must not be empty.
    Empty = 11,
    /// An unknown axis.
    UnknownAxis = 12,
    /// The same axis under two names.
    AxisTwice = 13,
    /// A `server` axis or `measure: start` for an endpoint that has no `launch`.
    AxisNotPossible = 14,
    /// An unknown name.
    UnknownName = 15,
    /// An axis value of the wrong kind.
    AxisValue = 16,
    /// A duplicate value on an axis.
    DuplicateValue = 17,
    /// A required axis is missing and does not follow from the plan.
    MissingAxis = 18,
    /// A sweep without a load: it has neither `batch_size` nor `qps`.
    NoLoad = 19,
    /// An `exclude` that matches no cell.
    DeadExclude = 20,
    /// A `when` or `exclude` that leaves no cell.
    AllExcluded = 21,
    /// A dependency cycle between sweeps, scenarios, fragments or variables.
    Circle = 22,
    /// A scenario with the name of a built-in one.
    BuiltInName = 23,
    /// An endpoint without a server (`url`, `launch` or `engine: mock`), or a launched server without an
    /// address.
    NoServer = 24,
    /// Conflicting fields.
    Contradiction = 25,
    /// An unusable URL.
    Url = 26,
    /// A secret, or a possible secret, in the plan itself.
    Secret = 27,
    /// A model without an id for an engine on which it is measured.
    NoModelId = 28,
    /// A number outside its range.
    OutOfRange = 29,
    /// A field that has no effect here.
    NoEffect = 30,
    /// A path that leads out of the plan's folder.
    PathOutside = 31,
    /// Lists of a zip that differ in length.
    UnequalZip = 32,
    /// A `when` that matches no cell.
    DeadCondition = 33,
    /// An `extend` that sets an axis that the cell already has.
    Overrides = 34,
    /// An `add` of a cell that already exists.
    CellTwice = 35,
    /// More cells than `max_cells`.
    TooManyCells = 36,
    /// A missing or unreadable fragment.
    Fragment = 40,
    /// A template that cannot be evaluated.
    Template = 41,
    /// A `--set` without a path and a value, or with a path that does not exist.
    Set = 42,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:03}", *self as u16)
    }
}

/// One error.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The kind of error.
    pub code: Code,
    /// The problem, with the offending text.
    pub message: String,
    /// A label next to the carets, if the message alone does not explain what they point at.
    pub label: Option<String>,
    /// The remedy, such as the text to write instead.
    pub remedy: Option<String>,
    /// The place, in bytes of the plan's concatenated texts; `None` for the plan as a whole.
    pub span: Option<Span>,
    /// Related places, each with a label.
    pub related: Vec<(Span, String)>,
    /// The complete rejected text. Errors inside it are not reported separately.
    pub(crate) covers: Option<Span>,
}

impl Diagnostic {
    /// Creates an error without a place.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            label: None,
            remedy: None,
            span: None,
            related: Vec::new(),
            covers: None,
        }
    }

    /// Sets the place.
    pub(crate) fn at(mut self, span: Option<Span>) -> Diagnostic {
        self.span = span;
        self
    }

    /// Shifts all places by `by` bytes, the offset of the text in the concatenated texts.
    pub(crate) fn shift(mut self, by: usize) -> Diagnostic {
        self.span = self.span.map(|span| shifted(span, by));
        self.covers = self.covers.map(|span| shifted(span, by));
        self.related.iter_mut().for_each(|(span, _)| *span = shifted(span.clone(), by));
        self
    }

    /// Adds related places, each with a label.
    pub(crate) fn with(mut self, related: impl IntoIterator<Item = (Span, String)>) -> Diagnostic {
        self.related.extend(related);
        self
    }

    /// Sets the remedy.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Diagnostic {
        self.remedy = Some(remedy.into());
        self
    }

    /// Creates the error for a duplicate key in one table.
    pub(crate) fn duplicate_key(key: &str, second: Span, first: Option<(Span, String)>) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::DuplicateKey, format!("`{key}` appears twice in the same table"))
            .at(Some(second))
            .remedy("keep one of the two");
        diagnostic.label = Some("again here".to_owned());
        diagnostic.related.extend(first);
        diagnostic
    }
}

/// All errors of a plan, its fragments and the `--set` options.
#[derive(Debug, Clone)]
pub struct PlanErrors {
    /// The texts of the plan, its fragments and the `--set` options, with possible secrets masked; unreadable
    /// texts are empty.
    sources: Sources,
    /// The errors, never empty. Errors of the plan as a whole come first. The others are sorted by
    /// place, with errors in the plan itself before errors in its fragments.
    pub diagnostics: Vec<Diagnostic>,
}

impl PlanErrors {
    /// Sorts the errors by place, merges duplicates, drops errors inside rejected text, and masks secrets.
    pub(crate) fn new(sources: &Sources, mask: &Mask, mut found: Vec<Diagnostic>) -> PlanErrors {
        let text = sources.text();
        let covered: Vec<Span> = found.iter().filter_map(|diagnostic| diagnostic.covers.clone()).collect();
        found.retain(|diagnostic| {
            let Some(span) = &diagnostic.span else { return true };
            let inside = |outer: &Span| outer.start <= span.start && span.end <= outer.end;
            !covered.iter().any(|outer| diagnostic.covers.as_ref() != Some(outer) && inside(outer))
        });
        found.sort_by_key(|diagnostic| (diagnostic.span.as_ref().map(|span| span.start), diagnostic.code));
        // A wrong value that YAML aliases repeat at several paths is reported once.
        found.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.remedy == b.remedy);
        found.truncate(MOST_MISTAKES);
        for diagnostic in &mut found {
            diagnostic.message = mask.clean(&diagnostic.message);
            diagnostic.label = diagnostic.label.as_deref().map(|label| mask.clean(label));
            diagnostic.remedy = diagnostic.remedy.as_deref().map(|remedy| mask.clean(remedy));
            diagnostic.span = diagnostic.span.take().map(|span| clamp(span, text));
        }
        PlanErrors { sources: sources.with_text(mask.source(text)), diagnostics: found }
    }

    /// Creates an error about a file as a whole.
    pub(crate) fn of_file(file: &Path, diagnostic: Diagnostic) -> PlanErrors {
        let mut sources = Sources::default();
        sources.add(file, "");
        PlanErrors { sources, diagnostics: vec![diagnostic] }
    }

    /// The place of an error; `None` if it concerns the plan as a whole.
    pub fn place(&self, diagnostic: &Diagnostic) -> Option<Place> {
        diagnostic.span.as_ref().map(|span| self.sources.place(span.start))
    }

    /// The places at which a span starts and ends.
    pub(crate) fn range(&self, span: &Span) -> (Place, Place) {
        let end = self.sources.place(span.end.max(span.start));
        (self.sources.place(span.start), end)
    }

    /// The path of the plan's own file.
    pub(crate) fn first_name(&self) -> &Path {
        self.sources.first_name()
    }

    /// Formats the errors for readers, one paragraph each, without a final newline.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let one = |diagnostic| renderer.render(&[self.group(diagnostic)]);
        self.diagnostics.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let title = Level::ERROR.primary_title(&diagnostic.message).id(diagnostic.code.to_string());
        let mut group = match &diagnostic.span {
            Some(span) => {
                let primary = (AnnotationKind::Primary, span, diagnostic.label.as_deref());
                let related = diagnostic.related.iter();
                let related = related.map(|(span, what)| (AnnotationKind::Context, span, Some(what.as_str())));
                let marks = std::iter::once(primary).chain(related);
                snippet::elements(&self.sources, marks).into_iter().fold(Group::with_title(title), Group::element)
            }
            None => title.element(Origin::path(self.sources.first_name().display().to_string())),
        };
        if let Some(remedy) = &diagnostic.remedy {
            group = group.element(Level::HELP.message(remedy));
        }
        group
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for PlanErrors {}
