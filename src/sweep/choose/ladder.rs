//! A ladder that ends early. Its loads run from the lightest up, and the last one is the first to which
//! the stop rule is shown to apply.

use super::chosen::{Chosen, Ended};
use super::judge::{Judge, Said};
use crate::analysis::slo::Answer;
use crate::expand::{PlannedRun, Pool};
use crate::plan::StopRule;
use crate::plan::model::search::Objective;

/// Returns the state of a ladder.
pub(super) fn ladder(pool: &Pool, stop: StopRule, judge: &dyn Judge) -> Chosen {
    let mut chosen = Chosen::nothing(pool.unit());
    let loads = pool.loads();
    for (rung, load) in loads.iter().enumerate() {
        let members = pool.members.iter().enumerate().filter(|(_, member)| member.load == *load);
        let members: Vec<usize> = members.map(|(at, _)| at).collect();
        let open = members.iter().copied().find(|at| !judge.is_finished(&pool.members[*at].run));
        chosen.finished.extend(members.iter().copied().filter(|at| judge.is_finished(&pool.members[*at].run)));
        if let Some(open) = open {
            chosen.next = Some(open);
            return chosen;
        }
        let runs: Vec<&PlannedRun> = members.iter().map(|at| &pool.members[*at].run).collect();
        let said = judge.said(&runs, Objective::Slo);
        if said.answer.is_none() && !said.is_failed {
            chosen.silent.push(*load);
        }
        if let Some(why) = is_the_last(stop, &said) {
            chosen.between.1 = Some(*load);
            chosen.end = Some(Ended::Cut { load: *load, why, pruned: loads.len() - rung - 1 });
            return chosen;
        }
        if said.answer.is_some() {
            chosen.between.0 = Some(*load);
        }
    }
    chosen.end = Some(Ended::WholeLadder);
    chosen
}

/// Returns why a load is the last of its ladder; `None` if no such reason is shown.
fn is_the_last(stop: StopRule, said: &Said) -> Option<&'static str> {
    match stop {
        StopRule::SloMissed => (said.answer == Some(Answer::Misses)).then_some("misses the objective"),
        StopRule::Saturated => said.is_saturated.then_some("exceeds the server's capacity"),
        StopRule::Errors => said.is_failed.then_some("fails too many requests"),
        StopRule::CostPerMillion(limit) => {
            said.cost.is_some_and(|cost| cost <= limit.to_f64()).then_some("is cheap enough")
        }
    }
}
