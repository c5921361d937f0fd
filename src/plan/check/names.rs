//! The names of axes. Every axis of a sweep is renamed to its primary name wherever it appears. Unknown
//! axes are reported and removed, so that the rest can be checked.

use std::collections::HashSet;

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::axis;
use crate::plan::model::matrix::{Axis, Item, What};
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::read::other_tools;
use crate::plan::text::alias::ALIASES;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Renames every axis of a sweep to its primary name.
    pub(super) fn first_names(&mut self, name: &str, sweep: &mut Sweep) {
        let at = |words: &[Step]| [&steps!["sweeps", name], words].concat();
        let mut matrix = Table::new();
        for (key, mut axis) in std::mem::take(&mut sweep.matrix) {
            if let Some(first) = self.axis_name(&at(&steps!["matrix", key.as_str()]), &key, &axis) {
                self.inside(&at(&steps!["matrix", key.as_str()]), &mut axis);
                matrix.insert(first, axis);
            }
        }
        sweep.matrix = matrix;
        if let Some(when) = &mut sweep.when {
            self.rename(&at(&steps!["when"]), when);
        }
        for (index, exclude) in sweep.exclude.iter_mut().enumerate() {
            self.rename(&at(&steps!["exclude", index]), exclude);
        }
        for (index, extend) in sweep.extend.iter_mut().enumerate() {
            self.rename(&at(&steps!["extend", index, "when"]), &mut extend.when);
            self.rename(&at(&steps!["extend", index, "with"]), &mut extend.with);
            self.only_axes(&at(&steps!["extend", index, "with"]), &mut extend.with);
        }
        for (index, cell) in sweep.add.iter_mut().enumerate() {
            self.rename(&at(&steps!["add", index]), cell);
            self.only_axes(&at(&steps!["add", index]), cell);
        }
        self.given_once(name, sweep);
    }

    /// The primary name of an axis of the matrix; `None` if the axis has to be removed.
    fn axis_name(&mut self, at: &[Step], key: &str, written: &Axis) -> Option<String> {
        let is_table = |item: &Item| matches!(item.what, What::Fields(_));
        let is_group = match written {
            Axis::Zip(_) => true,
            Axis::Values(items) => items.iter().any(is_table),
        };
        let Some(first) = axis::first_name(key) else {
            if is_group {
                return self.is_all_tables(at, key, written).then(|| key.to_owned());
            }
            // A list whose elements were rejected may have been a group of several axes.
            if !written.is_empty() || !self.tree.walk(at).node.is_damaged() {
                self.no_axis(at, key);
            }
            return None;
        };
        if is_group {
            let message = format!("`{key}` is the name of a single axis; a group of axes needs another name");
            let remedy =
                "choose another name for the group, like shape: { zip: { prompt_tokens: […], output_tokens: […] } }";
            self.report_key(at, Diagnostic::new(Code::AxisValue, message).remedy(remedy));
            return None;
        }
        let parents = &at[..at.len() - 1];
        if first != key && self.is_given(parents, first) {
            let message = format!("`{key}` and `{first}` are the same axis");
            let diagnostic = Diagnostic::new(Code::AxisTwice, message).remedy(format!("keep `{first}`"));
            self.report_key(at, diagnostic);
            return None;
        }
        Some(first.to_owned())
    }

    /// Whether each element of an axis group is a table of axes.
    fn is_all_tables(&mut self, at: &[Step], key: &str, written: &Axis) -> bool {
        let Axis::Values(items) = written else { return true };
        let before = self.found.len();
        for (index, _) in items.iter().enumerate().filter(|(_, item)| !matches!(item.what, What::Fields(_))) {
            let message = format!("the values of `{key}` are tables of axes, but this value is not a table");
            let remedy = "write it as { prompt_tokens: 256, output_tokens: 1024 }";
            self.report(&[at, &steps![index]].concat(), Diagnostic::new(Code::AxisValue, message).remedy(remedy));
        }
        self.found.len() == before
    }

    /// Renames the axes that occur inside an axis to their primary names: in the lists of a zip, in tables of
    /// axes, and in conditions.
    fn inside(&mut self, at: &[Step], axis: &mut Axis) {
        match axis {
            Axis::Zip(zip) => {
                let lists = [at, &steps!["zip"]].concat();
                self.rename(&lists, &mut zip.lists);
                self.only_axes(&lists, &mut zip.lists);
                if let Some(when) = &mut zip.when {
                    self.rename(&[at, &steps!["when"]].concat(), when);
                }
            }
            Axis::Values(items) => {
                for (index, Item { what, when }) in items.iter_mut().enumerate() {
                    let at = [at, &steps![index]].concat();
                    match what {
                        What::Fields(fields) => self.rename(&at, fields),
                        What::Taken(take) => first_names_of(&mut take.over.0),
                        What::Values(_) | What::Range(_) => {}
                    }
                    if let Some(when) = when {
                        self.rename(&[&at[..], &steps!["when"]].concat(), when);
                    }
                }
            }
        }
    }

    /// Renames the fields of a table to their primary names; if two names refer to the same axis, the first
    /// one is kept.
    fn rename<T>(&mut self, at: &[Step], table: &mut Table<T>) {
        if table.keys().all(|key| axis::first_name(key).is_none_or(|first| first == key)) {
            return;
        }
        let mut renamed = Table::new();
        for (key, value) in std::mem::take(table) {
            let first = axis::first_name(&key).unwrap_or(&key).to_owned();
            if renamed.contains_key(&first) {
                let message = format!("`{key}` and another key of this table are the same axis");
                let diagnostic = Diagnostic::new(Code::AxisTwice, message).remedy(format!("keep `{first}`"));
                self.report_key(&[at, &steps![key.as_str()]].concat(), diagnostic);
                continue;
            }
            renamed.insert(first, value);
        }
        *table = renamed;
    }

    /// Removes entries that are not axes.
    fn only_axes<T>(&mut self, at: &[Step], table: &mut Table<T>) {
        for key in table.keys().filter(|key| axis::first_name(key).is_none()) {
            self.no_axis(&[at, &steps![key.as_str()]].concat(), key);
        }
        table.retain(|key, _| axis::first_name(key).is_some());
    }

    /// Reports axes that two entries of the matrix set, and removes the second entry.
    fn given_once(&mut self, name: &str, sweep: &mut Sweep) {
        let mut given: Vec<(String, String)> = Vec::new();
        let mut twice: HashSet<String> = HashSet::new();
        for (key, axis) in &sweep.matrix {
            let fields = fields(key, axis);
            for field in &fields {
                let Some((_, first)) = given.iter().find(|(known, _)| known == field) else { continue };
                let message = format!("`{field}` is set by axis `{first}` and by axis `{key}`");
                let remedy = format!("keep one of the two axes; a value of `{field}` can come from only one axis");
                let at = steps!["sweeps", name, "matrix", key.as_str()];
                let mut diagnostic = Diagnostic::new(Code::AxisTwice, message).remedy(remedy);
                diagnostic.related.extend(self.key_of(&steps!["sweeps", name, "matrix", first.as_str()], "first here"));
                self.report_key(&at, diagnostic);
                twice.insert(key.clone());
                break;
            }
            given.extend(fields.into_iter().map(|field| (field.to_owned(), key.clone())));
        }
        sweep.matrix.retain(|key, _| !twice.contains(key));
    }

    pub(super) fn no_axis(&mut self, at: &[Step], key: &str) {
        let mut diagnostic = if key == "server" || key.starts_with(axis::SERVER_PREFIX) {
            let message = format!(
                "`{key}` cannot be an axis like this: a value of the axis `server` is a table of flags, and \
                 `server.FLAG` varies one flag"
            );
            Diagnostic::new(Code::UnknownAxis, message).remedy(
                "write server: [{ max_num_seqs: 64 }, { max_num_seqs: 128 }], or server.max_num_seqs: [64, 128]",
            )
        } else {
            let names = axis::AXES.iter().map(|(name, ..)| *name).chain(ALIASES.iter().map(|(name, _)| *name));
            let remedy = match (other_tools::axis_of(key), suggest::nearest(key, names.clone())) {
                (Some(remedy), _) => remedy,
                (_, Some(near)) => format!("did you mean `{near}`?"),
                _ => format!("the axes are {}", suggest::choices(names).replace(" or ", " and ")),
            };
            Diagnostic::new(Code::UnknownAxis, format!("`{key}` is not an axis")).remedy(remedy)
        };
        diagnostic.covers = Some(self.tree.walk(at).node.extent());
        self.report_key(at, diagnostic);
    }
}

/// Renames axes to their primary names; unknown names are kept.
fn first_names_of(names: &mut [String]) {
    for name in names {
        if let Some(first) = axis::first_name(name) {
            *name = first.to_owned();
        }
    }
}

/// The fields that an entry of a matrix sets, each once.
pub(super) fn fields<'a>(key: &'a str, axis: &'a Axis) -> Vec<&'a str> {
    let mut fields: Vec<&str> = match axis {
        Axis::Zip(zip) => zip.lists.keys().map(String::as_str).collect(),
        Axis::Values(items) => {
            let of_item = |item: &'a Item| match &item.what {
                What::Fields(table) => table.keys().map(String::as_str).collect(),
                What::Values(_) | What::Range(_) | What::Taken(_) => vec![key],
            };
            items.iter().flat_map(of_item).collect()
        }
    };
    let mut seen = HashSet::new();
    fields.retain(|field| seen.insert(*field));
    fields
}
