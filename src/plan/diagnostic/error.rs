//! The mistakes of a plan and its fragments: each with a stable code, its place, its cause and its remedy.

use std::fmt;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer};
use serde_with::SerializeDisplay;

use crate::plan::diagnostic::mask::Mask;
use crate::plan::diagnostic::snippet;
use crate::plan::text::place::Place;
use crate::plan::text::source::Sources;
use crate::plan::text::span::{Span, clamp, shifted};

/// A file with more mistakes than this is not a plan; the rest is not worth the reader's time.
pub(crate) const MOST_MISTAKES: usize = 200;

/// What kind of mistake it is. The number is stable: it is shown as `E012` and may be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay)]
#[repr(u16)]
pub enum Code {
    /// The file cannot be read, or is neither YAML nor TOML by its name.
    File = 1,
    /// The text is not YAML or not TOML.
    Syntax = 2,
    /// The text nests too deep or unfolds to too many values.
    TooLarge = 3,
    /// A key stands twice in one table.
    DuplicateKey = 4,
    /// A key that no table of this kind has.
    UnknownKey = 5,
    /// A field that must be there is not.
    MissingField = 6,
    /// A value of another type than the field takes.
    WrongType = 7,
    /// A value that the field does not take: a wrong unit, an unknown choice.
    WrongValue = 8,
    /// A key without a value.
    NoValue = 9,
    /// A plan of another version of the format.
    Version = 10,
    /// A table, list or text that must not be empty.
    Empty = 11,
    /// An axis that does not exist.
    UnknownAxis = 12,
    /// The same axis under two names.
    AxisTwice = 13,
    /// An axis that needs what this version does not have.
    AxisNotPossible = 14,
    /// A name that nothing in the plan has.
    UnknownName = 15,
    /// An axis value of the wrong kind.
    AxisValue = 16,
    /// A value that is twice on an axis.
    DuplicateValue = 17,
    /// An axis that is needed and does not follow from the plan.
    MissingAxis = 18,
    /// A sweep without a load: neither `batch_size` nor `qps`.
    NoLoad = 19,
    /// An `exclude` that leaves nothing out.
    DeadExclude = 20,
    /// `exclude` leaves nothing over.
    AllExcluded = 21,
    /// Sweeps, scenarios, fragments or variables that need each other in a circle.
    Circle = 22,
    /// A scenario with the name of a built-in one.
    BuiltInName = 23,
    /// An endpoint with neither `url` nor `engine: mock`.
    NoServer = 24,
    /// Fields that exclude each other.
    Contradiction = 25,
    /// A URL that cannot be used.
    Url = 26,
    /// A secret, or what may be one, in the plan itself.
    Secret = 27,
    /// A model without an id for an engine it is measured on.
    NoModelId = 28,
    /// A number outside its range.
    OutOfRange = 29,
    /// A field that has no effect where it stands.
    NoEffect = 30,
    /// A path that leaves the plan's folder.
    PathOutside = 31,
    /// Lists of a zip that differ in length.
    UnequalZip = 32,
    /// A `when` that matches no cell.
    DeadCondition = 33,
    /// An `extend` that gives an axis which the cell has already.
    Overrides = 34,
    /// An `add` of a cell that is there already.
    CellTwice = 35,
    /// More cells than `max_cells`.
    TooManyCells = 36,
    /// A fragment that is not there or cannot be read.
    Fragment = 40,
    /// A template that cannot be computed.
    Template = 41,
    /// A `--set` that says no path and value, or whose path leads nowhere.
    Set = 42,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:03}", *self as u16)
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The kind of mistake.
    pub code: Code,
    /// What is wrong, with the offending text.
    pub message: String,
    /// A word at the carets, where the message alone does not say what they point at.
    pub label: Option<String>,
    /// What to type instead.
    pub remedy: Option<String>,
    /// Where it is, in bytes of the plan's texts one after the other; `None` for the plan as a whole.
    pub span: Option<Span>,
    /// Other places that belong to it, each with what it is.
    pub related: Vec<(Span, String)>,
    /// The whole of what is refused: mistakes inside it are not worth a word of their own.
    pub(crate) covers: Option<Span>,
}

impl Diagnostic {
    /// A mistake without a place.
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

    /// Says where it is.
    pub(crate) fn at(mut self, span: Option<Span>) -> Diagnostic {
        self.span = span;
        self
    }

    /// Moves its places by as many bytes as its text begins after the first one.
    pub(crate) fn shift(mut self, by: usize) -> Diagnostic {
        self.span = self.span.map(|span| shifted(span, by));
        self.covers = self.covers.map(|span| shifted(span, by));
        self.related.iter_mut().for_each(|(span, _)| *span = shifted(span.clone(), by));
        self
    }

    /// Adds other places that belong to it, each with what it is.
    pub(crate) fn with(mut self, related: impl IntoIterator<Item = (Span, String)>) -> Diagnostic {
        self.related.extend(related);
        self
    }

    /// Says what to do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Diagnostic {
        self.remedy = Some(remedy.into());
        self
    }

    /// A key that stands twice in one table.
    pub(crate) fn duplicate_key(key: &str, second: Span, first: Option<(Span, String)>) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::DuplicateKey, format!("`{key}` is given twice in the same table"))
            .at(Some(second))
            .remedy("keep one of the two");
        diagnostic.label = Some("again here".to_owned());
        diagnostic.related.extend(first);
        diagnostic
    }
}

/// All mistakes of a plan, its fragments and what the command line set.
#[derive(Debug, Clone)]
pub struct PlanErrors {
    /// The texts, with whatever may be a secret masked; those that could not be read are empty.
    sources: Sources,
    /// The mistakes: of the plan as a whole, then by place, the plan's own before those of its fragments. Never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl PlanErrors {
    /// Sorts by place, merges what is said twice, drops what lies inside something refused as a whole, masks secrets.
    pub(crate) fn new(sources: &Sources, mask: &Mask, mut found: Vec<Diagnostic>) -> PlanErrors {
        let text = sources.text();
        let covered: Vec<Span> = found.iter().filter_map(|diagnostic| diagnostic.covers.clone()).collect();
        found.retain(|diagnostic| {
            let Some(span) = &diagnostic.span else { return true };
            let inside = |outer: &Span| outer.start <= span.start && span.end <= outer.end;
            !covered.iter().any(|outer| diagnostic.covers.as_ref() != Some(outer) && inside(outer))
        });
        found.sort_by_key(|diagnostic| (diagnostic.span.as_ref().map(|span| span.start), diagnostic.code));
        // A wrong value that aliases repeat is one mistake, whatever path it was met on.
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

    /// A mistake of the file as a whole.
    pub(crate) fn of_file(file: &Path, diagnostic: Diagnostic) -> PlanErrors {
        let mut sources = Sources::default();
        sources.add(file, "");
        PlanErrors { sources, diagnostics: vec![diagnostic] }
    }

    /// Where a mistake is.
    pub fn place(&self, diagnostic: &Diagnostic) -> Option<Place> {
        diagnostic.span.as_ref().map(|span| self.sources.place(span.start))
    }

    /// Where a span begins and ends.
    pub(crate) fn range(&self, span: &Span) -> (Place, Place) {
        let end = self.sources.place(span.end.max(span.start));
        (self.sources.place(span.start), end)
    }

    /// The plan's own file.
    pub(crate) fn first_name(&self) -> &Path {
        self.sources.first_name()
    }

    /// The mistakes for a person to read, one paragraph each, without a newline at the end.
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
