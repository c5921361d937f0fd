//! What the user writes, read into a `Plan`: all mistakes of a file in one pass, each at its place with its remedy.
//!
//! `yaml` and `toml` make one tree of values that know where they were written; `read` lets the serde derives of `model`
//! read it, and `recover` goes on after a mistake; `check` looks at the plan as a whole and gives every matrix its one
//! form; `error` shows what was found, without what `mask` takes for a secret.

mod axis;
mod check;
mod client;
mod error;
mod mask;
pub mod matrix;
mod mock_figures;
pub mod model;
mod objective;
mod read;
mod recover;
mod scalar;
pub mod scenario;
mod schema;
mod secret;
pub mod shorthand;
mod suggest;
mod toml;
mod tree;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use axis::is_axis;
pub use error::{Code, Diagnostic, DiagnosticJson, Place, PlanErrors};
pub use model::*;
pub use schema::{schema, schema_text};
pub use tree::Step;

use mask::Mask;
use tree::Node;

/// A larger file is not a plan.
const MOST_BYTES: usize = 1 << 20;

/// More values than any plan has, aliases counted as often as they are used.
const MOST_NODES: usize = 50_000;

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
            "yaml" | "yml" => Some(Format::Yaml),
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
    file: PathBuf,
    text: String,
    tree: Node,
}

impl Loaded {
    /// Where the deepest existing part of a path into the plan is written: at the value of a scalar, at the key of a
    /// table or list. `None` for the plan as a whole.
    pub fn place(&self, path: &[Step]) -> Option<Place> {
        let found = self.tree.walk(path);
        let is_root = std::ptr::eq(found.node, &self.tree);
        (!is_root).then(|| Place::of(&self.file, &self.text, found.span().start))
    }

    /// The file the plan was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// Reads and checks a plan file.
pub fn load(path: &Path) -> Result<Loaded, PlanErrors> {
    let fail = |message: String, remedy: &str| {
        Err(PlanErrors::of_file(path, Diagnostic::new(Code::File, message).remedy(remedy)))
    };
    let Some(format) = Format::of(path) else {
        return fail("a plan is a .yaml, .yml or .toml file".to_owned(), "give the file one of these endings");
    };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return fail(format!("the plan cannot be read: {error}"), "check the path and its permissions"),
    };
    match String::from_utf8(bytes) {
        Ok(text) => parse(path, &text, format),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            fail(format!("line {line} is not UTF-8 text"), "save the file as UTF-8")
        }
    }
}

/// Reads and checks the text of a plan; `name` is the file shown in errors.
pub fn parse(name: &Path, text: &str, format: Format) -> Result<Loaded, PlanErrors> {
    if text.len() > MOST_BYTES {
        let message = format!("the file has {} bytes; a plan has at most {MOST_BYTES}", text.len());
        return Err(PlanErrors::of_file(name, Diagnostic::new(Code::TooLarge, message)));
    }
    let (tree, mut found) = read_tree(text, format);
    let Some(tree) = tree else {
        return Err(PlanErrors::new(name, text, &Mask::new(text, None), found));
    };
    let mut mask = Mask::new(text, Some(&tree));
    if !found.is_empty() {
        // The second value of a key given twice is in no tree.
        mask.add_lines(text);
    }
    let recovered = recover::recover(tree, text);
    found.extend(recovered.found);
    let mut plan = recovered.plan;
    if let Some(plan) = &mut plan {
        found.extend(check::check(plan, &recovered.tree));
    }
    match plan {
        Some(plan) if found.is_empty() => {
            Ok(Loaded { plan, file: name.to_owned(), text: text.to_owned(), tree: recovered.tree })
        }
        _ => Err(PlanErrors::new(name, text, &mask, found)),
    }
}

/// The tree of a text, without keys given twice, and what is wrong with the text as such.
fn read_tree(text: &str, format: Format) -> (Option<Node>, Vec<Diagnostic>) {
    let (mut tree, mut found) = match format {
        Format::Toml => toml::read(text, MOST_NODES),
        Format::Yaml => yaml::read(text, MOST_NODES),
    };
    let mut duplicates = Vec::new();
    if let Some(tree) = &mut tree {
        tree.take_duplicates(&mut duplicates);
        if !matches!(tree.value, tree::Value::Map(_)) {
            let message = "this is not a plan: a plan is a table of keys and values";
            found.push(Diagnostic::new(Code::WrongType, message).at(Some(0..0)).remedy("begin with `sweepline: 1`"));
            return (None, found);
        }
    }
    found.extend(duplicates.into_iter().map(|duplicate| {
        let first = (duplicate.first, "first here".to_owned());
        Diagnostic::duplicate_key(&duplicate.key, duplicate.second, Some(first))
    }));
    (tree, found)
}
