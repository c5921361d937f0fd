//! What axes say of the requests' texts that the scenarios of the same cells cannot follow.

use super::Checker;
use super::condition::Asked;
use super::talk::placed;
use crate::plan::error::{Code, Diagnostic};
use crate::plan::model::{Cache, Plan, Scalar};
use crate::plan::scenario::{Reuse, resolve};
use crate::plan::suggest;

impl Checker<'_> {
    /// Lengths that differ, where every request is the same.
    pub(super) fn lengths_of_cells(&mut self, plan: &Plan, asked: &Asked) {
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
                let message = format!(
                    "every request of scenario {names} is the same: `lengths: {value}` cannot make them differ"
                );
                let remedy = format!(
                    "use scenarios whose prompts differ, like B1, or give it a `when`: {{ value: {value}, when: {{ scenario: B1 }} }}"
                );
                self.report(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
    }

    /// Cold prompts without the nonce that makes them so.
    pub(super) fn cold_cells(&mut self, plan: &Plan, asked: &Asked) {
        if plan.nonce.is_on() {
            return;
        }
        let cold = Scalar::Text(Cache::Cold.name().to_owned());
        for (value, place) in asked.sweep.written("cache") {
            if value == cold {
                let message = "`cache: cold` needs the nonce, and the plan has `nonce: off`";
                let remedy = "remove `nonce: off`: a cold prompt opens with a nonce of its own";
                let at = [&super::steps!["sweeps", asked.name][..], &place].concat();
                self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
    }
}
