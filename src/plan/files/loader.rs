//! Merges all sources into one tree: the plan's text, its fragments, values from the command line, and the
//! values of templates.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::plan::diagnostic::error::{Code, Diagnostic, PlanErrors};
use crate::plan::diagnostic::mask::Mask;
use crate::plan::diagnostic::suggest;
use crate::plan::files::disk::Files;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::read::reader::read;
use crate::plan::read::{lossy_values, recover};
use crate::plan::syntax::merge::merge;
use crate::plan::syntax::{aliases, server_axis, set, toml, yaml};
use crate::plan::template;
use crate::plan::text::format::Format;
use crate::plan::text::source::Sources;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Step, Value};
use crate::units::regular_file;

/// Maximum number of bytes of text in a plan, over all files.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Maximum number of values in a plan. Values behind a YAML alias count each time the alias is used.
const MOST_NODES: usize = 50_000;

/// Maximum number of fragments to read.
const MOST_FRAGMENTS: usize = 64;

/// Maximum number of values that merges may process, counting repetitions. The limit stops plans whose
/// fragments use each other too many times.
const MOST_MERGED: usize = 500_000;

/// Options that affect loading, in addition to the plan's own text.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Values set on the command line, each `path=value`; for each path, the last value takes
    /// precedence.
    pub set: Vec<String>,
    /// Whether files outside the plan's folder are allowed: fragments, data, and secrets.
    pub allow_outside: bool,
    /// Number of processes that send the load together, if set on the command line.
    pub workers: Option<u32>,
}

/// Reads the texts of a plan, and holds the texts, values and errors found so far.
pub(crate) struct Loader<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) options: &'f Options,
    /// The plan's folder, with links resolved.
    pub(super) root: Option<PathBuf>,
    /// The files that are being read, each of which uses the next one. Each path is stored both with
    /// links resolved and as written.
    chain: Vec<(PathBuf, PathBuf)>,
    /// Fragments that were read; `None` for fragments with errors.
    done: HashMap<PathBuf, Option<Node>>,
    pub(super) nodes_left: usize,
    merges_left: usize,
    pub sources: Sources,
    pub(crate) mask: Mask,
    pub found: Vec<Diagnostic>,
    /// Whether a part of the tree is missing, so that properties of the whole plan cannot be checked.
    pub incomplete: bool,
}

impl<'f> Loader<'f> {
    pub(crate) fn new(files: &'f dyn Files, options: &'f Options) -> Loader<'f> {
        Loader {
            files,
            options,
            root: None,
            chain: Vec::new(),
            done: HashMap::new(),
            nodes_left: MOST_NODES,
            merges_left: MOST_MERGED,
            sources: Sources::default(),
            mask: Mask::default(),
            found: Vec::new(),
            incomplete: false,
        }
    }

    /// The complete tree of a plan; `None` if the errors in its text leave no usable tree.
    pub(crate) fn tree(&mut self, name: &Path, text: &str, format: Format) -> Option<Node> {
        let own = self.text(name, text, format)?;
        let folder = name.parent().unwrap_or(Path::new(""));
        self.root = self.files.canonical(folder).ok();
        let canonical = self.files.canonical(name).unwrap_or_else(|_| name.to_owned());
        self.chain.push((canonical, name.to_owned()));
        let mut tree = self.with_fragments(own, folder, true);
        self.chain.pop();
        self.set(&mut tree);
        let text = self.sources.text();
        self.found.extend(lossy_values::switches(&mut tree, text));
        self.found.extend(template::expand(&mut tree, text));
        server_axis::settle(&mut tree);
        self.found.extend(lossy_values::lost(&mut tree, text));
        Some(tree)
    }

    /// Reads one more text. Returns its tree, with places in the concatenated texts; `None` if the errors in
    /// the text leave no usable tree.
    fn text(&mut self, name: &Path, text: &str, format: Format) -> Option<Node> {
        let is_plan = self.chain.is_empty();
        let (mut tree, found) = read_tree(text, format, self.nodes_left, is_plan);
        let mut mask = Mask::new(text, tree.as_ref());
        if tree.is_some() && !found.is_empty() {
            // The second value of a duplicate key is not in the tree, so the lines are also searched for
            // secrets.
            mask.add_lines(text);
        }
        let start = self.sources.add(name, text);
        self.mask.join(mask, start);
        self.found.extend(found.into_iter().map(|diagnostic| diagnostic.shift(start)));
        if let Some(tree) = &mut tree {
            tree.shift(start);
            self.nodes_left = self.nodes_left.saturating_sub(tree.count());
        }
        tree
    }

    /// Merges a tree over the fragments that it uses. Later fragments override earlier ones.
    fn with_fragments(&mut self, mut tree: Node, folder: &Path, is_plan: bool) -> Node {
        let mut below: Option<Node> = None;
        let mut seen: Vec<PathBuf> = Vec::new();
        for (path, span) in self.uses(&mut tree, is_plan) {
            let Some(fragment) = self.fragment(&folder.join(&path), &path, &span, &mut seen) else {
                self.incomplete = true;
                continue;
            };
            below = Some(match below {
                Some(below) => self.merged(fragment, below, &span),
                None => fragment,
            });
        }
        match below {
            Some(below) => {
                let span = tree.entry("use").map_or(tree.span.clone(), |entry| entry.key_span.clone());
                let mut merged = self.merged(tree, below, &span);
                if !is_plan {
                    merged.take("use");
                }
                merged
            }
            None => {
                if !is_plan {
                    tree.take("use");
                }
                tree
            }
        }
    }

    fn merged(&mut self, over: Node, under: Node, span: &Span) -> Node {
        let work = over.count() + under.count();
        if work > self.merges_left {
            self.merges_left = 0;
            self.incomplete = true;
            let message = "the fragments use each other too many times";
            let remedy = "use each fragment in one place";
            self.found.push(Diagnostic::new(Code::TooLarge, message).at(Some(span.clone())).remedy(remedy));
            return over;
        }
        self.merges_left -= work;
        merge(over, under)
    }

    /// The paths of a tree's `use`, each with its place. Values that are not paths are reported and
    /// removed.
    fn uses(&mut self, tree: &mut Node, is_plan: bool) -> Vec<(String, Span)> {
        let Some(entry) = tree.entry("use") else { return Vec::new() };
        if let Err(error) = read::<OneOrMany<String>>(&entry.node) {
            // In the plan itself, the error will be found again when the whole plan is read.
            if !is_plan {
                let path = [vec![Step::from("use")], error.path()].concat();
                self.found.extend(recover::describe(&error, &path, tree, self.sources.text()));
                tree.take("use");
            }
            self.incomplete = true;
            return Vec::new();
        }
        let items = match &entry.node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let path = |node: &Node| match &node.value {
            Value::Text(text) => Some((text.clone(), node.span.clone())),
            _ => None,
        };
        items.iter().filter_map(path).collect()
    }

    /// A fragment, merged over the fragments that it uses; `None` if it has errors, which are reported. It is
    /// read once, however often it is used.
    fn fragment(&mut self, path: &Path, written: &str, span: &Span, seen: &mut Vec<PathBuf>) -> Option<Node> {
        let mistake = |diagnostic: Diagnostic| diagnostic.at(Some(span.clone()));
        let canonical = match self.find(path, written, seen) {
            Ok(canonical) => canonical,
            Err(diagnostic) => {
                self.found.push(mistake(*diagnostic));
                return None;
            }
        };
        seen.push(canonical.clone());
        if let Some(known) = self.done.get(&canonical) {
            return known.clone();
        }
        let tree = match self.bytes_of(path, written) {
            Ok((text, format)) => {
                self.chain.push((canonical.clone(), path.to_owned()));
                let own = self.text(path, &text, format);
                own.as_ref().inspect(|own| self.found.extend(other_version(own)));
                let folder = path.parent().unwrap_or(Path::new(""));
                let tree = own.map(|own| self.with_fragments(own, folder, false));
                self.chain.pop();
                tree
            }
            Err(diagnostic) => {
                self.found.push(mistake(*diagnostic));
                None
            }
        };
        self.done.insert(canonical, tree.clone());
        tree
    }

    /// The canonical path of a fragment, or the reason why it cannot be used here.
    fn find(&self, path: &Path, written: &str, seen: &[PathBuf]) -> Result<PathBuf, Box<Diagnostic>> {
        let canonical = self.files.canonical(path).map_err(|error| Box::new(self.not_found(path, written, &error)))?;
        if !self.may_read(&canonical) {
            let message = format!("the fragment `{written}` is outside the plan's folder");
            let remedy = "put it into the plan's folder, or allow it with --allow-outside";
            return Err(Diagnostic::new(Code::PathOutside, message).remedy(remedy).into());
        }
        if let Some(at) = self.chain.iter().position(|(other, _)| *other == canonical) {
            let names = self.chain[at..].iter().map(|(_, name)| name.as_path()).chain([path]);
            let circle: Vec<String> = names.map(|name| name.display().to_string()).collect();
            let message = format!("circular `use` of files: {}", circle.join(" → "));
            return Err(Diagnostic::new(Code::Circle, message).remedy("remove one `use` of the cycle").into());
        }
        if seen.contains(&canonical) {
            let message = format!("the fragment `{written}` is used twice here");
            return Err(Diagnostic::new(Code::DuplicateValue, message).remedy("keep the last one, which wins").into());
        }
        Ok(canonical)
    }

    /// The text and the format of a fragment.
    fn bytes_of(&self, path: &Path, written: &str) -> Result<(String, Format), Box<Diagnostic>> {
        let Some(format) = Format::of(path) else {
            let message = format!("`{written}` does not have the extension of a fragment");
            return Err(Diagnostic::new(Code::Fragment, message)
                .remedy("a fragment must be a .yaml, .yml or .toml file")
                .into());
        };
        if self.done.len() >= MOST_FRAGMENTS {
            let message = format!("a plan uses at most {MOST_FRAGMENTS} fragments");
            return Err(Diagnostic::new(Code::TooLarge, message).remedy("put several fragments into one file").into());
        }
        Ok((self.read_text(path, &format!("the fragment `{written}`"), Code::Fragment)?, format))
    }

    /// Reads the text of a file, unless the plan would then exceed its size limit. `what` names the file in
    /// errors, which have the code `code`.
    pub(super) fn read_text(&self, path: &Path, what: &str, code: Code) -> Result<String, Box<Diagnostic>> {
        let most = MOST_BYTES.saturating_sub(self.sources.text().len());
        let bytes = self.files.read(path, most + 1).map_err(|error| Box::new(cannot_read(what, code, &error)))?;
        if bytes.len() > most {
            let message = format!("with {what} the plan has more than {MOST_BYTES} bytes");
            let remedy = if code == Code::Fragment { "use smaller fragments" } else { "use smaller files" };
            return Err(Diagnostic::new(Code::TooLarge, message).remedy(remedy).into());
        }
        String::from_utf8(bytes).map_err(|error| {
            let message = format!("line {} of {what} is not UTF-8 text", bad_line(&error));
            Diagnostic::new(code, message).remedy("save the file as UTF-8").into()
        })
    }

    /// The source from which files are read.
    pub(crate) fn files(&self) -> &'f dyn Files {
        self.files
    }

    /// Whether the file at this canonical path may be read.
    pub(crate) fn may_read(&self, canonical: &Path) -> bool {
        self.options.allow_outside || self.root.as_ref().is_some_and(|root| canonical.starts_with(root))
    }

    fn not_found(&self, path: &Path, written: &str, error: &std::io::Error) -> Diagnostic {
        if error.kind() != std::io::ErrorKind::NotFound {
            return cannot_read(&format!("the fragment `{written}`"), Code::Fragment, error);
        }
        let diagnostic = Diagnostic::new(Code::Fragment, format!("the fragment `{written}` does not exist"));
        let folder = path.parent().unwrap_or(Path::new(""));
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(canonical) = self.files.canonical(folder) else {
            let from = "paths in `use` are relative to the file that names them";
            return diagnostic.remedy(format!("the folder {} does not exist; {from}", shown.display()));
        };
        // The error must not reveal anything about other files on this machine.
        if !self.may_read(&canonical) {
            return diagnostic.remedy("put it into the plan's folder");
        }
        let names = self.files.names(folder);
        let wrong = path.file_name().unwrap_or_default().to_string_lossy();
        let readable = names.iter().map(String::as_str).filter(|name| Format::of(Path::new(name)).is_some());
        diagnostic.remedy(match suggest::nearest(&wrong, readable) {
            Some(near) => format!("did you mean `{}`?", Path::new(written).with_file_name(near).display()),
            None => format!("no file in {} has a similar name", shown.display()),
        })
    }

    /// Applies the values from the command line to the tree.
    fn set(&mut self, tree: &mut Node) {
        if self.options.set.is_empty() {
            return;
        }
        let read = set::read(&self.options.set, self.nodes_left);
        let start = self.sources.add(Path::new("--set"), &read.text);
        self.mask.join(read.mask, start);
        self.found.extend(read.found.into_iter().map(|diagnostic| diagnostic.shift(start)));
        for change in read.changes {
            self.found.extend(set::apply(tree, change.shift(start)).err().map(|diagnostic| *diagnostic));
        }
        self.found.extend(aliases::settle(tree));
    }

    /// Returns the errors, without those that may only be consequences of a missing part.
    pub(crate) fn into_errors(mut self) -> PlanErrors {
        const UNSURE: [Code; 7] = [
            Code::MissingField,
            Code::UnknownName,
            Code::MissingAxis,
            Code::NoLoad,
            Code::Empty,
            Code::NoServer,
            Code::NoModelId,
        ];
        if self.incomplete {
            self.found.retain(|diagnostic| !UNSURE.contains(&diagnostic.code));
        }
        PlanErrors::new(&self.sources, &self.mask, self.found)
    }
}

fn cannot_read(what: &str, code: Code, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(code, format!("{what} cannot be read: {error}")).remedy(regular_file::remedy(error))
}

/// The number of the first line that is not valid UTF-8, counted from 1.
pub(crate) fn bad_line(error: &std::string::FromUtf8Error) -> usize {
    let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Reports a fragment with a different version of the format. In the merged tree, the plan's own version
/// would replace it.
fn other_version(tree: &Node) -> Option<Diagnostic> {
    let Entry { node, .. } = tree.entry("sweepline")?;
    let other = matches!(node.value, Value::Int(version) if version != 1);
    let message = "this sweepline reads version 1 of the plan format, but the fragment has another version";
    other.then(|| Diagnostic::new(Code::Version, message).at(Some(node.span.clone())).remedy("write `sweepline: 1`"))
}

/// Parses a text; returns its tree, with duplicate keys removed, and the errors in the text.
fn read_tree(text: &str, format: Format, most_nodes: usize, is_plan: bool) -> (Option<Node>, Vec<Diagnostic>) {
    let (mut tree, mut found) = match format {
        Format::Toml => toml::read(text, most_nodes),
        Format::Yaml => yaml::read(text, most_nodes),
    };
    let mut duplicates = Vec::new();
    if let Some(tree) = &mut tree {
        tree.take_duplicates(&mut duplicates);
        found.extend(aliases::settle(tree));
        if !matches!(tree.value, Value::Map(_)) {
            let (message, remedy) = match (is_plan, &tree.value) {
                (true, Value::Null) => ("this file is empty: it contains no plan", "begin with `sweepline: 1`"),
                (true, _) => ("this is not a plan: a plan is a table of keys and values", "begin with `sweepline: 1`"),
                (false, _) => {
                    ("this is not a fragment: a fragment is a table of a plan's keys", "begin with `endpoints:`")
                }
            };
            found.push(Diagnostic::new(Code::WrongType, message).at(Some(0..0)).remedy(remedy));
            return (None, found);
        }
    }
    found.extend(duplicates.into_iter().map(|duplicate| {
        let first = (duplicate.first, "first here".to_owned());
        Diagnostic::duplicate_key(&duplicate.key, duplicate.second, Some(first))
    }));
    (tree, found)
}
