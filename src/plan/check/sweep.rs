//! Sweeps: which axes a matrix has, which values they take, and in which order sweeps run.

use std::collections::HashSet;

use super::scenario::has_no_turns;
use super::{Checker, out_of_range, steps};
use crate::plan::axis::{self, Kind};
use crate::plan::error::{Code, Diagnostic};
use crate::plan::foreign;
use crate::plan::model::{Plan, Scalar, Sweep, Table};
use crate::plan::shorthand::OneOrMany;
use crate::plan::suggest;
use crate::plan::tree::Step;

/// More runs than this in one sweep, excludes not counted, are a slip of the pen.
const MOST_RUNS: u128 = 1_000_000;

impl Checker<'_> {
    /// Checks every sweep and gives its matrix its one form.
    pub(super) fn sweeps(&mut self, plan: &mut Plan) {
        for name in plan.sweeps.keys().cloned().collect::<Vec<_>>() {
            let mut sweep = plan.sweeps[&name].clone();
            let before = self.found.len();
            self.first_names(&name, &mut sweep);
            self.values(&name, &sweep);
            self.imply(&name, &mut sweep);
            self.load(&name, &sweep);
            self.excludes(&name, &sweep);
            if self.found.len() == before {
                self.all_excluded(&name, &sweep);
            }
            self.pairs(plan, &name, &sweep);
            self.rest(&name, &sweep);
            plan.sweeps[&name] = sweep;
        }
        self.after(plan);
    }

    /// Puts every axis under its first name; what is no axis is reported and left out.
    fn first_names(&mut self, name: &str, sweep: &mut Sweep) {
        let mut matrix = Table::new();
        for (key, values) in std::mem::take(&mut sweep.matrix) {
            let at = steps!["sweeps", name, "matrix", key.as_str()];
            let Some(first) = axis::first_name(&key) else {
                self.no_axis(&at, &key);
                continue;
            };
            if first != key && self.is_given(&steps!["sweeps", name, "matrix"], first) {
                let message = format!("`{key}` and `{first}` are the same axis");
                let diagnostic = Diagnostic::new(Code::AxisTwice, message).remedy(format!("keep `{first}`"));
                self.report_key(&at, diagnostic);
                continue;
            }
            matrix.insert(first.to_owned(), values);
        }
        sweep.matrix = matrix;
        for (index, exclude) in sweep.exclude.iter_mut().enumerate() {
            let at = steps!["sweeps", name, "exclude", index];
            let mut fields = Table::new();
            for (key, values) in std::mem::take(exclude) {
                let first = axis::first_name(&key).unwrap_or(&key).to_owned();
                if fields.contains_key(&first) {
                    let message = format!("`{key}` and another field of this exclude are the same axis");
                    let diagnostic = Diagnostic::new(Code::AxisTwice, message).remedy(format!("keep `{first}`"));
                    self.report_key(&[&at[..], &steps![key.as_str()]].concat(), diagnostic);
                    continue;
                }
                fields.insert(first, values);
            }
            *exclude = fields;
        }
    }

    fn no_axis(&mut self, at: &[Step], key: &str) {
        let mut diagnostic = if key == "server" {
            let message =
                "a `server` axis needs an endpoint with `launch`: without one it would put two labels on one server";
            Diagnostic::new(Code::AxisNotPossible, message)
                .remedy("this version has no `launch`: start each server yourself and list it under `endpoints`")
        } else {
            let names = axis::AXES.iter().map(|(name, ..)| *name).chain(axis::ALIASES.iter().map(|(name, _)| *name));
            let remedy = match (foreign::axis_of(key), suggest::nearest(key, names.clone())) {
                (Some(remedy), _) => remedy,
                (_, Some(near)) => format!("did you mean `{near}`?"),
                _ => format!("the axes are {}", suggest::choices(names).replace(" or ", " and ")),
            };
            Diagnostic::new(Code::UnknownAxis, format!("`{key}` is not an axis")).remedy(remedy)
        };
        diagnostic.covers = Some(self.tree.walk(at).node.extent());
        self.report_key(at, diagnostic);
    }

    fn values(&mut self, name: &str, sweep: &Sweep) {
        let matrix = steps!["sweeps", name, "matrix"];
        let node = self.tree.walk(&matrix).node;
        if node.keys().next().is_none() {
            let remedy = "add axes: matrix: { endpoint: [...], model: [...], batch_size: [1, 8] }";
            self.empty(&matrix, format!("sweep `{name}` has an empty matrix"), remedy);
        }
        for (axis, values) in &sweep.matrix {
            let Some(kind) = axis::kind(axis) else { continue };
            if values.is_empty() {
                let at = [&matrix[..], &steps![axis.as_str()]].concat();
                self.empty(&at, format!("axis `{axis}` has no values"), "write at least one value, or remove the axis");
            }
            let mut seen = HashSet::new();
            for (index, value) in values.0.iter().enumerate() {
                let at = [&matrix[..], &steps![axis.as_str(), index]].concat();
                self.value(&at, axis, kind, value);
                if !seen.insert(value) {
                    let message = format!("`{value}` is twice on axis `{axis}`");
                    let remedy = "remove one; to run a cell several times write `repeats`";
                    self.report(&at, Diagnostic::new(Code::DuplicateValue, message).remedy(remedy));
                }
            }
        }
    }

    fn value(&mut self, at: &[Step], axis: &str, kind: Kind, value: &Scalar) {
        if !kind.takes(value) {
            let message = format!("a value of axis `{axis}` must be {}, not `{value}`", kind.wanted());
            return self.report(at, Diagnostic::new(Code::AxisValue, message).remedy(kind.remedy(value)));
        }
        if let (Kind::Name(table), Scalar::Text(value)) = (kind, value) {
            let known = self.names(table);
            if !known.contains(&value.as_str()) {
                self.unknown_name(at, axis, value, &known);
            }
        }
    }

    /// Writes out the axes that follow from the plan: its only endpoint, its only model, scenario B1.
    fn imply(&mut self, name: &str, sweep: &mut Sweep) {
        let mut matrix = Table::new();
        for (axis, table, default) in
            [("endpoint", "endpoints", None), ("model", "models", None), ("scenario", "scenarios", Some("B1"))]
        {
            if self.has_axis(name, axis) {
                continue;
            }
            let declared = self.declared(table);
            if let Some(only) = default.or(match declared[..] {
                [only] => Some(only),
                _ => None,
            }) {
                matrix.insert(axis.to_owned(), OneOrMany(vec![Scalar::Text(only.to_owned())]));
            } else if !declared.is_empty() {
                let message = format!("sweep `{name}` does not say which {axis}, and the plan has {}", declared.len());
                let remedy = format!("add {axis}: [{}] to its matrix", declared.join(", "));
                self.missing_axis(name, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
            }
        }
        matrix.extend(std::mem::take(&mut sweep.matrix));
        sweep.matrix = matrix;
    }

    /// Whether the file gives a sweep this axis under any of its names, right or wrong.
    fn has_axis(&self, name: &str, axis: &str) -> bool {
        let matrix = steps!["sweeps", name, "matrix"];
        self.is_given(&matrix, axis)
            || crate::plan::tree::alias(axis).is_some_and(|alias| self.is_given(&matrix, alias))
    }

    /// A key that is no axis was probably meant to be the one that is missing.
    fn missing_axis(&mut self, name: &str, diagnostic: Diagnostic) {
        let matrix = steps!["sweeps", name, "matrix"];
        let node = self.tree.walk(&matrix).node;
        let beside = self.tree.walk(&matrix[..2]).node.holes.iter().any(|hole| axis::first_name(hole).is_some());
        if node.keys().all(|key| axis::first_name(key).is_some()) && node.keys().next().is_some() && !beside {
            self.report_key(&matrix, diagnostic);
        }
    }

    fn load(&mut self, name: &str, sweep: &Sweep) {
        let open = self.has_axis(name, "qps");
        if !open && !self.has_axis(name, "batch_size") {
            let message = format!("sweep `{name}` says no load: neither `batch_size` nor `qps`");
            let remedy = "add batch_size: [1, 8] to its matrix for a closed loop, or qps: [1, 2] for an open one";
            self.missing_axis(name, Diagnostic::new(Code::NoLoad, message).remedy(remedy));
        } else if !open {
            let message = "`arrivals` spaces the requests of an open loop, and this sweep has no `qps`";
            let remedy = "remove `arrivals`, or add qps: [1, 2] to the matrix";
            let diagnostic = Diagnostic::new(Code::NoEffect, message).remedy(remedy);
            for at in [steps!["sweeps", name].as_slice(), &steps!["sweeps", name, "matrix"]] {
                if self.is_given(at, "arrivals") {
                    self.report_key(&[at, &steps!["arrivals"]].concat(), diagnostic.clone());
                }
            }
        }
        for field in ["arrivals", "connections", "stream"] {
            // Without `qps` the mistake about `arrivals` is another one, told above.
            let told = field == "arrivals" && !open;
            if !told && sweep.matrix.contains_key(field) && self.is_given(&steps!["sweeps", name], field) {
                let message = format!("`{field}` is given for the sweep and is an axis of its matrix");
                let diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two");
                self.report_key(&steps!["sweeps", name, field], diagnostic);
            }
        }
    }

    /// What depends on two axes at once.
    fn pairs(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let axis = |axis: &str| sweep.matrix.get(axis).map_or(&[][..], |values| &values.0);
        for endpoint in axis("endpoint") {
            for model in axis("model") {
                if !super::exclude::leaves_out(sweep, &[("endpoint", endpoint), ("model", model)]) {
                    self.model_on(plan, &model.to_string(), &endpoint.to_string());
                }
            }
        }
        for (index, turns) in axis("turns").iter().enumerate() {
            let single = matches!(turns, Scalar::Number(turns) if *turns <= 1u32.into());
            let idle: Vec<String> = axis("scenario")
                .iter()
                .filter(|scenario| !single && has_no_turns(&scenario.to_string(), &plan.scenarios))
                .filter(|scenario| !super::exclude::leaves_out(sweep, &[("scenario", scenario), ("turns", turns)]))
                .map(Scalar::to_string)
                .collect();
            if !idle.is_empty() {
                let idle = suggest::choices(idle.iter().map(String::as_str)).replace(" or ", " and ");
                let message =
                    format!("`turns: {turns}` does nothing with scenario {idle}: only conversations have turns");
                let remedy = "use scenario: [D] or one based on it, or exclude the pair";
                let at = steps!["sweeps", name, "matrix", "turns", index];
                self.report(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
        }
    }

    fn rest(&mut self, name: &str, sweep: &Sweep) {
        if sweep.repeats == 0 {
            self.report(&steps!["sweeps", name, "repeats"], out_of_range("repeats", "1 or more", 0));
        }
        let cells = sweep.matrix.values().map(|values| values.0.len() as u128).fold(1, u128::saturating_mul);
        let runs = cells.saturating_mul(u128::from(sweep.repeats));
        if runs > MOST_RUNS {
            let message = format!("sweep `{name}` has {runs} runs, more than the {MOST_RUNS} that are taken");
            let remedy = "shorten its axes, or lower `repeats`";
            self.report(&steps!["sweeps", name], Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        self.phases(&steps!["sweeps", name, "phases"], &sweep.phases);
        self.engine(&steps!["sweeps", name, "engine"], sweep.engine);
    }

    fn after(&mut self, plan: &Plan) {
        let known = self.declared("sweeps");
        for (name, sweep) in &plan.sweeps {
            for (index, other) in sweep.after.0.iter().enumerate() {
                if !known.contains(&other.as_str()) {
                    let at = steps!["sweeps", name.as_str(), "after", index];
                    let others: Vec<&str> = known.iter().copied().filter(|known| *known != name.as_str()).collect();
                    self.unknown_name(&at, "sweep", other, &others);
                }
            }
        }
        let mut reported: Vec<Vec<&str>> = Vec::new();
        for name in plan.sweeps.keys() {
            let Some(circle) = circle_of_after(plan, name) else { continue };
            let mut members = circle.clone();
            members.sort_unstable();
            members.dedup();
            if !reported.contains(&members) {
                let message = format!("sweeps wait for each other in a circle: {}", circle.join(" → "));
                let remedy = "remove one `after` of the circle; a → b means that a waits for b";
                let at = steps!["sweeps", name.as_str(), "after"];
                self.report_key(&at, Diagnostic::new(Code::Circle, message).remedy(remedy));
                reported.push(members);
            }
        }
    }
}

/// The shortest way along `after` from a sweep back to itself.
fn circle_of_after<'a>(plan: &'a Plan, start: &'a str) -> Option<Vec<&'a str>> {
    let mut ways: std::collections::VecDeque<Vec<&str>> = [vec![start]].into();
    let mut seen = HashSet::new();
    while let Some(way) = ways.pop_front() {
        let Some(sweep) = plan.sweeps.get(*way.last()?) else { continue };
        for next in &sweep.after.0 {
            let longer = [&way[..], &[next.as_str()]].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.as_str()) {
                ways.push_back(longer);
            }
        }
    }
    None
}
