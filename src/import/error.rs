//! Import errors, with the cause, the place and the remedy.

use crate::plan::PlanErrors;

/// The reason why an import creates no plan.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Text larger than any benchmark configuration.
    #[error("{name} has {bytes} bytes, but at most {most} are read: import only the part with the benchmarks")]
    TooLarge {
        /// The file.
        name: String,
        /// The length of the text, in bytes.
        bytes: usize,
        /// The maximum length that is read, in bytes.
        most: usize,
    },
    /// More commands, values or nested parts than any benchmark configuration has.
    #[error("{place}: more than {most} {what}; {remedy}")]
    TooMany {
        /// The file, and the line if known.
        place: String,
        /// The kind of items that exceed the maximum, such as `combinations`.
        what: &'static str,
        /// The maximum that is accepted.
        most: usize,
        /// The remedy.
        remedy: &'static str,
    },
    /// The input is neither a file of a known format nor a command.
    #[error("{name}: unknown configuration or command: {seen}; import accepts {takes}; select a format with --format")]
    Unknown {
        /// The file.
        name: String,
        /// The content found instead.
        seen: String,
        /// The known formats.
        takes: String,
    },
    /// Invalid JSON.
    #[error("{name}:{line}:{column}: invalid JSON: {reason}; correct the file at this position")]
    Json {
        /// The file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The parser's reason.
        reason: String,
    },
    /// A value of an unexpected form.
    #[error("{place}: {what}; {remedy}")]
    Shape {
        /// The file and the path or line inside it.
        place: String,
        /// The problem with the value.
        what: String,
        /// The remedy.
        remedy: String,
    },
    /// A script that ends inside a quote, a loop or a substitution.
    #[error("{name}:{line}: {what} is not closed; close it, or import only the commands")]
    Unclosed {
        /// The file.
        name: String,
        /// The line at which the construct begins, from 1.
        line: usize,
        /// The construct that is not closed.
        what: String,
    },
    /// A file that the command names cannot be read.
    #[error(
        "{place}: cannot read {path}: {reason}; specify the path relative to the script's folder or the current folder"
    )]
    File {
        /// The place that names the file.
        place: String,
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The imported plan is invalid.
    #[error("the plan imported from {name} is not valid:\n{}\nfix it in {name}", .errors.render(false))]
    Plan {
        /// The file.
        name: String,
        /// The errors.
        errors: Box<PlanErrors>,
    },
}

impl ImportError {
    /// Creates the error for input that does not have the expected form.
    pub(super) fn shape(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> ImportError {
        ImportError::Shape { place: place.into(), what: what.into(), remedy: remedy.into() }
    }

    /// Creates the error for known input that contains nothing measurable; `why` lists the reasons.
    pub(super) fn nothing(name: impl Into<String>, why: impl Into<String>) -> ImportError {
        let why = why.into();
        let what = if why.is_empty() { "it contains nothing that can be measured".to_owned() } else { why };
        ImportError::shape(
            name,
            what,
            "it contains nothing else: import a benchmark that requests text from a server over HTTP",
        )
    }

    /// Creates the error for an unknown file or command. The caller, which has the list of all
    /// formats, adds the known ones.
    pub(super) fn unknown(name: impl Into<String>, seen: impl Into<String>) -> ImportError {
        ImportError::Unknown { name: name.into(), seen: seen.into(), takes: String::new() }
    }

    /// Adds the known formats to the error about an unknown file.
    pub(super) fn with_known(mut self, known: String) -> ImportError {
        if let ImportError::Unknown { takes, .. } = &mut self {
            *takes = known;
        }
        self
    }

    /// Returns the error with its texts changed by `change`, and with texts quoted from the source also
    /// changed by `of_source`. Errors of the plan are not changed, because they quote a plan that has already
    /// been changed.
    pub(super) fn changed(
        mut self,
        change: impl Fn(&str) -> String,
        of_source: impl Fn(&str) -> String,
    ) -> ImportError {
        match &mut self {
            ImportError::File { path, .. } => *path = of_source(path),
            ImportError::Shape { place, what, .. } => (*place, *what) = (of_source(place), of_source(what)),
            _ => {}
        }
        let texts: Vec<&mut String> = match &mut self {
            ImportError::TooLarge { name, .. } | ImportError::Plan { name, .. } => vec![name],
            ImportError::TooMany { place, .. } => vec![place],
            ImportError::Unknown { name, seen, .. } => vec![name, seen],
            ImportError::Json { name, reason, .. } => vec![name, reason],
            ImportError::Shape { place, what, remedy } => vec![place, what, remedy],
            ImportError::Unclosed { name, what, .. } => vec![name, what],
            ImportError::File { place, path, reason } => vec![place, path, reason],
        };
        texts.into_iter().for_each(|text| *text = change(text));
        self
    }
}
