//! Finds and reads files that a plan names but that are not plans themselves, such as tables whose numbers
//! become part of the plan.

use std::path::{Path, PathBuf};

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::mask::Mask;
use crate::plan::files::loader::Loader;
use crate::plan::text::span::Span;

/// The content of a file and its canonical path, or the reason why it cannot be read.
pub(crate) type Found<T> = Result<(T, PathBuf), Box<Diagnostic>>;

impl Loader<'_> {
    /// The location of a file that is named at `span`, both as a path relative to the text that
    /// names it and as the canonical path.
    pub(crate) fn locate(&self, written: &str, span: &Span) -> Result<(PathBuf, PathBuf), Box<Diagnostic>> {
        let by = self.sources.of(span.start).name;
        let by = if by == Path::new("--set") { self.sources.first_name() } else { by };
        let path = by.parent().unwrap_or(Path::new("")).join(written);
        let canonical = self.files.canonical(&path);
        // The error must not reveal whether files elsewhere on this machine exist.
        let inside = |path: &Path| self.root.as_ref().is_some_and(|root| path.starts_with(root));
        let is_inside = match &canonical {
            Ok(canonical) => inside(canonical),
            Err(_) => self.folder_of_missing(&path).is_some_and(|folder| inside(&folder)),
        };
        if !is_inside && !self.options.allow_outside {
            let message = format!("the file `{written}` is not in the plan's folder");
            let remedy = "put it there, or allow other folders with --allow-outside";
            return Err(Diagnostic::new(Code::PathOutside, message).remedy(remedy).into());
        }
        let canonical = canonical.map_err(|error| {
            let message = format!("the file `{written}` cannot be read: {error}");
            Diagnostic::new(Code::File, message).remedy("paths are relative to the file that names them")
        })?;
        Ok((path, canonical))
    }

    /// The canonical path of the deepest existing folder on the path to a missing file.
    fn folder_of_missing(&self, path: &Path) -> Option<PathBuf> {
        path.ancestors().skip(1).find_map(|folder| self.files.canonical(folder).ok())
    }

    /// The canonical path of a file on the local disk; `what` is the word for the file in errors.
    pub(crate) fn on_disk(&self, what: &str, written: &str, span: &Span) -> Result<PathBuf, Box<Diagnostic>> {
        let (_, canonical) = self.locate(written, span)?;
        self.files.local(&canonical).ok_or_else(|| {
            let message = format!("the {what} `{written}` can only be read from the disk, not from a revision");
            Diagnostic::new(Code::File, message).remedy("compare two files: sweepline diff A B").into()
        })
    }

    /// Adds the text of a file that is not a plan, so that errors in this file have a place.
    pub(crate) fn add_text(&mut self, path: &Path, written: &str) -> Result<Span, Box<Diagnostic>> {
        let text = self.read_text(path, &format!("the file `{written}`"), Code::File)?;
        let start = self.sources.add(path, &text);
        self.mask.join(Mask::new(&text, None), start);
        Ok(start..start + text.len())
    }

    /// Subtracts `count` from the number of values that the plan may still have; returns false if too few are
    /// left.
    pub(crate) fn take_nodes(&mut self, count: usize) -> bool {
        let left = self.nodes_left.checked_sub(count);
        self.nodes_left = left.unwrap_or(0);
        left.is_some()
    }
}
