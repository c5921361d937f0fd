//! The findings of `check`, for editors and CI: `sweepline check --format json`. Fields are added, never
//! renamed or removed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::diagnostic::error::{Diagnostic, PlanErrors};
use crate::plan::text::place::Place;

/// The output of `sweepline check --format json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The findings in all plans of the call, plan by plan, and sorted by place within each plan. Empty if
    /// there are no findings.
    pub diagnostics: Vec<Finding>,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An error. The plan is rejected, and the exit code is 2.
    Error,
    /// A lint about settings that make the results less meaningful than they seem. The exit code is 2 only
    /// with `--strict`.
    Warning,
    /// A lint about something that you should know before you read the results.
    Note,
}

/// An error or a lint, and its place.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// The code, like E012. Codes never change; `sweepline explain CODE` describes each.
    #[schemars(regex(pattern = "^[EM][0-9]{3}$"))]
    pub code: String,
    /// The severity.
    pub severity: Severity,
    /// The problem, with the offending text. Possible secrets are masked.
    pub message: String,
    /// The file as named in the call; for a fragment, its path; for a value from the command line, `--set`.
    pub file: String,
    /// First line, counted from 1; null if the finding concerns the file as a whole.
    #[schemars(range(min = 1))]
    pub line: Option<usize>,
    /// First column, counted from 1 in characters (Unicode scalar values, neither bytes nor UTF-16 units);
    /// null if the finding concerns the file as a whole.
    #[schemars(range(min = 1))]
    pub column: Option<usize>,
    /// Last line; null if the finding concerns the file as a whole, or if its end is unknown.
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
    /// The column after the last character of the finding, in characters; null if `end_line` is null.
    #[schemars(range(min = 1))]
    pub end_column: Option<usize>,
    /// The remedy, such as what to write instead.
    pub remedy: Option<String>,
    /// Related places.
    pub related: Vec<Related>,
    /// The subjects of a lint, like `sweep saturation`; empty for errors.
    pub about: Vec<String>,
    /// The command that prints the page about the code.
    pub docs: String,
}

/// A place related to a finding, such as the first occurrence of a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Related {
    /// A label that describes the place.
    pub message: String,
    /// The file.
    pub file: String,
    /// First line, counted from 1.
    #[schemars(range(min = 1))]
    pub line: usize,
    /// First column, counted from 1 in characters.
    #[schemars(range(min = 1))]
    pub column: usize,
    /// Last line.
    #[schemars(range(min = 1))]
    pub(crate) end_line: usize,
    /// The column after the last character of the place.
    #[schemars(range(min = 1))]
    pub(crate) end_column: usize,
}

impl Finding {
    /// Creates a finding without an end, related places or subject.
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

    /// Sets the line and column where the finding starts.
    pub fn at(self, place: Option<&Place>) -> Finding {
        Finding { line: place.map(|place| place.line), column: place.map(|place| place.column), ..self }
    }
}

impl PlanErrors {
    /// Returns the errors in machine-readable form.
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
