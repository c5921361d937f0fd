//! A search for the highest load that meets the objective, as written by the user, and the loads that it may
//! try.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::objective::Slo;
use crate::plan::model::shorthand::OneOrMany;
use crate::units::{Decimal, Nanos, Share};

/// Maximum number of runs at one load before a search considers the load undecided.
pub const MOST_OF_A_LOAD: u32 = 8;
/// Maximum number of long runs with which a search confirms one load.
pub const MOST_CONFIRMATIONS: u32 = 5;

/// The objective that a load must meet, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Meets {
    /// The plan's `slo`: all limits on latencies together.
    Slo,
    /// The plan's `slo`, then each of its limits separately.
    Each,
    /// Only the limits of `slo` on the time to first token.
    Ttft,
    /// Only the limits of `slo` on the inter-token latency.
    Itl,
    /// Only the limits of `slo` on the time per output token.
    Tpot,
    /// Only the limits of `slo` on the end-to-end latency.
    E2e,
    /// The limit of `slo` on the cost of a million output tokens. The search reports the lowest load that meets
    /// it.
    CostPerMillion,
}

/// The objective of one search result: the whole objective, or one limit of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Objective {
    /// All limits on latencies together.
    Slo,
    /// Limits on the time to first token.
    Ttft,
    /// Limits on the inter-token latency.
    Itl,
    /// Limits on the time per output token.
    Tpot,
    /// Limits on the end-to-end latency.
    E2e,
    /// The limit on the cost of a million output tokens.
    CostPerMillion,
}

impl Objective {
    /// The name in plans and results.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether a limit on this metric belongs to this objective. The metric is given by its key in the metric
    /// table.
    pub fn has(self, metric: &str) -> bool {
        // In open loops, latencies are counted from the scheduled time, and the metric's key has the suffix
        // `_from_schedule`.
        self == Objective::Slo || metric.strip_suffix("_from_schedule").unwrap_or(metric) == self.name()
    }

    /// The latencies that the plan's objective limits, in documentation order.
    pub fn latencies_of(slo: &Slo) -> Vec<Objective> {
        let Slo { ttft, itl, tpot, e2e, cost_per_million: _ } = slo;
        let limits = [(Objective::Ttft, ttft), (Objective::Itl, itl), (Objective::Tpot, tpot), (Objective::E2e, e2e)];
        limits.into_iter().filter(|(_, limits)| !limits.is_empty()).map(|(objective, _)| objective).collect()
    }
}

impl Meets {
    /// The objective that the entry names; `None` for `each`.
    pub fn objective(self) -> Option<Objective> {
        Some(match self {
            Meets::Slo => Objective::Slo,
            Meets::Each => return None,
            Meets::Ttft => Objective::Ttft,
            Meets::Itl => Objective::Itl,
            Meets::Tpot => Objective::Tpot,
            Meets::E2e => Objective::E2e,
            Meets::CostPerMillion => Objective::CostPerMillion,
        })
    }
}

/// The range of loads to search, and the resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRange {
    /// The lightest load to try.
    #[schemars(example = 1)]
    pub from: Decimal,
    /// The heaviest load to try.
    #[schemars(example = 200)]
    pub to: Decimal,
    /// Maximum distance between two neighboring loads, as a share of the lighter one. This is the resolution
    /// of the result. Default 5%.
    #[serde(default = "five_percent")]
    #[schemars(extend("default" = "5%"), example = &"5%")]
    pub within: Share,
}

fn the_slo() -> OneOrMany<Meets> {
    OneOrMany(vec![Meets::Slo])
}

const fn five_percent() -> Share {
    Share::percent(5)
}

/// Default length of the run that confirms the result.
pub const CONFIRM: Nanos = Nanos::from_secs(300);

/// Searches for the highest load that meets the objective, for each cell of the matrix.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Search for the highest rate of an open loop, in requests per second.
    pub qps: Option<SearchRange>,
    /// Search for the largest batch of a closed loop, in requests kept in flight.
    pub batch_size: Option<SearchRange>,
    /// The objectives that the load must meet. `slo` (the default) stands for all latency limits of the
    /// plan's objective together; `each` stands for these limits together, and then for each limit
    /// separately, including the limit on the cost of tokens. A list like [slo, ttft, tpot,
    /// cost_per_million] names several objectives, which are searched in this order. Each run contributes to
    /// all of them.
    #[serde(default = "the_slo")]
    #[schemars(extend("default" = "slo"), example = &"each")]
    pub meets: OneOrMany<Meets>,
    /// The window of the run that confirms the result; 0s for no confirmation. If this run misses the
    /// objective, the search continues below its load. Default 5m.
    #[schemars(extend("default" = "5m"), example = &"5m")]
    pub confirm: Option<Nanos>,
}

/// The finest resolution that a search may have.
pub const FINEST: Share = Share(Decimal::new(5, 3));

impl Search {
    /// The axis to search and its range; `None` if neither or both axes are given.
    pub fn axis(&self) -> Option<(&'static str, SearchRange)> {
        match (self.qps, self.batch_size) {
            (Some(range), None) => Some(("qps", range)),
            (None, Some(range)) => Some(("batch_size", range)),
            _ => None,
        }
    }

    /// The requested objectives, in order and without duplicates; `slo` is the plan's objective.
    pub fn objectives(&self, slo: Option<&Slo>) -> Vec<Objective> {
        let mut asked = Vec::new();
        for meets in &self.meets.0 {
            let each = || {
                let latencies = slo.map(Objective::latencies_of).unwrap_or_default();
                // If there is only one limit, it is the whole objective.
                let alone = if latencies.len() > 1 { latencies } else { Vec::new() };
                let cost = slo.and_then(|slo| slo.cost_per_million).map(|_| Objective::CostPerMillion);
                [Objective::Slo].into_iter().chain(alone).chain(cost).collect()
            };
            let named = meets.objective().map_or_else(each, |objective| vec![objective]);
            asked.extend(named);
        }
        let mut seen = HashSet::new();
        asked.retain(|objective| seen.insert(*objective));
        asked
    }

    /// Whether the result of the search covers the plan's whole objective: `meets` lists `slo`, or the
    /// only latency that the objective limits.
    pub fn answers_all_of(&self, slo: &Slo) -> bool {
        let asked = self.objectives(Some(slo));
        let latencies = Objective::latencies_of(slo);
        asked.contains(&Objective::Slo) || (latencies.len() == 1 && asked.contains(&latencies[0]))
    }

    /// The window of the run that confirms the result; `None` without confirmation.
    pub fn confirmation(&self) -> Option<Nanos> {
        Some(self.confirm.unwrap_or(CONFIRM)).filter(|window| *window > Nanos::ZERO)
    }

    /// The loads that may be tried, ascending: powers of the square root of 1 + `within`, rounded to 3 significant
    /// digits (4 below 3 %, whole numbers for a batch), and both ends of the range. The powers do not depend
    /// on the ends, so a search over another range can reuse existing runs.
    pub fn loads(&self) -> Vec<Decimal> {
        let Some((axis, range)) = self.axis() else { return Vec::new() };
        let ends = [range.from, range.to].map(Decimal::to_f64);
        let loads = grid(ends, range.within.to_f64(), axis == "batch_size").into_iter();
        // Parsing the shortest text of the float yields the decimal with the fewest digits.
        loads.filter_map(|load| load.to_string().parse().ok()).collect()
    }
}

/// The loads between both ends, ascending, as floats. They are bit for bit equal to the values of
/// [`Search::loads`], converted to floats.
pub fn grid([from, to]: [f64; 2], within: f64, whole: bool) -> Vec<f64> {
    let step = (1.0 + within).ln() / 2.0;
    let digits = if within < 0.03 { 4 } else { 3 };
    let inside = |load: &f64| (from..=to).contains(load);
    let powers = (from.ln() / step).floor() as i64..=(to.ln() / step).ceil() as i64;
    let between = powers.map(|power| rounded((power as f64 * step).exp(), digits, whole));
    let ends = if whole { [from.ceil(), to.floor()] } else { [from, to] };
    let mut loads: Vec<f64> = between.chain(ends).filter(inside).collect();
    loads.sort_unstable_by(f64::total_cmp);
    loads.dedup();
    loads
}

/// Rounds a number to this many significant digits, or to a whole number if `whole` is true.
fn rounded(number: f64, digits: usize, whole: bool) -> f64 {
    if whole { number.round() } else { format!("{number:.*e}", digits - 1).parse().unwrap_or(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(axis: &str, from: &str, to: &str, within: &str) -> Search {
        let range = serde_json::json!({ "from": from.parse::<f64>().unwrap(), "to": to.parse::<f64>().unwrap(), "within": within });
        serde_json::from_value(serde_json::json!({ axis: range })).expect("a search")
    }

    #[test]
    fn neighbours_lie_no_farther_apart_than_the_resolution() {
        for (from, to, within) in [("1", "200", "5%"), ("0.5", "7", "2%"), ("10", "900", "1%"), ("3", "4", "0.5%")] {
            let loads = search("qps", from, to, within).loads();
            let share = within.parse::<Share>().unwrap().to_f64();
            assert_eq!(loads.first().map(|load| load.to_f64()), Some(from.parse().unwrap()));
            assert_eq!(loads.last().map(|load| load.to_f64()), Some(to.parse().unwrap()));
            for pair in loads.windows(2) {
                let ratio = pair[1].to_f64() / pair[0].to_f64();
                assert!(ratio > 1.0 && ratio < 1.0 + share, "{} to {}", pair[0], pair[1]);
            }
        }
    }

    #[test]
    fn another_range_has_the_same_loads_within() {
        let (one, other) = (search("qps", "1", "200", "5%").loads(), search("qps", "5", "50", "5%").loads());
        assert!(other[1..other.len() - 1].iter().all(|load| one.contains(load)), "{other:?}");
    }

    #[test]
    fn each_is_the_objective_and_every_limit_of_it_once() {
        let of = |meets: serde_json::Value, slo: serde_json::Value| {
            let range = serde_json::json!({ "from": 1, "to": 9 });
            let search: Search = serde_json::from_value(serde_json::json!({ "qps": range, "meets": meets })).unwrap();
            let slo: Slo = serde_json::from_value(slo).unwrap();
            search.objectives(Some(&slo)).into_iter().map(Objective::name).collect::<Vec<_>>()
        };
        let two = serde_json::json!({ "tpot": { "p99": "50ms" }, "ttft": { "p50": "1s", "p99": "2s" }, "cost_per_million": 3 });
        assert_eq!(of("slo".into(), two.clone()), ["slo"]);
        assert_eq!(of("each".into(), two.clone()), ["slo", "ttft", "tpot", "cost_per_million"]);
        assert_eq!(of(serde_json::json!(["tpot", "slo", "tpot"]), two), ["tpot", "slo"]);
        assert_eq!(of("each".into(), serde_json::json!({ "e2e": { "p99": "2s" } })), ["slo"]);
    }

    #[test]
    fn batches_are_whole() {
        let loads = search("batch_size", "1", "64", "10%").loads();
        assert!(loads.iter().all(|load| load.to_f64().fract() == 0.0), "{loads:?}");
        assert!(loads.windows(2).all(|pair| pair[0] < pair[1]), "{loads:?}");
    }
}
