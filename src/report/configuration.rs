//! A configuration of a plan: its curve, and the capacity that the curve shows.

use crate::analysis::capacity::{Instance, Target};
use crate::analysis::curve::{Bracket, Curve, Figure};
use crate::units::Currency;

/// The capacity of one instance, as shown by a curve.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The instance sustains a load under the objective.
    Holds {
        /// Load, throughput and cost of one instance.
        instance: Box<Instance>,
        /// The loads between which the limit of the instance lies.
        bracket: Bracket,
        /// Output tokens per second at the highest load that meets the objective, with its interval.
        output: Figure,
    },
    /// The curve measures a closed loop, whose limit is a number of requests in flight rather than an arrival
    /// rate.
    Closed(Bracket),
    /// No load is accepted as meeting the objective; contains the reason.
    Rejected(String),
}

/// A configuration, given by its curve, and its capacity.
pub struct Configuration<'a> {
    /// The curve of the configuration.
    pub curve: &'a Curve<'a>,
    /// The capacity that the curve shows.
    pub answer: Answer,
    /// Currency of the plan's prices; `None` if the plan does not name one.
    pub currency: Option<Currency>,
    /// The servers behind the endpoint's balancer; `None` if the plan does not declare their number.
    pub replicas: Option<Replicas>,
}

/// The equal servers behind an endpoint's balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replicas {
    /// Their number.
    pub count: u32,
    /// What each of them is, like `vllm, H100`. Endpoints are compared only if theirs are the same.
    pub each: String,
}

impl Configuration<'_> {
    /// Returns the figure by which configurations are ranked: the cost per month for the target, or without a
    /// target, the cost per token. `None` if the price is unknown or no load meets the objective.
    pub(super) fn price(&self, target: Option<Target>) -> Option<f64> {
        let Answer::Holds { instance, .. } = &self.answer else { return None };
        match target {
            Some(target) => instance.fleet(target).per_month,
            None => instance.per_million(),
        }
    }
}
