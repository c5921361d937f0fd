//! A plan that has been read and checked, and the places where its values are written.

use std::fmt;
use std::path::Path;

use crate::plan::diagnostic::error::{Code, Diagnostic, PlanErrors};
use crate::plan::diagnostic::mask::Mask;
use crate::plan::model::plan::ResolvedPlan;
use crate::plan::model::shorthand::Shorthand;
use crate::plan::text::place::Place;
use crate::plan::text::source::Sources;
use crate::plan::text::span::Span;
use crate::plan::text::tree;
use crate::plan::text::tree::{Node, Step};

/// A plan without errors, and the places where its values are written.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The plan.
    pub plan: ResolvedPlan,
    pub(super) sources: Sources,
    pub(super) tree: Node,
    pub(super) mask: Mask,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The place where the value is written.
    pub place: Place,
    /// The variables that the template of the value uses, directly or through other variables, each with the
    /// place where it is set.
    pub vars: Vec<(String, Place)>,
}

impl fmt::Display for Origin {
    /// Formats the origin as `plan.yaml:30:12, measure at --set:1:14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        self.vars.iter().try_for_each(|(name, place)| write!(f, ", {name} at {place}"))
    }
}

impl Loaded {
    /// The place of the deepest existing part of a path into the plan. This is the place of the value if it
    /// is a scalar, or of its key if it is a table or a list. `None` for the plan as a whole.
    pub fn place(&self, path: &[Step]) -> Option<Place> {
        self.origin(path).map(|origin| origin.place)
    }

    /// The origin of the deepest existing part of a path into the plan; `None` for the plan as a whole. For an
    /// axis that the plan implies, the origin is the declaration of its only value.
    pub fn origin(&self, path: &[Step]) -> Option<Origin> {
        let implied = self.implied(path);
        let path = implied.as_deref().unwrap_or(path);
        let found = self.tree.walk(path);
        let is_root = std::ptr::eq(found.node, &self.tree);
        let place = |span: &Span| self.sources.place(span.start);
        let vars = found.node.via.iter().map(|(name, span)| (name.clone(), place(span))).collect();
        (!is_root).then(|| Origin { place: place(&found.span()), vars })
    }

    /// The path of the declaration that implies the axis at `path`; `None` if the matrix lists the axis, or if
    /// nothing implies it.
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

    /// The origin of the value at exactly this path; `None` if the plan uses the default.
    pub fn written(&self, path: &[Step]) -> Option<Origin> {
        let found = self.tree.walk(path);
        let is_list = matches!(found.node.value, tree::Value::List(_));
        let is_leaf = !is_list && !matches!(found.node.value, tree::Value::Map(_));
        let is_there = match &path[found.depth..] {
            [] => true,
            // A single value or range may be written instead of a list, and a single value instead of a table
            // with one field.
            [Step::Index(0)] => !is_list,
            // A text such as `gamma cv 2` may be written instead of a table, and `cv` and `burstiness` may
            // each be written instead of the other.
            [Step::Key(field), ..] if field == "gamma" => is_leaf,
            [Step::Key(field)] if field == "cv" || field == "burstiness" => {
                found.node.entry("cv").or(found.node.entry("burstiness")).is_some()
            }
            [Step::Key(field)] => is_leaf && Shorthand::is_field(field),
            _ => false,
        };
        is_there.then(|| self.origin(path))?
    }

    /// The path at which `--set` replaces the value at `path`: where a single value is written instead of a
    /// table or a list, as in `measure: 60s`, it is the place of that value.
    pub fn settable<'p>(&self, path: &'p [Step]) -> &'p [Step] {
        let found = self.tree.walk(path);
        let is_leaf = !matches!(found.node.value, tree::Value::List(_) | tree::Value::Map(_));
        if is_leaf && found.depth > 0 { &path[..found.depth] } else { path }
    }

    /// Creates an error at the value at `path`, for a problem that shows only when the plan is expanded into
    /// runs.
    pub fn refuse(&self, path: &[Step], code: Code, message: String, remedy: &str) -> PlanErrors {
        let span = self.tree.walk(path).span();
        let diagnostic = Diagnostic::new(code, message).remedy(remedy).at(Some(span));
        PlanErrors::new(&self.sources, &self.mask, vec![diagnostic])
    }

    /// The file from which the plan was read.
    pub fn file(&self) -> &Path {
        self.sources.first_name()
    }
}
