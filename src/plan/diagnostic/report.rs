//! What `check` found, for editors and CI: `sweepline check --format json`. Fields are added, never renamed or removed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::diagnostic::error::{Diagnostic, PlanErrors};
use crate::plan::text::place::Place;

/// What `sweepline check --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// What was found in all plans of the call: plan by plan, in each by place. Empty where nothing is wrong.
    pub diagnostics: Vec<Finding>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A mistake: the plan is refused, the exit code is 2.
    Error,
    /// A lint: results would say less than they seem to. The exit code is 2 with `--strict` only.
    Warning,
    /// A lint: worth knowing before the results are read.
    Note,
}

/// A mistake or a lint, and where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// What kind it is, like E012; stable. `sweepline explain CODE` says more.
    #[schemars(regex(pattern = "^[EM][0-9]{3}$"))]
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with the offending text. What may be a secret is masked.
    pub message: String,
    /// The file, as it was named in the call; a fragment's path; `--set` for the command line.
    pub file: String,
    /// The line where it begins, from 1; null for the file as a whole.
    #[schemars(range(min = 1))]
    pub line: Option<usize>,
    /// The column where it begins, from 1, in characters (Unicode scalar values; neither bytes nor UTF-16 units); null
    /// for the file as a whole.
    #[schemars(range(min = 1))]
    pub column: Option<usize>,
    /// The line where it ends; null for the file as a whole and where the end is not known.
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
    /// The column after its last character, in characters; null like `end_line`.
    #[schemars(range(min = 1))]
    pub end_column: Option<usize>,
    /// What to type instead.
    pub remedy: Option<String>,
    /// Other places that belong to it.
    pub related: Vec<Related>,
    /// What a lint is about, like `sweep saturation`; empty for mistakes.
    pub about: Vec<String>,
    /// The command that prints the page of its code.
    pub docs: String,
}

/// Another place that belongs to a finding, such as where a key stands the first time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// The file.
    pub file: String,
    /// The line where it begins, from 1.
    #[schemars(range(min = 1))]
    pub line: usize,
    /// The column where it begins, from 1, in characters.
    #[schemars(range(min = 1))]
    pub column: usize,
    /// The line where it ends.
    #[schemars(range(min = 1))]
    pub(crate) end_line: usize,
    /// The column after its last character.
    #[schemars(range(min = 1))]
    pub(crate) end_column: usize,
}

impl Finding {
    /// A finding without an end, related places or something that it is about.
    pub fn new(code: impl std::fmt::Display, severity: Severity, message: String, file: String) -> Finding {
        let code = code.to_string();
        let docs = format!("sweepline explain {code}");
        Finding {
            code,
            severity,
            message,
            file,
            line: None,
            column: None,
            end_line: None,
            end_column: None,
            remedy: None,
            related: Vec::new(),
            about: Vec::new(),
            docs,
        }
    }

    /// Says where it begins.
    pub fn at(self, place: Option<&Place>) -> Finding {
        Finding { line: place.map(|place| place.line), column: place.map(|place| place.column), ..self }
    }
}

impl PlanErrors {
    /// The mistakes for another program to read.
    pub fn json(&self) -> Vec<Finding> {
        self.diagnostics.iter().map(|diagnostic| self.finding(diagnostic)).collect()
    }

    fn finding(&self, diagnostic: &Diagnostic) -> Finding {
        let range = diagnostic.span.as_ref().map(|span| self.range(span));
        let (start, end) = range.unzip();
        let file = start.as_ref().map_or(self.first_name(), |place| &place.file).display().to_string();
        let related = diagnostic.related.iter().map(|(span, what)| {
            let (start, end) = self.range(span);
            Related {
                message: what.clone(),
                file: start.file.display().to_string(),
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
            }
        });
        Finding {
            end_line: end.as_ref().map(|place| place.line),
            end_column: end.as_ref().map(|place| place.column),
            remedy: diagnostic.remedy.clone(),
            related: related.collect(),
            ..Finding::new(diagnostic.code, Severity::Error, diagnostic.message.clone(), file).at(start.as_ref())
        }
    }
}
