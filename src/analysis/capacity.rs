//! The number of instances that a load needs, and their cost.
//!
//! The capacity of one instance is known only as a bracket: the highest rung of a ladder that held, and the
//! next rung, which did not. The number of instances is computed from the arrivals at the rung that held; the
//! smaller number computed from the other end of the bracket is reported alongside. These two numbers form an
//! interval, and each end is based on a test that is wrong in at most 5 % of cases.

use schemars::JsonSchema;
use serde::Serialize;

use super::curve::TWO_LOADS;
use super::server::PerJoule;

/// Hours per month: a twelfth of 365 days.
pub(crate) const HOURS_PER_MONTH: f64 = 730.0;

/// The load to serve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// Requests per second for all instances together.
    pub qps: f64,
    /// Spare capacity as a share of the load: 0.2 for a fifth.
    pub headroom: f64,
}

/// Capacity and performance of one instance of a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instance {
    /// The load of the highest rung that meets the objective, in requests per second.
    pub holds: f64,
    /// The load of the lowest rung that misses the objective, in requests per second; `None` if no rung
    /// misses it.
    pub misses: Option<f64>,
    /// Actual arrivals per second at the rung that holds.
    pub bears: f64,
    /// Actual arrivals per second at the rung that misses, or the planned rate if none were measured;
    /// `None` if every rung holds.
    pub bears_less_than: Option<f64>,
    /// The maximum number of requests per second that the instance can serve: the upper end of the 95 %
    /// interval of the completion rate under saturation. `None` if no load saturated the instance.
    pub serves_at_most: Option<f64>,
    /// Output tokens per second at the rung that holds.
    pub output_throughput: f64,
    /// Mean output tokens of a completed request at the rung that holds; `None` if no token count is
    /// available.
    pub tokens_per_request: Option<f64>,
    /// Number of accelerators of the instance; `None` if they are not declared.
    pub gpus: Option<u32>,
    /// Cost of the instance per hour, in the plan's currency; `None` if no price is declared.
    pub price_per_hour: Option<f64>,
    /// Power of the instance in watts; `None` if it is not declared.
    pub watts: Option<f64>,
    /// Measured output tokens per joule of the instance's GPUs at the rung that holds; `None` unless the
    /// energy is known for all runs of the rung.
    pub measured: Option<PerJoule>,
}

/// A load that one instance cannot carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The arrivals, in requests per second, at the lowest load that misses the objective; the capacity is
    /// lower than this rate.
    Missed(f64),
    /// The rate served under saturation, in requests per second, which is an upper bound of the capacity.
    Served(f64),
}

/// The source of the energy figure if the energy was not measured.
pub const DECLARED: &str = "declared watts";
/// Basis of the number of instances if the throughput under saturation bounds that number.
const LOAD_AND_THROUGHPUT: &str = "test of the load that holds, interval of the saturated throughput";

/// The number of instances that the target needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Fleet {
    /// Number of instances, computed from the arrivals at the load that holds: the upper end of the
    /// interval.
    pub instances: u64,
    /// Minimum number of instances: the lower end of the interval. Assumes that one instance serves just
    /// less than the arrivals at the load that misses, or the throughput measured under saturation if that
    /// is lower. Null if no load misses.
    pub at_least: Option<u64>,
    /// Basis of the interval: `tests of the two loads`, each wrong in at most 5 % of cases, or `test of the
    /// load that holds, interval of the saturated throughput` if the saturated throughput is the tighter
    /// bound. Null if no load misses.
    pub interval: Option<&'static str>,
    /// Number of accelerators of all instances together; null if the plan does not declare them.
    pub gpus: Option<u64>,
    /// Cost per month of 730 hours; null without a price.
    #[serde(rename = "money_per_month")]
    pub per_month: Option<f64>,
    /// Cost per month of the minimum number of instances; null without a price, or if no load misses.
    #[serde(rename = "money_per_month_at_least")]
    pub per_month_at_least: Option<f64>,
    /// Cost per million output tokens when exactly the target is served; null without a price.
    #[serde(rename = "cost_per_million_output_tokens_at_target")]
    pub per_million_at_target: Option<f64>,
    /// Cost per million output tokens when exactly the target is served by the minimum number of instances; null
    /// without a price, or if no load misses.
    #[serde(rename = "cost_per_million_output_tokens_at_target_at_least")]
    pub per_million_at_target_at_least: Option<f64>,
}

impl Instance {
    /// Computes how many instances the target needs.
    pub fn fleet(&self, target: Target) -> Fleet {
        let wanted = target.qps * (1.0 + target.headroom);
        let instances = whole(wanted / self.bears);
        let at_least = self.bound().map(|bound| bound.fewest(wanted).min(instances));
        let money = |instances: u64| Some(self.price_per_hour? * HOURS_PER_MONTH * instances as f64);
        let (per_month, per_month_at_least) = (money(instances), at_least.and_then(money));
        // The tokens per request are measured, not computed as the rung's throughput divided by its nominal
        // rate, because random arrivals deviate from that rate.
        let tokens_per_month = self.tokens_per_request.map(|tokens| target.qps * tokens * HOURS_PER_MONTH * 3600.0);
        // The tokens are those of the target load, so the cost includes the idle capacity of the headroom.
        let tokens_per_month = tokens_per_month.filter(|tokens| *tokens > 0.0);
        let per_million = |money: Option<f64>| Some(money? / tokens_per_month? * 1e6);
        Fleet {
            instances,
            at_least,
            interval: self.bound().map(|bound| bound.basis()),
            gpus: self.gpus.map(|gpus| u64::from(gpus) * instances),
            per_month,
            per_month_at_least,
            per_million_at_target: per_million(per_month),
            per_million_at_target_at_least: per_million(per_month_at_least),
        }
    }

    /// Returns the tighter of two loads that are known to be too high: the arrivals at the load that
    /// misses, and the rate served under saturation. The saturated rate is ignored if it is below the rate
    /// at the load that holds, because the server then degrades under overload and its maximum was not
    /// measured. `None` if no load misses.
    pub fn bound(&self) -> Option<Bound> {
        let misses = self.bears_less_than?;
        let served = self.serves_at_most.filter(|served| (self.bears..misses).contains(served));
        Some(served.map_or(Bound::Missed(misses), Bound::Served))
    }

    /// Returns the cost that decides between configurations, computed as if the capacity were exactly at its
    /// bound: the cost per month if there is a target, otherwise the cost per million output tokens. `None`
    /// without a price or tokens, or if no rung missed.
    pub fn price_at_most(&self, target: Option<Target>) -> Option<f64> {
        let (bound, price) = (self.bound()?, self.price_per_hour?);
        match target {
            Some(target) => self.fleet(target).per_month_at_least,
            None => {
                let per_hour = bound.rate() * self.tokens_per_request? * 3600.0;
                (per_hour > 0.0).then(|| price / per_hour * 1e6)
            }
        }
    }

    /// Returns the cost per million output tokens of an instance that always runs at the load of the rung
    /// that holds; `None` without a price or tokens.
    pub fn per_million(&self) -> Option<f64> {
        let per_hour = self.output_throughput * 3600.0;
        self.price_per_hour.filter(|_| per_hour > 0.0).map(|price| price / per_hour * 1e6)
    }

    /// Returns the output tokens per unit of money, at the rung that holds.
    pub fn tokens_per_money(&self) -> Option<f64> {
        let price = self.price_per_hour.filter(|price| *price > 0.0)?;
        Some(self.output_throughput * 3600.0 / price)
    }

    /// Returns the output tokens per joule at the rung that holds, based on the declared power.
    pub fn tokens_per_joule(&self) -> Option<f64> {
        self.watts.filter(|watts| *watts > 0.0).map(|watts| self.output_throughput / watts)
    }

    /// Returns the output tokens per joule at the rung that holds, and the source of the energy: measured,
    /// or else the declared power.
    pub fn per_joule(&self) -> Option<(f64, &'static str)> {
        let measured = self.measured.map(|measured| (measured.tokens, measured.by.name()));
        measured.or_else(|| Some((self.tokens_per_joule()?, DECLARED)))
    }
}

impl Bound {
    /// Returns the rate, in requests per second.
    pub fn rate(self) -> f64 {
        match self {
            Bound::Missed(rate) | Bound::Served(rate) => rate,
        }
    }

    /// Returns the minimum number of instances for a total load of `wanted` requests per second.
    fn fewest(self, wanted: f64) -> u64 {
        match self {
            Bound::Missed(rate) => above(wanted / rate),
            Bound::Served(rate) => whole(wanted / rate),
        }
    }

    fn basis(self) -> &'static str {
        match self {
            Bound::Missed(_) => TWO_LOADS,
            Bound::Served(_) => LOAD_AND_THROUGHPUT,
        }
    }
}

/// Rounds the number of instances up to a whole number, at least one. Floating-point noise just above a
/// whole number is ignored.
pub(super) fn whole(instances: f64) -> u64 {
    ((instances * (1.0 - 1e-12)).ceil() as u64).max(1)
}

/// Returns the smallest whole number above `instances`: each instance must carry less than the load that
/// misses.
fn above(instances: f64) -> u64 {
    (instances * (1.0 + 1e-12)).floor() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::server::EnergyBy;

    const INSTANCE: Instance = Instance {
        holds: 10.0,
        misses: Some(15.0),
        bears: 10.0,
        bears_less_than: Some(15.0),
        serves_at_most: None,
        output_throughput: 2_100.0,
        tokens_per_request: Some(200.0),
        gpus: Some(8),
        price_per_hour: Some(36.0),
        watts: Some(5_000.0),
        measured: None,
    };

    fn fleet(qps: f64, headroom: f64) -> Fleet {
        INSTANCE.fleet(Target { qps, headroom })
    }

    #[test]
    fn instances_are_counted_by_the_rung_that_holds() {
        let found = fleet(100.0, 0.2);
        assert_eq!((found.instances, found.at_least, found.gpus), (12, Some(9), Some(96)));
        assert_eq!([found.per_month, found.per_month_at_least], [Some(36.0 * 730.0 * 12.0), Some(36.0 * 730.0 * 9.0)]);
        // 100 requests/s of 200 tokens are 20 000 tokens/s, on 12 instances at 36 an hour. The chance
        // deviation of the measured arrivals does not matter.
        let per_million = found.per_million_at_target.unwrap();
        assert!((per_million - 12.0 * 36.0 / (20_000.0 * 3_600.0) * 1e6).abs() < 1e-9);
        let lower_end = found.per_million_at_target_at_least.unwrap();
        assert!((lower_end - 9.0 * 36.0 / (20_000.0 * 3_600.0) * 1e6).abs() < 1e-9);
        assert_eq!(fleet(100.0, 0.0).instances, 10);
        assert_eq!(fleet(0.1, 0.0).instances, 1);
        // 10 × 1.1 is slightly more than 11 in floating point.
        assert_eq!(fleet(100.0, 0.1).instances, 11);
        // At exactly the rate of the rung that misses, one instance is not enough.
        assert_eq!(fleet(15.0, 0.0).at_least, Some(2));
        assert_eq!(fleet(14.9, 0.0).at_least, Some(1));
    }

    #[test]
    fn a_saturated_throughput_is_the_tighter_bound() {
        let saturated = Instance { serves_at_most: Some(12.0), ..INSTANCE };
        assert_eq!(saturated.bound(), Some(Bound::Served(12.0)));
        let fleet = saturated.fleet(Target { qps: 120.0, headroom: 0.0 });
        // At 12 requests/s per instance, ten instances are needed; based on the miss at 15 alone, it would be
        // nine.
        assert_eq!((fleet.instances, fleet.at_least, fleet.interval), (12, Some(10), Some(LOAD_AND_THROUGHPUT)));
        let price = saturated.price_at_most(None).unwrap();
        assert!((price - 36.0 / (12.0 * 200.0 * 3_600.0) * 1e6).abs() < 1e-9, "{price}");
        // The saturated rate is not a bound if it is above the arrivals at the load that misses. Nor is it
        // a bound if it is below the rate at the load that holds, because the server then collapses under
        // overload.
        for useless in [16.0, 9.0] {
            let other = Instance { serves_at_most: Some(useless), ..INSTANCE };
            assert_eq!(other.bound(), Some(Bound::Missed(15.0)), "{useless}");
        }
        assert_eq!(Instance { misses: None, bears_less_than: None, ..saturated }.bound(), None);
    }

    #[test]
    fn what_came_counts_and_not_what_was_asked_for() {
        let found = Instance { bears: 9.0, bears_less_than: Some(14.0), ..INSTANCE };
        let fleet = found.fleet(Target { qps: 100.0, headroom: 0.0 });
        assert_eq!((fleet.instances, fleet.at_least), (12, Some(8)));
    }

    #[test]
    fn money_follows_from_the_rung_that_holds() {
        assert_eq!(INSTANCE.per_million(), Some(36.0 / 7.56));
        assert_eq!(INSTANCE.tokens_per_money(), Some(210_000.0));
        assert_eq!(INSTANCE.tokens_per_joule(), Some(0.42));
        assert_eq!(INSTANCE.per_joule(), Some((0.42, DECLARED)));
        let measured = Instance { measured: Some(PerJoule { tokens: 0.5, by: EnergyBy::Counter }), ..INSTANCE };
        assert_eq!((measured.per_joule(), measured.tokens_per_joule()), (Some((0.5, "counter")), Some(0.42)));
        // 15 requests per second with 200 tokens each, at a price of 36 per hour; the target needs at least 9
        // instances.
        assert_eq!(INSTANCE.price_at_most(None), Some(36.0 / (15.0 * 200.0 * 3600.0) * 1e6));
        assert_eq!(INSTANCE.price_at_most(Some(Target { qps: 100.0, headroom: 0.2 })), Some(36.0 * 730.0 * 9.0));
        let free = Instance { price_per_hour: None, watts: None, misses: None, bears_less_than: None, ..INSTANCE };
        assert_eq!((free.per_million(), free.tokens_per_money(), free.tokens_per_joule()), (None, None, None));
        let found = free.fleet(Target { qps: 100.0, headroom: 0.0 });
        assert_eq!((found.per_month, found.at_least, found.per_million_at_target), (None, None, None));
        let uncounted = Instance { tokens_per_request: None, ..INSTANCE }.fleet(Target { qps: 100.0, headroom: 0.0 });
        assert_eq!((uncounted.instances, uncounted.per_million_at_target), (10, None));
    }
}
