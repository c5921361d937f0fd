//! Why nothing could be imported: what, where, and what to do.

use crate::plan::PlanErrors;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// More text than a benchmark's configuration has.
    #[error("{name} has {bytes} bytes; at most {most} are read: import only the part with the benchmarks")]
    TooLarge {
        /// The file.
        name: String,
        /// Its length.
        bytes: usize,
        /// The most that is read.
        most: usize,
    },
    /// More commands, values or nested parts than a benchmark's configuration has.
    #[error("{place}: more than {most} {what}; {remedy}")]
    TooMany {
        /// The file, and the line where there is one.
        place: String,
        /// What there is too much of.
        what: &'static str,
        /// The most that is taken.
        most: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// Neither a file of a known kind nor a command.
    #[error("{name}: unknown configuration or command: {seen}; import accepts {takes}; --format selects one")]
    Unknown {
        /// The file.
        name: String,
        /// What was found instead.
        seen: String,
        /// What is known.
        takes: String,
    },
    /// JSON with a mistake.
    #[error("{name}:{line}:{column}: invalid JSON: {reason}; fix it there")]
    Json {
        /// The file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the reader said.
        reason: String,
    },
    /// A value of another shape than any that is known.
    #[error("{place}: {what}; {remedy}")]
    Shape {
        /// The file and the path or line inside it.
        place: String,
        /// What is wrong.
        what: String,
        /// What to write.
        remedy: String,
    },
    /// A script that breaks off inside a quote, a loop or a substitution.
    #[error("{name}:{line}: {what} is not closed; close it, or import only the commands")]
    Unclosed {
        /// The file.
        name: String,
        /// Where it begins, from 1.
        line: usize,
        /// What begins there.
        what: String,
    },
    /// A file that the command names.
    #[error(
        "{place}: cannot read {path}: {reason}; specify the path relative to the script's folder or to the current one"
    )]
    File {
        /// Where it is named.
        place: String,
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// What was made is no plan.
    #[error("the plan imported from {name} is not valid:\n{}\nfix it in {name}", .errors.render(false))]
    Plan {
        /// The file.
        name: String,
        /// The mistakes.
        errors: Box<PlanErrors>,
    },
}

impl ImportError {
    /// Something that cannot be read as what it should be.
    pub(super) fn shape(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> ImportError {
        ImportError::Shape { place: place.into(), what: what.into(), remedy: remedy.into() }
    }

    /// Something that is known, and of which nothing can be measured; `why` says each reason.
    pub(super) fn nothing(name: impl Into<String>, why: impl Into<String>) -> ImportError {
        let why = why.into();
        let what = if why.is_empty() { "it contains nothing that can be measured".to_owned() } else { why };
        ImportError::shape(
            name,
            what,
            "it contains nothing else: import a benchmark that requests text from a server over HTTP",
        )
    }

    /// A file or command that nothing is known of. What is known is said by the one who knows all formats.
    pub(super) fn unknown(name: impl Into<String>, seen: impl Into<String>) -> ImportError {
        ImportError::Unknown { name: name.into(), seen: seen.into(), takes: String::new() }
    }

    /// Says of an unknown file what is known.
    pub(super) fn with_known(mut self, known: String) -> ImportError {
        if let ImportError::Unknown { takes, .. } = &mut self {
            *takes = known;
        }
        self
    }

    /// The same error with other words for what it quotes, and for a text that is the source's own; a plan's mistakes quote a plan that was changed before.
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
