//! What the user writes, read into a `Plan`: all mistakes of a file in one pass, each at its place with its remedy.
//!
//! `load` makes one tree of values that know where they were written (`source`), out of the plan's text and those of its
//! fragments (`yaml`, `toml`, `merge`), what the command line says (`set`) and `template`s. `read` lets the serde derives
//! of `model` read it, and `recover` goes on after a mistake; `check` looks at the plan as a whole and gives every matrix
//! its one form; `error` shows what was found, without what `mask` takes for a secret.

mod aliases;
mod allow;
mod arrivals;
mod axis;
mod check;
mod client;
pub mod compare;
pub mod data;
pub mod disclosure;
mod elsewhere;
mod endpoint;
mod error;
mod error_policy;
pub mod extra;
mod files;
mod foreign;
pub mod lengths;
mod load;
mod mask;
pub mod matrix;
mod merge;
pub mod mix;
mod mock_figures;
pub mod model;
mod nonce;
mod objective;
mod phases;
mod prefix;
mod price;
mod process;
mod profile;
pub mod profiled;
mod read;
mod ready;
mod record;
mod recover;
mod remedy;
mod report;
mod retries;
mod scalar;
pub mod scenario;
mod schema;
mod secret;
mod set;
pub mod shorthand;
mod snippet;
mod source;
mod suggest;
pub mod talk;
mod template;
mod think;
mod tokenizer;
mod toml;
mod trace;
mod tree;
mod under_test;
mod written;
mod yaml;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::path::Path;

pub use axis::is_axis;
pub use elsewhere::Unreachable;
pub use error::{Code, Diagnostic, Place, PlanErrors};
pub use extra::Json;
pub use files::{Disk, Files};
pub use load::Options;
pub use mask::{carries_secret, is_secret_name, looks_like_key};
pub use mix::MixPart;
pub use model::*;
pub use report::{Finding, Related, Report, Severity};
pub use schema::{schema, schema_text};
pub use tokenizer::{FoundTokenizer, TokenizerFiles, TokenizerFilesError};
pub use tree::Step;

use load::{Loader, MOST_BYTES};
use source::Sources;
use tree::Node;

/// In what a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
}

impl Format {
    /// By the ending of the file's name: .yaml, .yml or .toml.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            // What `freeze` writes is a plan in YAML.
            "yaml" | "yml" | "lock" => Some(Format::Yaml),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }
}

/// A plan without mistakes, and where its values were written.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The plan. Its matrices and excludes have axes under their first names only, and every matrix has the axes
    /// `endpoint`, `model` and `scenario`.
    pub plan: Plan,
    sources: Sources,
    tree: Node,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Where it is written.
    pub place: Place,
    /// The variables that its template names, with what these are made of, each with the place of its value.
    pub vars: Vec<(String, Place)>,
}

impl fmt::Display for Origin {
    /// `plan.yaml:30:12, measure at --set:1:14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        self.vars.iter().try_for_each(|(name, place)| write!(f, ", {name} at {place}"))
    }
}

impl Loaded {
    /// Where the deepest existing part of a path into the plan is written: at the value of a scalar, at the key of a
    /// table or list. `None` for the plan as a whole.
    pub fn place(&self, path: &[Step]) -> Option<Place> {
        self.origin(path).map(|origin| origin.place)
    }

    /// Where the deepest existing part of a path into the plan is written, and what a template made it of. Of an axis that
    /// follows from the plan: where its only value is declared.
    pub fn origin(&self, path: &[Step]) -> Option<Origin> {
        let implied = self.implied(path);
        let path = implied.as_deref().unwrap_or(path);
        let found = self.tree.walk(path);
        let is_root = std::ptr::eq(found.node, &self.tree);
        let place = |span: &tree::Span| self.sources.place(span.start);
        let vars = found.node.via.iter().map(|(name, span)| (name.clone(), place(span))).collect();
        (!is_root).then(|| Origin { place: place(&found.span()), vars })
    }

    /// The declaration that an axis follows from, where the matrix leaves it out.
    pub fn implied(&self, path: &[Step]) -> Option<Vec<Step>> {
        let [sweeps, _, matrix, Step::Key(axis), ..] = path else { return None };
        let is_axis = *sweeps == Step::from("sweeps") && *matrix == Step::from("matrix");
        if !is_axis || self.tree.walk(path).depth > 3 {
            return None;
        }
        let (_, table) = [("endpoint", "endpoints"), ("model", "models"), ("scenario", "scenarios")]
            .into_iter()
            .find(|(implied, _)| implied == axis)?;
        let mut declared = self.tree.get(table)?.keys();
        match (declared.next(), declared.next()) {
            (Some(only), None) => Some(vec![Step::from(table), Step::from(only)]),
            _ => None,
        }
    }

    /// Where the value at just this path is written; none where the plan leaves it to its default.
    pub fn written(&self, path: &[Step]) -> Option<Origin> {
        let found = self.tree.walk(path);
        let is_list = matches!(found.node.value, tree::Value::List(_));
        let is_leaf = !is_list && !matches!(found.node.value, tree::Value::Map(_));
        let is_there = match &path[found.depth..] {
            [] => true,
            // One value, or one range, that stands for a list; one value that stands for a table of one field.
            [Step::Index(0)] => !is_list,
            // A word that stands for a distribution, or another word for the same of it.
            [Step::Key(field), ..] if field == "gamma" => is_leaf,
            [Step::Key(field)] if field == "cv" || field == "burstiness" => {
                found.node.entry("cv").or(found.node.entry("burstiness")).is_some()
            }
            [Step::Key(field)] => is_leaf && ["for", "preset", "constant", "file"].contains(&field.as_str()),
            _ => false,
        };
        is_there.then(|| self.origin(path))?
    }

    /// The file the plan was read from.
    pub fn file(&self) -> &Path {
        self.sources.first_name()
    }
}

/// Reads and checks a plan file.
pub fn load(path: &Path) -> Result<Loaded, PlanErrors> {
    load_with(path, &Options::default())
}

/// Reads and checks a plan file with what the command line says.
pub fn load_with(path: &Path, options: &Options) -> Result<Loaded, PlanErrors> {
    let fail = |message: String, remedy: &str| {
        Err(PlanErrors::of_file(path, Diagnostic::new(Code::File, message).remedy(remedy)))
    };
    let Some(format) = Format::of(path) else {
        return fail("a plan is a .yaml, .yml or .toml file".to_owned(), "give the file one of these endings");
    };
    let mut bytes = Vec::new();
    // A byte more than is taken, so that what is larger is seen to be.
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return fail(format!("the plan cannot be read: {error}"), "check the path and its permissions");
    }
    if bytes.len() > MOST_BYTES {
        return Err(too_large(path));
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse_with(path, &text, format, options, &Disk),
        Err(error) => fail(format!("line {} is not UTF-8 text", load::bad_line(&error)), "save the file as UTF-8"),
    }
}

fn too_large(name: &Path) -> PlanErrors {
    let message = format!("the file has more than {MOST_BYTES} bytes; a plan has fewer");
    PlanErrors::of_file(name, Diagnostic::new(Code::TooLarge, message))
}

/// Reads and checks the text of a plan; `name` is the file shown in errors, beside which its fragments lie.
pub fn parse(name: &Path, text: &str, format: Format) -> Result<Loaded, PlanErrors> {
    parse_with(name, text, format, &Options::default(), &Disk)
}

/// Reads and checks the text of a plan, with fragments from anywhere and what the command line says.
pub fn parse_with(
    name: &Path,
    text: &str,
    format: Format,
    options: &Options,
    files: &dyn Files,
) -> Result<Loaded, PlanErrors> {
    if text.len() > MOST_BYTES {
        return Err(too_large(name));
    }
    let mut loader = Loader::new(files, options);
    let Some(tree) = loader.tree(name, text, format) else {
        return Err(loader.into_errors());
    };
    let recovered = recover::recover(tree, loader.sources.text());
    loader.found.extend(recovered.found);
    let mut plan = recovered.plan;
    if let Some(plan) = &mut plan {
        trace::find(plan, &recovered.tree, &mut loader);
        data::find(plan, &recovered.tree, &mut loader);
        profiled::find(plan, &recovered.tree, &mut loader);
        tokenizer::find(plan, &recovered.tree, name.parent().unwrap_or(Path::new("")), &mut loader);
        loader.found.extend(check::check(plan, &recovered.tree));
    }
    match plan {
        Some(plan) if loader.found.is_empty() => Ok(Loaded { plan, sources: loader.sources, tree: recovered.tree }),
        _ => Err(loader.into_errors()),
    }
}
