//! How the load that meets the objective grows with the number of replicas behind one balancer.
//!
//! The number of instances that a load needs assumes that n instances serve n times as much as one. Behind a real
//! balancer they serve less: some replicas queue while others idle, each has its own cache, and network and balancer are
//! shared. If endpoints with different numbers of replicas were measured, the growth is known up to the largest of them.
//!
//! The capacity of each number is known only as a bracket: the arrivals at the highest load that meets the objective, and
//! a rate that the replicas do not sustain. Each end is based on a test that is wrong in at most 5 % of cases.

use schemars::JsonSchema;
use serde::Serialize;

use super::capacity::{Instance, Target};

/// The capacity of one number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Number of replicas behind the endpoint.
    pub replicas: u32,
    /// Requests per second that arrived at the highest load that meets the objective.
    pub holds: f64,
    /// Requests per second that the replicas do not sustain; null if no load misses the objective.
    pub misses: Option<f64>,
    /// `holds` as a share of what the replicas would sustain if each added as much as the smallest number has per
    /// replica: 0.9 for a tenth less.
    pub share_of_linear: f64,
    /// The lowest value of `share_of_linear` that the brackets of both numbers allow; null if no load misses the
    /// objective with the smallest number.
    pub share_at_least: Option<f64>,
    /// The highest value of `share_of_linear` that the brackets of both numbers allow; null if no load misses the
    /// objective with this number.
    pub share_at_most: Option<f64>,
}

/// The capacities of several numbers of replicas of one server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// The measured numbers, in ascending order; at least two.
    pub steps: Vec<Step>,
}

/// The number of replicas that a target needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Needed {
    /// The smallest measured number that sustains the target; if none does, the number that would if every replica
    /// added as much as those of the largest measured number do on average.
    pub replicas: u64,
    /// Whether this number was measured. If not, it assumes that the server goes on scaling.
    pub measured: bool,
    /// The largest measured number that is shown not to sustain the target; null if there is none.
    pub more_than: Option<u32>,
}

impl Scaling {
    /// Returns the scaling of instances with these numbers of replicas. `None` if there are fewer than two numbers, or
    /// if a number occurs twice, because it is then unknown which of its capacities belongs to the others.
    pub fn of(mut measured: Vec<(u32, Instance)>) -> Option<Scaling> {
        measured.sort_by_key(|(replicas, _)| *replicas);
        let is_twice = measured.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if is_twice || measured.len() < 2 {
            return None;
        }
        let (fewest, smallest) = measured[0];
        let misses = |instance: &Instance| instance.bound().map(|bound| bound.rate());
        let step = |(replicas, instance): (u32, Instance)| {
            let times = f64::from(replicas) / f64::from(fewest);
            Step {
                replicas,
                holds: instance.bears,
                misses: misses(&instance),
                share_of_linear: instance.bears / (times * smallest.bears),
                share_at_least: misses(&smallest).map(|misses| instance.bears / (times * misses)),
                share_at_most: misses(&instance).map(|misses| misses / (times * smallest.bears)),
            }
        };
        let mut steps: Vec<Step> = measured.into_iter().map(step).collect();
        // The smallest number is compared with itself.
        (steps[0].share_at_least, steps[0].share_at_most) = (Some(1.0), Some(1.0));
        Some(Scaling { steps })
    }

    /// Returns how many replicas the target needs.
    pub fn needed(&self, target: Target) -> Needed {
        let wanted = target.qps * (1.0 + target.headroom);
        let more_than = self.steps.iter().rev().find(|step| step.misses.is_some_and(|misses| misses <= wanted));
        let enough = self.steps.iter().find(|step| step.holds >= wanted);
        let largest = self.steps[self.steps.len() - 1];
        let beyond = || super::capacity::whole(wanted / largest.holds * f64::from(largest.replicas));
        Needed {
            replicas: enough.map_or_else(beyond, |step| u64::from(step.replicas)),
            measured: enough.is_some(),
            more_than: more_than.map(|step| step.replicas),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(bears: f64, misses: Option<f64>) -> Instance {
        Instance {
            holds: bears,
            misses,
            bears,
            bears_less_than: misses,
            serves_at_most: None,
            output_throughput: 100.0 * bears,
            tokens_per_request: Some(100.0),
            gpus: None,
            price_per_hour: None,
            watts: None,
            measured: None,
        }
    }

    fn target(qps: f64) -> Target {
        Target { qps, headroom: 0.0 }
    }

    #[test]
    fn shares_follow_from_both_brackets() {
        let scaling = Scaling::of(vec![(4, instance(30.0, Some(48.0))), (1, instance(10.0, Some(12.0)))]).unwrap();
        let [one, four] = scaling.steps[..] else { panic!("{scaling:?}") };
        assert_eq!([one.share_of_linear, one.share_at_least.unwrap(), one.share_at_most.unwrap()], [1.0; 3]);
        assert_eq!((four.replicas, four.holds, four.misses), (4, 30.0, Some(48.0)));
        // Between 30 of 4 × 12 and 48 of 4 × 10.
        assert_eq!(
            [four.share_of_linear, four.share_at_least.unwrap(), four.share_at_most.unwrap()],
            [0.75, 0.625, 1.2]
        );
        // Without a load that misses, one side is open.
        let open = Scaling::of(vec![(2, instance(10.0, None)), (4, instance(18.0, None))]).unwrap();
        assert_eq!((open.steps[1].share_of_linear, open.steps[1].share_at_least), (0.9, None));
        assert_eq!(open.steps[1].share_at_most, None);
    }

    #[test]
    fn a_target_needs_a_number_that_was_measured_if_there_is_one() {
        let measured =
            vec![(1, instance(10.0, Some(12.0))), (2, instance(18.0, Some(22.0))), (4, instance(30.0, None))];
        let scaling = Scaling::of(measured).unwrap();
        let needed = |qps| {
            let Needed { replicas, measured, more_than } = scaling.needed(target(qps));
            (replicas, measured, more_than)
        };
        assert_eq!(needed(9.0), (1, true, None));
        // One replica was neither shown to sustain 11 nor shown not to.
        assert_eq!(needed(11.0), (2, true, None));
        assert_eq!(needed(12.0), (2, true, Some(1)));
        assert_eq!(needed(25.0), (4, true, Some(2)));
        // 7.5 for each of four replicas.
        assert_eq!(needed(60.0), (8, false, Some(2)));
    }

    #[test]
    fn one_number_or_the_same_twice_shows_no_scaling() {
        assert_eq!(Scaling::of(vec![(2, instance(10.0, None))]), None);
        assert_eq!(
            Scaling::of(vec![(2, instance(10.0, None)), (2, instance(9.0, None)), (4, instance(9.0, None))]),
            None
        );
    }
}
