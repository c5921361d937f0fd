//! Checks of a sweep's arrivals: numbers must be within their ranges, profiles must send requests, and all
//! rates must have the same unit.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::arrivals::Arrivals;
use crate::plan::model::process::Process;
use crate::plan::model::profile::{Bursts, Point, Profile, Ramp, Rate, RateShape, Step as StepOfProfile};
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;
use crate::units::{Decimal, Nanos, Share};

/// Maximum number of steps in a profile; a longer profile should be a trace.
const MOST_STEPS: usize = 1_000;
/// Maximum number of points in a curve.
const MOST_POINTS: usize = 10_000;

impl Checker<'_> {
    /// Checks the arrival process of a sweep.
    pub(super) fn arrivals(&mut self, name: &str, sweep: &Sweep) {
        let at = steps!["sweeps", name, "arrivals"];
        let Some(Arrivals { process, profile }) = &sweep.arrivals else { return };
        if let Process::Gamma(gamma) = process
            && let Some((field, wanted, remedy)) = gamma.out_of_range()
        {
            let inside: &[&str] = if profile.is_some() { &["process", "gamma"] } else { &["gamma"] };
            let path: Vec<Step> = at.iter().cloned().chain(inside.iter().map(|key| Step::from(*key))).collect();
            let message = format!("`{field}` must be {wanted}, not {}", gamma.number());
            let diagnostic = Diagnostic::new(Code::OutOfRange, message).remedy(remedy);
            self.report(&[&path[..], &steps![field]].concat(), diagnostic);
        }
        if let Some(profile) = profile {
            self.profile(&at, profile);
            self.rates_of_sweep(&at, sweep, profile);
        }
    }

    fn profile(&mut self, at: &[Step], profile: &Profile) {
        let inside = |steps: &[Step]| [at, steps].concat();
        match &profile.shape {
            RateShape::Ramp(Ramp { from, to, over }) => {
                self.rate(&inside(&steps!["ramp", "from"]), "from", *from);
                self.rate(&inside(&steps!["ramp", "to"]), "to", *to);
                self.above_zero(&inside(&steps!["ramp", "over"]), "over", *over);
            }
            RateShape::Steps(all) => {
                for (index, StepOfProfile { qps, duration }) in all.iter().enumerate() {
                    self.rate(&inside(&steps!["steps", index, "qps"]), "qps", *qps);
                    self.above_zero(&inside(&steps!["steps", index, "for"]), "for", *duration);
                }
                self.count(&inside(&steps!["steps"]), "steps", all.len(), (1, MOST_STEPS));
            }
            RateShape::Bursts(bursts) => self.bursts(&inside(&steps!["bursts"]), bursts),
            RateShape::Curve(points) => {
                self.points(&inside(&steps!["curve"]), points);
                self.count(&inside(&steps!["curve"]), "curve", points.len(), (2, MOST_POINTS));
            }
        }
        let rates = profile.rates();
        if !rates.is_empty() && rates.iter().all(|rate| rate.out_of_range().is_none() && !rate.is_positive()) {
            let message = "every rate of this profile is 0, so no request would ever be sent";
            let remedy = "write at least one rate above 0";
            self.report_key(at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        let shares = rates.iter().filter(|rate| matches!(rate, Rate::OfQps(_))).count();
        if shares > 0 && shares < rates.len() {
            let message = "some rates of this profile are in requests per second, but others are shares of `qps`";
            let remedy = "write all rates as numbers, like 5, or all of them as shares of `qps`, like 50%";
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn bursts(&mut self, at: &[Step], bursts: &Bursts) {
        let Bursts { on, off, low } = bursts;
        self.above_zero(&[at, &steps!["on"]].concat(), "on", *on);
        self.above_zero(&[at, &steps!["off"]].concat(), "off", *off);
        if *low >= Share(Decimal::from(1)) {
            let message =
                format!("`low` is {low} of `qps`: pauses would have the full rate, so there would be no bursts");
            let remedy = "write a share below 100%, or remove `low`";
            self.report(&[at, &steps!["low"]].concat(), Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    fn points(&mut self, at: &[Step], points: &[Point]) {
        // If a point could not be read (already reported), the first point here may be a later point of the
        // curve.
        let damaged = self.tree.walk(at).node.is_damaged();
        let mut before: Option<Nanos> = None;
        for (index, Point(instant, rate)) in points.iter().enumerate() {
            let place = |inside: usize| [at, &steps![index, inside]].concat();
            self.rate(&place(1), "curve", *rate);
            let wrong = match before {
                None if *instant != Nanos::ZERO && !damaged => Some((
                    format!("the first point of a curve is at {instant}, but the rate before it is not set"),
                    "write the first point at 0s, the start of the measure window",
                )),
                Some(before) if *instant <= before => Some((
                    format!("the points of a curve are not in chronological order: {instant} comes after {before}"),
                    "write the points in chronological order, without repeating a time; for a jump, use `steps`",
                )),
                _ => None,
            };
            if let Some((message, remedy)) = wrong {
                self.report(&place(0), Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
            }
            before = before.max(Some(*instant));
        }
    }

    fn rate(&mut self, at: &[Step], field: &str, rate: Rate) {
        if let Some(wanted) = rate.out_of_range() {
            let message = format!("`{field}` must be {wanted}, not {rate}");
            self.report(at, Diagnostic::new(Code::OutOfRange, message).remedy(format!("write {wanted}")));
        }
    }

    fn count(&mut self, at: &[Step], field: &str, count: usize, (least, most): (usize, usize)) {
        if !(least..=most).contains(&count) && !self.tree.walk(at).node.is_damaged() {
            let message = format!("`{field}` takes {least} to {most} entries, not {count}");
            let code = if count == 0 { Code::Empty } else { Code::OutOfRange };
            let remedy = if count > most {
                "write fewer entries, or replay a longer rate profile as a trace"
            } else {
                "write more"
            };
            self.report_key(at, Diagnostic::new(code, message).remedy(remedy));
        }
    }

    /// Reports a `qps` axis next to a profile in requests per second, which already determines the load.
    fn rates_of_sweep(&mut self, at: &[Step], sweep: &Sweep, profile: &Profile) {
        if profile.own_rate().is_none() || profile.rates().iter().any(|rate| matches!(rate, Rate::OfQps(_))) {
            return;
        }
        let name = &at[1];
        let of_matrix = [Step::from("sweeps"), name.clone(), Step::from("matrix")];
        let of_cells = sweep.add.iter().any(|cell| cell.contains_key("qps"));
        let of_extends = sweep.extend.iter().any(|extend| extend.with.contains_key("qps"));
        if sweep.fields().contains(&"qps") || self.is_given(&of_matrix, "qps") || of_cells || of_extends {
            let message = "the rates of this profile are in requests per second, but the sweep also has a `qps`";
            let remedy = "write the profile's rates as shares of `qps`, like 50%, or remove `qps`";
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}
