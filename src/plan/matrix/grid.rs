//! Builds cells from axes: prepared rules, and an iteration over all combinations.
//!
//! Axes multiply in written order, with the last axis varying fastest. A value with a `when` exists
//! only in cells whose other axes match. If no value of an axis applies, the axis is absent from the
//! cell. The sweep's `when` keeps the matching cells, and `exclude` removes cells. (`extend` and `add` are
//! applied afterwards, in `expand`.)

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::axes::{Axes, Field, GridError, Point};
use crate::plan::model::matrix::{Condition, Filter};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;

/// A condition whose fields have been looked up.
#[derive(Debug, Clone)]
pub struct Rule<'p> {
    fields: Vec<(usize, &'p Filter)>,
    /// Whether the condition names a field that no axis sets, so that it matches nothing.
    is_dead: bool,
    /// Number of values in the condition, which is the cost of evaluating it.
    cost: u64,
}

impl<'p> Rule<'p> {
    /// Prepares `condition` for the fields of `axes`.
    pub fn new(axes: &Axes, condition: &'p Condition) -> Rule<'p> {
        let fields: Vec<_> = condition.iter().filter_map(|(name, filter)| Some((axes.field(name)?, filter))).collect();
        let cost = condition.values().map(|filter| filter.0.len() as u64).sum();
        Rule { is_dead: fields.len() < condition.len(), fields, cost }
    }

    /// Whether a cell matches the rule. All fields of the rule must already be chosen in the cell.
    pub fn matches(&self, chosen: &Chosen) -> bool {
        let matches =
            |(name, filter): &(usize, &Filter)| chosen.fields[*name].is_some_and(|field| filter.matches(&field.value));
        !self.is_dead && self.fields.iter().all(matches)
    }

    /// The index of the last axis on which the rule depends.
    fn last(&self, axes: &Axes) -> usize {
        self.fields.iter().map(|(name, _)| axes.given_by[*name]).max().unwrap_or_default()
    }
}

/// What a search requires of a field.
#[derive(Debug, Clone, Copy)]
pub enum Want<'q> {
    /// One of the filter's values.
    Matches(&'q Filter),
    /// Exactly the given value.
    Is(&'q Scalar),
    /// Any value.
    Present,
    /// No value.
    Absent,
    /// Any value or none. The search must still take the field's axis into account.
    Any,
}

impl Want<'_> {
    fn takes(self, value: Option<&Scalar>) -> bool {
        match (self, value) {
            (Want::Any, _) => true,
            (Want::Absent, value) => value.is_none(),
            (Want::Present, value) => value.is_some(),
            (Want::Is(wanted), Some(value)) => wanted == value,
            (Want::Matches(filter), Some(value)) => filter.matches(value),
            (Want::Is(_) | Want::Matches(_), None) => false,
        }
    }
}

/// A partial cell: one value for each field that it has.
#[derive(Debug, Clone)]
pub struct Chosen<'g> {
    /// The values, by the ids of their fields.
    pub fields: Vec<Option<&'g Field>>,
    /// For each axis, the index of its point; `None` if the axis is absent.
    pub points: Vec<Option<usize>>,
}

/// A requirement on a cell, evaluated as soon as the last field on which it depends is known.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// The sweep keeps the cell.
    Kept,
    /// This `exclude` does not exclude the cell.
    Excluded(usize),
    /// The chosen point of this axis applies.
    Applies(usize),
}

/// The axes and the rules over them.
#[derive(Debug, Clone)]
pub struct Grid<'p> {
    /// The axes.
    pub axes: Axes<'p>,
    when: Option<Rule<'p>>,
    excludes: Vec<Rule<'p>>,
    /// For each axis: the conditions of its points; empty if no point has a condition.
    conditions: Vec<Vec<Option<Rule<'p>>>>,
    /// For each axis, the rules to evaluate once its point is chosen.
    due: Vec<Vec<Due>>,
}

impl<'p> Grid<'p> {
    /// Creates the grid of `sweep`.
    pub fn new(sweep: &'p Sweep) -> Result<Grid<'p>, GridError> {
        let axes = Axes::new(sweep)?;
        let excludes = sweep.exclude.iter().filter(|exclude| !exclude.is_empty());
        let excludes: Vec<Rule> =
            excludes.map(|exclude| Rule::new(&axes, exclude)).filter(|rule| !rule.is_dead).collect();
        let conditions: Vec<Vec<_>> = axes.axes.iter().map(|(_, points)| conditions(&axes, points)).collect();
        let when = sweep.when.as_ref().map(|when| Rule::new(&axes, when));
        let mut grid = Grid { due: vec![Vec::new(); axes.axes.len()], axes, when, excludes, conditions };
        grid.no_circle()?;
        grid.plan_questions();
        Ok(grid)
    }

    fn plan_questions(&mut self) {
        if let (Some(when), false) = (&self.when, self.due.is_empty()) {
            self.due[when.last(&self.axes)].push(Due::Kept);
        }
        for (index, rule) in self.excludes.iter().enumerate() {
            self.due[rule.last(&self.axes)].push(Due::Excluded(index));
        }
        for (axis, rules) in self.conditions.iter().enumerate().filter(|(_, rules)| !rules.is_empty()) {
            let last = rules.iter().flatten().map(|rule| rule.last(&self.axes)).max().unwrap_or(axis);
            self.due[last.max(axis)].push(Due::Applies(axis));
        }
    }

    /// The axes whose values determine which points of `axis` apply.
    fn waits_for(&self, axis: usize) -> impl Iterator<Item = usize> + '_ {
        let rules = self.conditions[axis].iter().flatten();
        rules.flat_map(|rule| &rule.fields).map(|(name, _)| self.axes.given_by[*name])
    }

    fn no_circle(&self) -> Result<(), GridError> {
        for start in (0..self.conditions.len()).filter(|axis| !self.conditions[*axis].is_empty()) {
            let mut from: HashMap<usize, usize> = HashMap::new();
            let mut open = vec![start];
            while let Some(axis) = open.pop() {
                for next in self.waits_for(axis) {
                    if next == start {
                        let way = std::iter::successors(Some(axis), |at| (*at != start).then(|| from[at]));
                        let mut circle: Vec<String> = way.map(|axis| self.axes.axes[axis].0.to_owned()).collect();
                        circle.reverse();
                        circle.push(self.axes.axes[start].0.to_owned());
                        return Err(GridError::Circle(circle));
                    }
                    if let Entry::Vacant(way) = from.entry(next) {
                        way.insert(axis);
                        open.push(next);
                    }
                }
            }
        }
        Ok(())
    }

    /// Visits all cells in declared order until `visit` returns `true`.
    pub fn walk<'g>(&'g self, visit: &mut dyn FnMut(&Chosen<'g>) -> bool) {
        let all = vec![true; self.axes.axes.len()];
        let query = Query { wants: &[], with_excludes: true };
        Walk { grid: self, query, steps: &mut u64::MAX.clone(), visit, chosen: self.nothing(), relevant: &all }.from(0);
    }

    /// Whether there is a cell that meets the requirements of `query` and that `accept` accepts; `None` if
    /// `steps` steps do not suffice to find out. Axes that cannot influence the answer are not searched, so
    /// the cells that `accept` sees do not have them.
    pub fn any(&self, query: Query, steps: &mut u64, accept: &mut dyn FnMut(&Chosen) -> bool) -> Option<bool> {
        let relevant = self.relevant(query);
        let mut found = false;
        let mut visit = |cell: &Chosen| {
            found = accept(cell);
            found
        };
        Walk { grid: self, query, steps, visit: &mut visit, chosen: self.nothing(), relevant: &relevant }.from(0);
        (found || *steps > 0).then_some(found)
    }

    fn nothing(&self) -> Chosen<'_> {
        Chosen { fields: vec![None; self.axes.names.len()], points: vec![None; self.axes.axes.len()] }
    }

    /// For each axis: whether it influences which cells exist and match the query.
    fn relevant(&self, query: Query) -> Vec<bool> {
        let mut relevant = vec![false; self.axes.axes.len()];
        let excludes = self.excludes.iter().filter(|_| query.with_excludes);
        let named = excludes.chain(&self.when).flat_map(|rule| &rule.fields).map(|(name, _)| *name);
        let mut open: Vec<usize> =
            named.chain(query.wants.iter().map(|(name, _)| *name)).map(|name| self.axes.given_by[name]).collect();
        while let Some(axis) = open.pop() {
            if !std::mem::replace(&mut relevant[axis], true) {
                open.extend(self.waits_for(axis));
            }
        }
        relevant
    }

    /// Whether the fields of a condition depend on each other or on other fields, so that not every
    /// combination of values is a cell.
    pub(crate) fn is_entangled(&self, condition: &Condition) -> bool {
        let rule = Rule::new(&self.axes, condition);
        let axes: Vec<usize> = rule.fields.iter().map(|(name, _)| self.axes.given_by[*name]).collect();
        let repeats = (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
        let is_mixed = |axis: &usize| {
            let points = &self.axes.axes[*axis].1;
            points.iter().any(|point| point.fields.len() != points[0].fields.len())
        };
        repeats || self.when.is_some() || axes.iter().any(|axis| !self.conditions[*axis].is_empty() || is_mixed(axis))
    }
}

/// The cells that a search looks for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// The requirements, each with the id of its field.
    pub wants: &'q [(usize, Want<'q>)],
    /// Whether `exclude` applies, so that excluded cells are not found.
    pub with_excludes: bool,
}

fn conditions<'p>(axes: &Axes, points: &[Point<'p>]) -> Vec<Option<Rule<'p>>> {
    let rules: Vec<Option<Rule>> = points.iter().map(|point| point.when.map(|when| Rule::new(axes, when))).collect();
    if rules.iter().any(Option::is_some) { rules } else { Vec::new() }
}

/// The state of an iteration over the cells.
struct Walk<'w, 'g, 'p> {
    grid: &'g Grid<'p>,
    query: Query<'w>,
    steps: &'w mut u64,
    visit: &'w mut dyn FnMut(&Chosen<'g>) -> bool,
    chosen: Chosen<'g>,
    relevant: &'w [bool],
}

impl<'g> Walk<'_, 'g, '_> {
    fn from(&mut self, axis: usize) -> bool {
        let Some((_, points)) = self.grid.axes.axes.get(axis) else { return (self.visit)(&self.chosen) };
        if !self.relevant[axis] {
            return self.from(axis + 1);
        }
        for (at, point) in points.iter().enumerate() {
            point.fields.iter().for_each(|field| self.chosen.fields[field.name] = Some(field));
            self.chosen.points[axis] = Some(at);
            let stopped = self.goes_on(axis) && self.from(axis + 1);
            point.fields.iter().for_each(|field| self.chosen.fields[field.name] = None);
            self.chosen.points[axis] = None;
            if stopped || *self.steps == 0 {
                return true;
            }
        }
        let conditions = &self.grid.conditions[axis];
        let may_be_absent = !conditions.is_empty() && conditions.iter().all(Option::is_some);
        may_be_absent && self.goes_on(axis) && self.from(axis + 1)
    }

    /// Whether a cell may have the points chosen up to `axis`.
    fn goes_on(&mut self, axis: usize) -> bool {
        *self.steps = self.steps.saturating_sub(1);
        let here = |(name, _): &&(usize, Want)| self.grid.axes.given_by[*name] == axis;
        let wanted = |(name, want): &(usize, Want)| want.takes(self.chosen.fields[*name].map(|field| &field.value));
        self.query.wants.iter().filter(here).all(wanted) && self.grid.due[axis].iter().all(|due| self.holds(*due))
    }

    fn holds(&mut self, due: Due) -> bool {
        let grid = self.grid;
        match due {
            Due::Kept => grid.when.as_ref().is_none_or(|rule| self.asks(rule)),
            Due::Excluded(index) => !self.query.with_excludes || !self.asks(&grid.excludes[index]),
            Due::Applies(axis) if !self.relevant[axis] => true,
            Due::Applies(axis) => match self.chosen.points[axis] {
                Some(point) => grid.conditions[axis][point].as_ref().is_none_or(|rule| self.asks(rule)),
                None => !grid.conditions[axis].iter().flatten().any(|rule| *self.steps == 0 || self.asks(rule)),
            },
        }
    }

    fn asks(&mut self, rule: &Rule) -> bool {
        *self.steps = self.steps.saturating_sub(rule.cost);
        rule.matches(&self.chosen)
    }
}
