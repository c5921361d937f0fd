//! Checks of axes that affect the texts of requests: the scenarios in the same cells must be able to apply
//! their values.

use super::checker::Checker;
use super::condition::CheckedSweep;
use super::talk::placed;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::plan::Plan;
use crate::plan::model::prefix::Cache;
use crate::plan::model::scalar::Scalar;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Reports values of a `lengths` axis in cells of scenarios whose requests are all the same.
    pub(super) fn lengths_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        let is_same = |scenario: &&Scalar| {
            let resolved = resolve(&scenario.to_string(), &plan.scenarios);
            resolved.is_some_and(|resolved| resolved.content.reuse == Reuse::SamePrompt)
        };
        let same: Vec<&Scalar> = asked.grid.axes.values("scenario").filter(is_same).collect();
        for (_, value, place) in placed(asked, "lengths", |_| true) {
            let meets = |scenario: &&&Scalar| self.meet(asked, ("scenario", scenario), ("lengths", value));
            let met: Vec<String> = same.iter().filter(meets).map(ToString::to_string).collect();
            if !met.is_empty() {
                let names = suggest::choices(met.iter().map(String::as_str)).replace(" or ", " and ");
                let message =
                    format!("all requests of scenario {names} are identical, so `lengths: {value}` cannot vary them");
                let remedy = format!(
                    "use scenarios whose prompts differ, like B1, or give the value a `when`: {{ value: {value}, when: \
                     {{ scenario: B1 }} }}"
                );
                self.report(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
    }

    /// Reports cells that set the number of requested tokens under both of its names, `output_tokens` and
    /// `max_completion_tokens`.
    pub(super) fn lengths_asked_twice(&mut self, asked: &CheckedSweep) {
        let [usual, unusual] = LengthField::KEYS;
        let under_the_other: Vec<Scalar> = asked.sweep.values(usual);
        for (_, value, place) in placed(asked, unusual, |_| true) {
            let meets = |other: &&Scalar| self.meet(asked, (unusual, value), (usual, other));
            let Some(other) = under_the_other.iter().find(meets) else { continue };
            let message = format!(
                "a cell has `{unusual}: {value}` and `{usual}: {other}`: both set the number of requested tokens"
            );
            let remedy = "keep one of the two axes; it determines the name of the field that carries the length";
            return self.report(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    /// Reports cells with `cache: cold` but without `nonce: on`, which makes prompts cold. Fields that are set
    /// for single cells are checked when the plan is expanded.
    pub(super) fn cold_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        let cold = Scalar::Text(Cache::Cold.name().to_owned());
        for (value, place) in asked.sweep.written("cache") {
            let nonce = if value == cold { self.nonce_of_cold(plan, asked, &cold) } else { None };
            if let Some(nonce) = nonce {
                self.cold_cell(asked, &place, &nonce);
            }
        }
        if !asked.sweep.values("cache").is_empty() {
            return;
        }
        let is_cold = |name: &&Scalar| {
            let resolved = resolve(&name.to_string(), &plan.scenarios);
            resolved.is_some_and(|one| one.classes().any(|class| class.content.cache == Cache::Cold))
        };
        let scenarios: Vec<&Scalar> = asked.grid.axes.values("scenario").filter(is_cold).collect();
        for (value, place) in asked.sweep.written("nonce").into_iter().filter(|(value, _)| !is_on(value)) {
            if scenarios.iter().any(|name| self.meet(asked, ("scenario", name), ("nonce", &value))) {
                self.cold_cell(asked, &place, &value.to_string());
            }
        }
    }

    /// Returns a nonce other than `on` that cells with `cache: cold` have; `None` if there is none.
    fn nonce_of_cold(&mut self, plan: &Plan, asked: &CheckedSweep, cold: &Scalar) -> Option<String> {
        let nonces: Vec<&Scalar> = asked.grid.axes.values("nonce").collect();
        if !nonces.is_empty() {
            let mut other = nonces.into_iter().filter(|value| !is_on(value));
            let met = other.find(|value| self.meet(asked, ("cache", cold), ("nonce", value)));
            return met.map(ToString::to_string);
        }
        if !asked.sweep.values("nonce").is_empty() {
            return None;
        }
        let scenarios: Vec<&Scalar> = asked.grid.axes.values("scenario").collect();
        let of_plan = Some(plan.nonce).filter(|nonce| *nonce != NonceMode::On);
        if scenarios.is_empty() {
            return of_plan.map(|nonce| nonce.name().to_owned());
        }
        scenarios.into_iter().find_map(|name| {
            let resolved = resolve(&name.to_string(), &plan.scenarios)?;
            let other = |nonce: &NonceMode| *nonce != NonceMode::On;
            let nonce = resolved.classes().map(|class| class.nonce.unwrap_or(plan.nonce)).find(other)?;
            self.meet(asked, ("scenario", name), ("cache", cold)).then(|| nonce.name().to_owned())
        })
    }

    fn cold_cell(&mut self, asked: &CheckedSweep, place: &[Step], nonce: &str) {
        let message = format!(
            "`cache: cold` needs `nonce: on`, but its cells have `nonce: {nonce}`; each cold prompt must begin with \
             its own nonce"
        );
        let remedy = "write `nonce: on`, or remove `cache: cold`";
        let at = [&super::checker::steps!["sweeps", asked.name][..], place].concat();
        self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
    }
}

fn is_on(value: &Scalar) -> bool {
    *value == Scalar::Text(NonceMode::On.name().to_owned())
}
