//! Checks of searches for a load, and of ladders that end early: their requirements on the plan, and
//! conflicting fields.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::matrix::{Axis, Item, What};
use crate::plan::model::plan::Plan;
use crate::plan::model::repeats::Repeats;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::search::{FINEST, Objective, Search, SearchRange};
use crate::plan::model::stop::StopRule;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;
use crate::units::{Decimal, Share};

/// Maximum number of loads that a search may try.
const MOST_LOADS: usize = 2_000;

impl Checker<'_> {
    /// Checks the search of a sweep, and adds the loads that it may try to the matrix, as values of the
    /// searched axis.
    pub(super) fn search(&mut self, plan: &Plan, name: &str, sweep: &mut Sweep) {
        let Some(search) = sweep.search.clone() else { return };
        let at = steps!["sweeps", name, "search"];
        let Some((axis, range)) = search.axis() else {
            let message = match search.qps {
                None => "`search` does not specify which load to search for",
                Some(_) => "`search` names two loads, but it can search for only one",
            };
            let remedy = "write qps: { from: 1, to: 200 } for an open loop, \
                          or batch_size: { from: 1, to: 256 } for a closed one";
            return self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        };
        self.has_objective(plan, &at, "a search looks for the highest load that meets the objective");
        self.met(plan, name, &search);
        self.stands_alone(name, sweep, "search");
        if sweep.stop.is_some() {
            let message = "`search` and `stop` both decide which loads are run";
            let remedy = "keep `search`, or list the loads of a ladder in the matrix and keep `stop`";
            self.report_key(
                &steps!["sweeps", name, "stop"],
                Diagnostic::new(Code::Contradiction, message).remedy(remedy),
            );
        }
        if sweep.repeats != Repeats::default() {
            let message = "`repeats` has no effect with `search`, which repeats a load as often as a decision needs";
            let diagnostic = Diagnostic::new(Code::NoEffect, message).remedy("remove `repeats`");
            self.report_key(&steps!["sweeps", name, "repeats"], diagnostic);
        }
        if !self.searched_range(name, axis, range) {
            return;
        }
        let loads = search.loads();
        if loads.len() > MOST_LOADS {
            let message = format!("this search may try {} loads, but the maximum is {MOST_LOADS}", loads.len());
            let remedy = "write a coarser `within`, or a narrower range";
            return self.report(
                &steps!["sweeps", name, "search", axis],
                Diagnostic::new(Code::OutOfRange, message).remedy(remedy),
            );
        }
        self.writes_axis(name, sweep, axis, &loads);
    }

    /// Checks `meets`: each named limit must be in the plan's objective.
    fn met(&mut self, plan: &Plan, name: &str, search: &Search) {
        let at = steps!["sweeps", name, "search", "meets"];
        let asked = search.objectives(plan.slo.as_ref());
        if asked.is_empty() {
            let message = "`meets` is empty, but a search needs to know what the load must meet";
            let remedy = "write `slo`, `each`, or a list like [slo, ttft, tpot]; without `meets`, the default is `slo`";
            return self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
        }
        for (index, meets) in
            search.meets.0.iter().enumerate().filter(|(at, meets)| search.meets.0[..*at].contains(meets))
        {
            let word: &str = meets.objective().map_or("each", Objective::name);
            let message = format!("`meets` lists `{word}` twice");
            let diagnostic = Diagnostic::new(Code::DuplicateValue, message).remedy("remove one of the two");
            self.report(&[at.as_slice(), &steps![index]].concat(), diagnostic);
        }
        if asked.iter().all(|objective| *objective == Objective::CostPerMillion) {
            let message = "the cost of tokens falls as the load rises, so there is no highest load that meets a cost \
                           limit";
            let remedy = "add a latency, like [slo, cost_per_million]: the search then also reports the lowest load \
                          that meets the cost limit";
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let Some(slo) = &plan.slo else { return };
        let limited = Objective::latencies_of(slo);
        for (index, meets) in search.meets.0.iter().enumerate() {
            let Some(objective) = meets.objective() else { continue };
            let is_there = match objective {
                Objective::Slo => true,
                Objective::CostPerMillion => slo.cost_per_million.is_some(),
                of => limited.contains(&of),
            };
            let key = objective.name();
            if is_there || self.is_given(&steps!["slo"], key) {
                continue;
            }
            let message = format!("`meets` lists `{key}`, but the plan's `slo` has no limit on it");
            let limit = if key == "cost_per_million" { "3" } else { "{ p99: 500ms }" };
            let remedy = format!(
                "add a limit at the top of the plan, like slo: {{ {key}: {limit} }}, or remove `{key}` from `meets`"
            );
            // If `meets` is a single word instead of a list, this path leads to the word.
            self.report(
                &[at.as_slice(), &steps![index]].concat(),
                Diagnostic::new(Code::MissingField, message).remedy(remedy),
            );
        }
    }

    /// Checks the range of a search and reports any error in it. Returns whether the range is valid.
    fn searched_range(&mut self, name: &str, axis: &str, range: SearchRange) -> bool {
        let at = steps!["sweeps", name, "search", axis];
        let before = self.found.len();
        let whole = |number: &Decimal| number.to_f64().fract() == 0.0;
        let wanted = if axis == "batch_size" { "a whole number, 1 or more" } else { "a number above 0" };
        let is_wrong = |number: &Decimal| !number.is_positive() || (axis == "batch_size" && !whole(number));
        self.outside(&at, "from", wanted, Some(range.from).filter(is_wrong));
        self.outside(&at, "to", wanted, Some(range.to).filter(is_wrong));
        let most = Decimal::from(if axis == "batch_size" { 100_000 } else { 1_000_000 });
        self.outside(&at, "to", &format!("at most {most}"), Some(range.to).filter(|to| *to > most));
        // A bound that could not be read has already been reported.
        if range.from >= range.to && !self.tree.walk(&at).node.is_damaged() {
            let message = format!("nothing to search between {} and {}", range.from, range.to);
            self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy("write the smaller number as `from`"));
        }
        let is_within = range.within >= FINEST && range.within <= Share::percent(50);
        self.outside(&at, "within", &format!("a share from {FINEST} to 50%"), (!is_within).then_some(range.within));
        self.found.len() == before
    }

    /// Adds the searched axis to the matrix. If the plan already has the axis, as a frozen plan does, the axis
    /// must have exactly these loads.
    fn writes_axis(&mut self, name: &str, sweep: &mut Sweep, axis: &str, loads: &[Decimal]) {
        let item = |load: &Decimal| Item { what: What::Values(vec![Scalar::Number(*load)]), when: None };
        let beside = |sweep: &Sweep| sweep.extend.iter().any(|extend| extend.with.contains_key(axis));
        let is_theirs = sweep.matrix.get(axis).is_some()
            && sweep.values(axis) == loads.iter().map(|load| Scalar::Number(*load)).collect::<Vec<_>>();
        if !is_theirs && (self.has_axis(name, sweep, axis) || beside(sweep)) {
            let message = format!("`search` sets `{axis}`, but the matrix also lists values for it");
            let remedy = format!("remove `{axis}` from the matrix, or `search` from the sweep");
            let at = steps!["sweeps", name, "search"];
            return self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if !is_theirs {
            sweep.matrix.insert(axis.to_owned(), Axis::Values(loads.iter().map(item).collect()));
        }
    }

    /// Checks the rule by which a ladder ends.
    pub(super) fn stop(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let Some(stop) = sweep.stop.filter(|_| sweep.search.is_none()) else { return };
        let at = steps!["sweeps", name, "stop"];
        self.stands_alone(name, sweep, "stop");
        if stop == StopRule::SloMissed {
            self.has_objective(
                plan,
                &at,
                "`stop: slo_missed` ends a ladder at the first load that misses the objective",
            );
        }
        if let (StopRule::CostPerMillion(_), Some(endpoint)) = (stop, self.unpriced(plan, sweep)) {
            let message = format!(
                "`stop: {{ cost_per_million: … }}` needs a price, but endpoint `{endpoint}` has none, so nothing would \
                 end the ladder"
            );
            let remedy = format!("add hardware: {{ price_per_hour: 31.20 }} to endpoint `{endpoint}`");
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
        let matrix = self.tree.walk(&steps!["sweeps", name, "matrix"]).node;
        let is_whole = !matrix.is_damaged() && matrix.holes.is_empty();
        let loads = sweep.values("qps").len().max(sweep.values("batch_size").len());
        // A sweep without any load has another error, which is reported where loads are checked.
        if loads == 1 && is_whole {
            let message = "`stop` ends a ladder of loads early, but this sweep has only one load";
            let remedy = "add rising loads to its matrix, like qps: [1, 2, 5, 10], or remove `stop`";
            self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
    }

    /// Reports fields that conflict with a search or with the early end of a ladder.
    fn stands_alone(&mut self, name: &str, sweep: &Sweep, word: &str) {
        let at = |key: &str| steps!["sweeps", name, key];
        if sweep.measures_start() {
            let message = format!("`{word}` applies to loads, but `measure: start` measures no load");
            self.report_key(&at(word), Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two"));
        }
        if sweep.own_rate().is_some() {
            let message = format!("`{word}` applies to loads, but these `arrivals` set their own rate");
            self.report_key(&at(word), Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two"));
        }
        if sweep.compare.is_some() {
            let message = format!("with `{word}` each arm has its own loads, so nothing can be compared at equal load");
            let remedy = "compare in a separate sweep that comes `after` this one, with the loads that this one finds";
            self.report_key(&at("compare"), Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if !sweep.add.is_empty() {
            let message = format!(
                "each entry of `add` is a complete cell with its load, but `{word}` decides which loads are run"
            );
            let remedy = "write the cells as axes of the matrix, or move them to a separate sweep";
            self.report_key(&at("add"), Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// The first endpoint of a sweep that sets no price, not even an invalid one; `None` if every endpoint
    /// sets one.
    pub(super) fn unpriced<'p>(&self, plan: &'p Plan, sweep: &Sweep) -> Option<&'p str> {
        let named = sweep.values("endpoint");
        // If the matrix names no endpoint, the sweep uses the only endpoint of the plan.
        let is_meant = |name: &String| named.is_empty() || named.iter().any(|value| value.to_string() == *name);
        let mut known = plan.endpoints.iter().filter(|(name, _)| is_meant(name));
        let has_price = |name: &str, endpoint: &Endpoint| {
            let at = steps!["endpoints", name, "hardware"];
            let is_given = ["price_per_hour", "owned"].iter().any(|key| self.is_given(&at, key));
            is_given || endpoint.hardware.as_ref().is_some_and(Hardware::has_price)
        };
        known.find(|(name, endpoint)| !has_price(name, endpoint)).map(|(name, _)| name.as_str())
    }

    fn has_objective(&mut self, plan: &Plan, at: &[Step], why: &str) {
        if plan.slo.is_none() && !self.is_given(&[], "slo") {
            let message = format!("{why}, but the plan has no objective");
            let remedy = "add an objective at the top of the plan, like slo: { ttft: { p99: 500ms } }";
            self.report_key(at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }
}
