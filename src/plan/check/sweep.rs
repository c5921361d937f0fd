//! Checks of sweeps: the axes of a matrix, their values, and the order in which sweeps run.

use std::collections::HashSet;

use super::checker::{Checker, out_of_range, steps};
use super::condition::CheckedSweep;
use super::names::fields;
use super::profiled::brings_load;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::matrix::axes::GridError;
use crate::plan::matrix::grid::Grid;
use crate::plan::model::axis;
use crate::plan::model::content::SCENARIO;
use crate::plan::model::matrix::Axis;
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::text::alias::ALIASES;
use crate::plan::text::tree::Step;

/// Maximum value of `max_cells` for any plan. It is limited because cells are kept in memory.
const MOST_CELLS: u32 = 10_000_000;

/// Maximum number of names that a remedy lists.
const MOST_NAMED: usize = 8;

impl Checker<'_> {
    /// Checks every sweep; returns the sweeps with normalized matrices.
    pub(super) fn sweeps(&mut self, plan: &Plan) -> Table<Sweep> {
        let mut sizes: Vec<(String, u128)> = Vec::new();
        let mut resolved = Table::new();
        for (name, written) in &plan.sweeps {
            let mut sweep = written.clone();
            let axes = sweep.matrix.len();
            self.first_names(name, &mut sweep);
            self.values(name, &mut sweep);
            self.search(plan, name, &mut sweep);
            self.stop(plan, name, &sweep);
            self.optimize(plan, name, &sweep);
            let damaged = self.tree.walk(&steps!["sweeps", name.as_str(), "matrix"]).node.is_damaged();
            let lacks_axes = sweep.matrix.len() < axes || damaged;
            self.imply(name, &mut sweep, lacks_axes);
            self.replays(plan, name, &sweep);
            self.data_of_sweep(plan, name, &sweep);
            if sweep.measures_start() {
                self.measures_start(plan, name, &sweep);
            } else {
                let brings_load = brings_load(plan, &sweep);
                self.load(name, &sweep, lacks_axes, brings_load);
            }
            self.grid(plan, name, &sweep, lacks_axes);
            self.rest(name, &sweep);
            comes_after(&mut sweep);
            sizes.push((name.clone(), cells(&sweep).saturating_mul(u128::from(sweep.repeats.at_most))));
            resolved.insert(name.clone(), sweep);
        }
        self.size(plan, &sizes);
        self.after(plan);
        self.circles(&resolved);
        self.questions(plan, &resolved);
        resolved
    }

    /// Runs the checks that need all axes at once.
    fn grid(&mut self, plan: &Plan, name: &str, sweep: &Sweep, lacks_axes: bool) {
        match Grid::new(sweep) {
            Ok(grid) => {
                let mut asked = CheckedSweep::new(name, sweep, &grid, lacks_axes);
                self.rules(&mut asked);
                self.pairs(plan, &asked);
            }
            Err(GridError::Circle(axes)) => {
                let message = format!("dependency cycle between the `when`s of axes: {}", axes.join(" → "));
                let remedy = "break the cycle: remove one of these axes from the `when` of another";
                let at = steps!["sweeps", name, "matrix", axes[0].as_str()];
                self.report_key(&at, Diagnostic::new(Code::Circle, message).remedy(remedy));
            }
            // These errors are reported where the values of axes are checked.
            Err(GridError::UnequalZip { .. } | GridError::FieldTwice { .. } | GridError::InZip { .. }) => {}
        }
    }

    /// Adds the axes that the plan implies: its only endpoint, model and scenario, or B1 if it declares no
    /// scenario.
    fn imply(&mut self, name: &str, sweep: &mut Sweep, lacks_axes: bool) {
        let mut matrix = Table::new();
        for (axis, table, built_in) in
            [("endpoint", "endpoints", None), ("model", "models", None), ("scenario", "scenarios", Some(SCENARIO))]
        {
            let declared = self.declared(table);
            let only = match declared[..] {
                [] => built_in,
                [only] => Some(only),
                // A sweep that measures the start sends no load, so its scenario does not matter.
                _ if axis == "scenario" && sweep.measures_start() => Some(SCENARIO),
                _ => None,
            };
            self.imply_in_cells(name, sweep, axis, only);
            if self.has_axis(name, sweep, axis) || (lacks_axes && self.has_group(name)) {
                continue;
            }
            if let Some(only) = only {
                matrix.insert(axis.to_owned(), Axis::one(Scalar::Text(only.to_owned())));
            } else if !declared.is_empty() {
                let message =
                    format!("sweep `{name}` specifies no {axis}, but the plan defines {} of them", declared.len());
                let shown = &declared[..declared.len().min(MOST_NAMED)];
                let more = if shown.len() < declared.len() { ", …" } else { "" };
                let remedy = format!("add {axis}: [{}{more}] to its matrix", shown.join(", "));
                self.missing_axis(name, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
            }
        }
        matrix.extend(std::mem::take(&mut sweep.matrix));
        sweep.matrix = matrix;
    }

    /// Adds the fields that the plan implies to the cells of `add`.
    fn imply_in_cells(&mut self, name: &str, sweep: &mut Sweep, axis: &str, only: Option<&str>) {
        for (index, cell) in sweep.add.iter_mut().enumerate() {
            let at = steps!["sweeps", name, "add", index];
            if cell.contains_key(axis) || self.is_given(&at, axis) || !self.names_axes_only(&at) {
                continue;
            }
            if let Some(only) = only {
                cell.insert(axis.to_owned(), Scalar::Text(only.to_owned()));
            } else {
                let message = format!("this cell of `add` specifies no {axis}");
                let remedy = format!("add `{axis}` with a name; each entry of `add` must be a complete cell");
                self.report_key(&at, Diagnostic::new(Code::MissingAxis, message).remedy(remedy));
            }
        }
    }

    /// Whether a table has keys and all of them are axes. An unknown key was probably meant as the missing
    /// axis, which is then not reported.
    fn names_axes_only(&self, at: &[Step]) -> bool {
        let node = self.tree.walk(at).node;
        node.keys().next().is_some() && node.keys().all(|key| axis::first_name(key).is_some())
    }

    /// Whether a sweep has this axis, or the file sets it under any of its names, even with invalid values.
    pub(super) fn has_axis(&self, name: &str, sweep: &Sweep, axis: &str) -> bool {
        let matrix = steps!["sweeps", name, "matrix"];
        sweep.matrix.iter().any(|(key, written)| fields(key, written).contains(&axis))
            || self.is_given(&matrix, axis)
            || ALIASES.iter().any(|(alias, first)| *first == axis && self.is_given(&matrix, alias))
    }

    /// Whether the file has an axis group. If the group has an error, the axes that it would have set are
    /// unknown.
    fn has_group(&self, name: &str) -> bool {
        let node = self.tree.walk(&steps!["sweeps", name, "matrix"]).node;
        let mut keys = node.keys().chain(node.holes.iter().map(String::as_str));
        keys.any(|key| axis::first_name(key).is_none())
    }

    /// Reports a missing axis, unless an unknown key was probably meant as that axis.
    fn missing_axis(&mut self, name: &str, diagnostic: Diagnostic) {
        let matrix = steps!["sweeps", name, "matrix"];
        let node = self.tree.walk(&matrix).node;
        let beside = self.tree.walk(&matrix[..2]).node.holes.iter().any(|hole| axis::first_name(hole).is_some());
        if node.keys().all(|key| axis::first_name(key).is_some()) && node.keys().next().is_some() && !beside {
            self.report_key(&matrix, diagnostic);
        }
    }

    fn load(&mut self, name: &str, sweep: &Sweep, lacks_axes: bool, brings_load: bool) {
        let extends = |axis: &str| sweep.extend.iter().any(|extend| extend.with.contains_key(axis));
        let own_rate = brings_load || sweep.own_rate().is_some();
        let open = own_rate || self.has_axis(name, sweep, "qps") || extends("qps");
        if !own_rate {
            self.load_of_cells(name, sweep);
        }
        if lacks_axes && self.has_group(name) {
            return;
        }
        // A search that yields no load has an error that was already reported.
        let is_searched = self.is_given(&steps!["sweeps", name], "search");
        if !open && !is_searched && !self.has_axis(name, sweep, "batch_size") && !extends("batch_size") {
            let message = format!("sweep `{name}` has no load: neither `batch_size` nor `qps`");
            let remedy = "add batch_size: [1, 8] to its matrix for a closed loop, or qps: [1, 2] for an open one";
            self.missing_axis(name, Diagnostic::new(Code::NoLoad, message).remedy(remedy));
        } else if !open && !sweep.add.iter().any(|cell| cell.contains_key("qps")) {
            let message = "`arrivals` spaces the requests of an open loop, but this sweep has no `qps`";
            let remedy = "remove `arrivals`, or add qps: [1, 2] to the matrix";
            let diagnostic = Diagnostic::new(Code::NoEffect, message).remedy(remedy);
            for at in [steps!["sweeps", name].as_slice(), &steps!["sweeps", name, "matrix"]] {
                if self.is_given(at, "arrivals") {
                    self.report_key(&[at, &steps!["arrivals"]].concat(), diagnostic.clone());
                }
            }
        }
        for field in ["arrivals", "connections", "stream"] {
            // Without `qps`, there is a separate error about `arrivals`, which was reported above.
            let told = field == "arrivals" && !open;
            if !told && sweep.fields().contains(&field) && self.is_given(&steps!["sweeps", name], field) {
                let message = format!("`{field}` is set for the sweep and is also an axis of its matrix");
                let diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two");
                self.report_key(&steps!["sweeps", name, field], diagnostic);
            }
        }
    }

    fn rest(&mut self, name: &str, sweep: &Sweep) {
        self.repeats(name, sweep);
        self.arrivals(name, sweep);
        self.phases(&steps!["sweeps", name, "phases"], &sweep.phases);
        self.engine(&steps!["sweeps", name, "engine"], &sweep.engine);
    }

    /// Reports cells of `add` without a load.
    fn load_of_cells(&mut self, name: &str, sweep: &Sweep) {
        for (index, cell) in sweep.add.iter().enumerate() {
            let at = steps!["sweeps", name, "add", index];
            let gives = |axis: &str| cell.contains_key(axis) || self.is_given(&at, axis);
            if !gives("batch_size") && !gives("qps") && self.names_axes_only(&at) {
                let message = "this cell of `add` has no load: neither `batch_size` nor `qps`";
                let remedy = "add batch_size: 8 for a closed loop, or qps: 2 for an open one; each entry of `add` must \
                              be a complete cell";
                self.report_key(&at, Diagnostic::new(Code::NoLoad, message).remedy(remedy));
            }
        }
    }

    /// Reports a plan with more cells than allowed. Cells are counted, not created.
    fn size(&mut self, plan: &Plan, sizes: &[(String, u128)]) {
        let all = sizes.iter().fold(0u128, |sum, (_, size)| sum.saturating_add(*size));
        let Some((largest, size)) = sizes.iter().max_by_key(|(_, size)| *size) else { return };
        if plan.max_cells == 0 || plan.max_cells > MOST_CELLS {
            let wanted = format!("a whole number from 1 to {MOST_CELLS}");
            return self.report(&steps!["max_cells"], out_of_range("max_cells", &wanted, plan.max_cells));
        }
        if all > u128::from(plan.max_cells) {
            let message = format!(
                "the plan has {all} cells (with repeats, before `when` and `exclude` are applied), but `max_cells` is \
                 {}; sweep `{largest}` alone has {size}",
                plan.max_cells
            );
            let remedy = if all <= u128::from(MOST_CELLS) {
                format!("shorten its axes, lower `repeats`, or write max_cells: {all} at the top of the plan")
            } else {
                format!("shorten its axes or lower `repeats`; the maximum for any plan is {MOST_CELLS} cells")
            };
            let at = steps!["sweeps", largest.as_str()];
            self.report_key(&at, Diagnostic::new(Code::TooManyCells, message).remedy(remedy));
        }
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
    }

    /// Reports sweeps that wait for each other, because of `after` or because one reads the result of
    /// another.
    fn circles(&mut self, sweeps: &Table<Sweep>) {
        let mut reported: Vec<Vec<&str>> = Vec::new();
        for name in sweeps.keys() {
            let Some(circle) = circle_of_after(sweeps, name) else { continue };
            let mut members = circle.clone();
            members.sort_unstable();
            members.dedup();
            if reported.contains(&members) {
                continue;
            }
            let message = format!("dependency cycle between sweeps: {}", circle.join(" → "));
            let diagnostic = Diagnostic::new(Code::Circle, message);
            let at = steps!["sweeps", name.as_str()];
            match self.place_of_question(name, &sweeps[name.as_str()], circle[1]) {
                Some(place) if !self.is_given(&at, "after") => {
                    let remedy = "refer to another sweep, or remove this `after`; a → b means that a waits for b";
                    self.report(&place, diagnostic.remedy(remedy));
                }
                _ => {
                    let remedy = "remove one `after` of the cycle; a → b means that a waits for b";
                    self.report_key(&[&at[..], &steps!["after"]].concat(), diagnostic.remedy(remedy));
                }
            }
            reported.push(members);
        }
    }
}

/// Extends the `after` of a sweep with the sweeps whose results it reads.
fn comes_after(sweep: &mut Sweep) {
    let asked: Vec<String> = sweep.asks().map(|(other, _)| other.to_owned()).collect();
    for other in asked {
        if !sweep.after.0.contains(&other) {
            sweep.after.0.push(other);
        }
    }
}

/// The number of cells of a sweep before `when` and `exclude`.
fn cells(sweep: &Sweep) -> u128 {
    let product = sweep.matrix.values().map(|axis| axis.len() as u128).fold(1, u128::saturating_mul);
    product.saturating_add(sweep.add.len() as u128)
}

/// The shortest path along `after` from a sweep back to itself; `None` if there is no cycle.
fn circle_of_after<'a>(sweeps: &'a Table<Sweep>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut ways: std::collections::VecDeque<Vec<&str>> = [vec![start]].into();
    let mut seen = HashSet::new();
    while let Some(way) = ways.pop_front() {
        let Some(sweep) = sweeps.get(*way.last()?) else { continue };
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
