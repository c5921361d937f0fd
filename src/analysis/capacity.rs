//! How many instances a load takes, and what they cost.
//!
//! The most that one instance bears is known only as a bracket: a rung of a ladder that held, and the next that did not.
//! Instances are counted by what came at the rung that held; how many fewer the other end of the bracket would take is said beside it.
//! The two are an interval of the number: each end rests on a test that is wrong in at most 5 % of cases.

use schemars::JsonSchema;
use serde::Serialize;

use super::curve::TWO_LOADS;
use super::server::PerJoule;

/// Hours of a month: a twelfth of 365 days.
pub(crate) const HOURS_PER_MONTH: f64 = 730.0;

/// What is to be served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// Requests per second, all instances together.
    pub qps: f64,
    /// Share that is to be spare on top of it: 0.2 for a fifth.
    pub headroom: f64,
}

/// What one instance of a configuration bears and brings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instance {
    /// The highest rung that meets the objective, in requests per second.
    pub holds: f64,
    /// The lowest rung that does not; none where every rung did.
    pub misses: Option<f64>,
    /// Requests per second that came at the rung that holds.
    pub bears: f64,
    /// Requests per second that came at the rung that misses, or were to come where none were measured; none where every rung holds.
    pub bears_less_than: Option<f64>,
    /// The most requests per second that it can serve, as measured where more came than it served: the upper end of the 95 % interval of
    /// the rate at which requests ended there. None where no load saturated it.
    pub serves_at_most: Option<f64>,
    /// Output tokens per second at the rung that holds.
    pub output_throughput: f64,
    /// Output tokens of a completed request there, on average; none where nobody counted them.
    pub tokens_per_request: Option<f64>,
    /// Accelerators of the instance; none where they are not declared.
    pub gpus: Option<u32>,
    /// What it costs per hour, in the plan's currency; none where nothing is declared.
    pub price_per_hour: Option<f64>,
    /// Power of the instance in watts; none where it is not declared.
    pub watts: Option<f64>,
    /// Output tokens for a joule of its GPUs at the rung that holds, as measured; none where that is not known of all of its runs.
    pub measured: Option<PerJoule>,
}

/// What one instance cannot bear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// As much as came, in requests per second, at the lowest load that misses the objective: it bears less.
    Missed(f64),
    /// More than it served, in requests per second, where more came than that: it bears at most this.
    Served(f64),
}

/// What energy is known by that was not measured.
pub const DECLARED: &str = "declared watts";
/// What the number of instances rests on where their throughput under saturation bounds it.
const LOAD_AND_THROUGHPUT: &str = "test of the load that holds, interval of the saturated throughput";

/// How many instances the target takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Fleet {
    /// Instances, by what came at the load that holds: the upper end of the interval of their number.
    pub instances: u64,
    /// Instances that are needed at least: if one served just less than what came at the load that misses, or, where that is fewer, as
    /// much as a saturated one was measured to serve. The lower end of the interval; null where no load misses.
    pub at_least: Option<u64>,
    /// What the interval rests on: `tests of the two loads`, each wrong in at most 5 % of cases, or where the saturated throughput is the
    /// tighter bound `test of the load that holds, interval of the saturated throughput`; null where no load misses.
    pub interval: Option<&'static str>,
    /// Accelerators of all instances; null where the plan does not declare them.
    pub gpus: Option<u64>,
    /// Money per month of 730 hours; null without a price.
    #[serde(rename = "money_per_month")]
    pub per_month: Option<f64>,
    /// Money per million output tokens when just the target is served; null without a price.
    #[serde(rename = "cost_per_million_output_tokens_at_target")]
    pub per_million_at_target: Option<f64>,
}

impl Instance {
    /// How many of it the target takes.
    pub fn fleet(&self, target: Target) -> Fleet {
        let wanted = target.qps * (1.0 + target.headroom);
        let instances = whole(wanted / self.bears);
        let per_month = self.price_per_hour.map(|price| price * HOURS_PER_MONTH * instances as f64);
        // Not from the throughput over the rung's rate: arrivals by chance are more or fewer than they are on average.
        let tokens_per_month = self.tokens_per_request.map(|tokens| target.qps * tokens * HOURS_PER_MONTH * 3600.0);
        Fleet {
            instances,
            at_least: self.bound().map(|bound| bound.fewest(wanted).min(instances)),
            interval: self.bound().map(|bound| bound.basis()),
            gpus: self.gpus.map(|gpus| u64::from(gpus) * instances),
            per_month,
            // Headroom is idle.
            per_million_at_target: per_month
                .zip(tokens_per_month)
                .filter(|(_, tokens)| *tokens > 0.0)
                .map(|(money, tokens)| money / tokens * 1e6),
        }
    }

    /// The tighter of what is known to be too much: what came at the load that misses, and what it served when saturated. The second is
    /// ignored where it lies below what it bore: then it serves less the more it is overrun, and its best was not measured. None where
    /// no load misses.
    pub fn bound(&self) -> Option<Bound> {
        let misses = self.bears_less_than?;
        let served = self.serves_at_most.filter(|served| (self.bears..misses).contains(served));
        Some(served.map_or(Bound::Missed(misses), Bound::Served))
    }

    /// What decides between configurations, were the limit just at its bound: money a month at a target, money per million output tokens
    /// without one. None without a price or tokens, and where no rung missed.
    pub fn price_at_most(&self, target: Option<Target>) -> Option<f64> {
        let (bound, price) = (self.bound()?, self.price_per_hour?);
        match target {
            Some(target) => Some(price * HOURS_PER_MONTH * self.fleet(target).at_least? as f64),
            None => {
                let per_hour = bound.rate() * self.tokens_per_request? * 3600.0;
                (per_hour > 0.0).then(|| price / per_hour * 1e6)
            }
        }
    }

    /// Money per million output tokens of an instance that is kept at the rung that holds; none without a price or tokens.
    pub fn per_million(&self) -> Option<f64> {
        let per_hour = self.output_throughput * 3600.0;
        self.price_per_hour.filter(|_| per_hour > 0.0).map(|price| price / per_hour * 1e6)
    }

    /// Output tokens for one unit of money, at the rung that holds.
    pub fn tokens_per_money(&self) -> Option<f64> {
        let price = self.price_per_hour.filter(|price| *price > 0.0)?;
        Some(self.output_throughput * 3600.0 / price)
    }

    /// Output tokens per joule at the rung that holds, by the declared power.
    pub fn tokens_per_joule(&self) -> Option<f64> {
        self.watts.filter(|watts| *watts > 0.0).map(|watts| self.output_throughput / watts)
    }

    /// Output tokens per joule at the rung that holds, and what their energy is known by: as measured, else by the declared power.
    pub fn per_joule(&self) -> Option<(f64, &'static str)> {
        let measured = self.measured.map(|measured| (measured.tokens, measured.by.name()));
        measured.or_else(|| Some((self.tokens_per_joule()?, DECLARED)))
    }
}

impl Bound {
    /// Requests per second.
    pub fn rate(self) -> f64 {
        match self {
            Bound::Missed(rate) | Bound::Served(rate) => rate,
        }
    }

    /// The fewest instances that so many requests per second take.
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

/// The whole number of instances that bear a load of so many of them; at least one. What floating point adds beyond a whole
/// number is none of the load.
fn whole(instances: f64) -> u64 {
    ((instances * (1.0 - 1e-12)).ceil() as u64).max(1)
}

/// The least whole number of instances that bear a load of so many of them where one bears less than one.
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
        assert_eq!(found.per_month, Some(36.0 * 730.0 * 12.0));
        // 100 requests/s of 200 tokens are 20 000 tokens/s, whatever chance brought while it was measured, of 12 instances at 36 an hour.
        let per_million = found.per_million_at_target.unwrap();
        assert!((per_million - 12.0 * 36.0 / (20_000.0 * 3_600.0) * 1e6).abs() < 1e-9);
        assert_eq!(fleet(100.0, 0.0).instances, 10);
        assert_eq!(fleet(0.1, 0.0).instances, 1);
        // 10 × 1.1 is a little more than 11 in floating point.
        assert_eq!(fleet(100.0, 0.1).instances, 11);
        // Exactly at the rung that misses one instance does not do.
        assert_eq!(fleet(15.0, 0.0).at_least, Some(2));
        assert_eq!(fleet(14.9, 0.0).at_least, Some(1));
    }

    #[test]
    fn a_saturated_throughput_is_the_tighter_bound() {
        let saturated = Instance { serves_at_most: Some(12.0), ..INSTANCE };
        assert_eq!(saturated.bound(), Some(Bound::Served(12.0)));
        let fleet = saturated.fleet(Target { qps: 120.0, headroom: 0.0 });
        // At 12 each ten do; that they miss at 15 alone would leave it at nine.
        assert_eq!((fleet.instances, fleet.at_least, fleet.interval), (12, Some(10), Some(LOAD_AND_THROUGHPUT)));
        let price = saturated.price_at_most(None).unwrap();
        assert!((price - 36.0 / (12.0 * 200.0 * 3_600.0) * 1e6).abs() < 1e-9, "{price}");
        // Beyond what came at the load that misses it says nothing, nor below what it bore: it collapses when it is overrun.
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
        // 15 a second of 200 tokens at 36 an hour; 9 instances at least.
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
