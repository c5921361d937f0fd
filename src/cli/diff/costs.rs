//! The cost of two plans before they are measured, estimated by the same rules as in `preview`: requests,
//! tokens sent and received, time, and money if prices are declared. The cost of shared runs cancels out,
//! so a difference may be known even if the sums are not.

use std::collections::{BTreeSet, HashSet};

use comfy_table::Cell;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::estimate::{Cost, Estimator, MONEY_RULE, REQUESTS_RULE, TIME_RULE, TOKENS_RULE};
use super::compare::{Compared, Group};
use super::source::Side;
use crate::cli::failure::Failure;
use crate::cli::options::Folder;
use crate::expand::{PlannedRun, RunId};
use crate::report::format::{digits, duration, fill, plain};
use crate::report::grid::{self, right};
use crate::sweep::on_disk::OnDisk;
use crate::units::text::counted;

/// The cost of two plans.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Costs {
    /// The cost of the old plan.
    before: SideCost,
    /// The cost of the new plan.
    after: SideCost,
    /// The cost of the new plan minus the cost of the old plan.
    change: Change,
    /// The rule by which each figure is computed.
    rules: Rules,
    /// The cost of the added runs that are executed regardless of the results of other runs.
    #[serde(skip)]
    added: Cost,
}

/// The cost of all runs of a plan, as if none had a result.
#[derive(Debug, Serialize, JsonSchema)]
struct SideCost {
    #[serde(flatten)]
    cost: Cost,
    /// `money` per million of `output_tokens`; null if either is unknown for any run.
    money_per_million_output_tokens: Option<f64>,
}

/// The difference in each figure; null if unknown.
#[derive(Debug, Serialize, JsonSchema)]
struct Change {
    /// Requests of added runs minus those of removed runs.
    requests: Option<i64>,
    /// Prompt tokens of added runs minus those of removed runs.
    prompt_tokens: Option<i64>,
    /// Output tokens of added runs minus those of removed runs.
    output_tokens: Option<i64>,
    /// Difference in the time until the last run has ended, in seconds.
    seconds: Option<f64>,
    /// Difference in money, in the currency of the plans; null if their currencies differ.
    money: Option<f64>,
    /// Difference in money per million output tokens.
    money_per_million_output_tokens: Option<f64>,
}

/// The rule by which each figure is computed.
#[derive(Debug, Serialize, JsonSchema)]
struct Rules {
    /// The rule by which requests are counted.
    requests: &'static str,
    /// The rule by which tokens are counted.
    tokens: &'static str,
    /// The rule by which time is estimated.
    time: &'static str,
    /// The rule by which money is estimated.
    money: &'static str,
}

/// A plan, and the results on which its costs are estimated.
pub(super) struct Estimated<'a> {
    side: &'a Side,
    disk: OnDisk,
    /// Maximum number of concurrent runs.
    jobs: u16,
}

impl<'a> Estimated<'a> {
    /// Reads the results of a folder for a plan; without a folder, there are no results.
    pub(super) fn new(side: &'a Side, folder: Option<&Folder>, jobs: u16) -> Result<Estimated<'a>, Failure> {
        let disk = match folder {
            Some(folder) => OnDisk::read(&folder.store()?, &side.expansion)?,
            None => OnDisk::without_results(&side.expansion),
        };
        Ok(Estimated { side, disk, jobs })
    }

    fn estimator(&self) -> Estimator<'_> {
        Estimator::of(&self.side.loaded.plan, &self.side.expansion, &self.disk)
    }

    /// Returns the cost of the whole plan, as if none of its runs had a result.
    fn whole(&self) -> Cost {
        self.estimator().total(&(0..self.side.expansion.runs.len()).collect(), self.jobs)
    }

    /// Returns the cost of those of the runs `ids` that the plan executes regardless of the results of other runs.
    fn certain(&self, ids: &HashSet<RunId>) -> Cost {
        let runs = self.side.expansion.runs.iter().enumerate();
        let positions = runs.filter(|(_, run)| ids.contains(&run.id)).map(|(at, _)| at);
        self.estimator().total(&positions.collect(), self.jobs)
    }
}

impl Costs {
    /// Computes the costs of two plans. The number of requests of closed loops, and the duration of server starts,
    /// are estimated from results.
    pub(super) fn of(a: &Estimated, b: &Estimated, compared: &Compared) -> Costs {
        let before = SideCost::all(a);
        let after = SideCost::all(b);
        let come = b.estimator().without_starts(runs(compared, |group| &group.come));
        let go = a.estimator().without_starts(runs(compared, |group| &group.go));
        let added = b.certain(&runs(compared, |group| &group.come).map(|run| run.id).collect());
        let known = come.runs_with_unknown_requests == 0 && go.runs_with_unknown_requests == 0;
        let less = |after: u64, before: u64| known.then(|| after as i64 - before as i64);
        let timed = before.cost.has_known_time() && after.cost.has_known_time();
        let currencies = [before.cost.currency, after.cost.currency];
        let is_alike = matches!(currencies, [Some(old), Some(new)] if old == new) || currencies.contains(&None);
        let minus = |after: Option<f64>, before: Option<f64>| Some(after? - before?).filter(|_| is_alike);
        let change = Change {
            requests: less(come.requests, go.requests),
            prompt_tokens: less(come.prompt_tokens, go.prompt_tokens),
            output_tokens: less(come.output_tokens, go.output_tokens),
            seconds: timed.then_some(after.cost.seconds - before.cost.seconds),
            money: minus(after.money(), before.money()),
            money_per_million_output_tokens: minus(
                after.money_per_million_output_tokens,
                before.money_per_million_output_tokens,
            ),
        };
        let rules = Rules { requests: REQUESTS_RULE, tokens: TOKENS_RULE, time: TIME_RULE, money: MONEY_RULE };
        Costs { before, after, change, rules, added }
    }

    /// Returns the cost of the added runs that are executed regardless of the results of other runs.
    pub(super) fn added(&self) -> &Cost {
        &self.added
    }

    /// Whether both plans cost the same.
    fn is_same(&self) -> bool {
        self.before.cost == self.after.cost
    }

    /// Returns the text for people: a table, and notes on unknown figures.
    pub(super) fn text(&self) -> String {
        if self.is_same() {
            return String::new();
        }
        let mut table = grid::table();
        table.set_header(vec![Cell::new("cost of the whole plan"), right("before"), right("after"), right("change")]);
        for [what, before, after, change] in self.rows() {
            table.add_row(vec![Cell::new(what), right(before), right(after), right(change)]);
        }
        let mut out = format!("\n{}", grid::text(table, 2, &[0]));
        self.notes().iter().for_each(|note| out.push_str(&fill("", 2, note)));
        out
    }

    /// Returns the Markdown for a pull request.
    pub(super) fn markdown(&self) -> String {
        if self.is_same() {
            return String::new();
        }
        let mut out = "\n| cost of the whole plan | before | after | change |\n|---|--:|--:|--:|\n".to_owned();
        self.rows().iter().for_each(|row| out.push_str(&format!("| {} |\n", row.join(" | "))));
        self.notes().iter().for_each(|note| out.push_str(&format!("\n{}\n", crate::report::format::escaped(note))));
        out
    }

    fn rows(&self) -> [[String; 4]; 6] {
        let (before, after, change) = (&self.before, &self.after, &self.change);
        let counts = |what: &str, of: fn(&Cost) -> u64, change: Option<i64>| {
            let change =
                change.map_or_else(na, |change| if change == 0 { "0".to_owned() } else { format!("{change:+}") });
            [what.to_owned(), before.counted(of), after.counted(of), change]
        };
        let money = |what: &str, [before, after, change]: [Option<f64>; 3]| {
            let shown = |money: Option<f64>| money.map_or_else(na, digits);
            [what.to_owned(), shown(before), shown(after), change.map_or_else(na, signed)]
        };
        let time = |side: &SideCost| {
            let more = if side.cost.has_known_time() { "" } else { " + ?" };
            format!("{}{more}", duration(side.cost.seconds.ceil() as u64))
        };
        let later = change.seconds.map_or_else(na, |seconds| {
            let (sign, shown) = (if seconds < 0.0 { "-" } else { "+" }, seconds.abs().ceil() as u64);
            if shown == 0 { "0s".to_owned() } else { format!("{sign}{}", duration(shown)) }
        });
        [
            counts("requests", |cost| cost.requests, change.requests),
            counts("tokens sent", |cost| cost.prompt_tokens, change.prompt_tokens),
            counts("tokens received, at most", |cost| cost.output_tokens, change.output_tokens),
            ["time".to_owned(), time(before), time(after), later],
            money("money, time × price", [before.money(), after.money(), change.money]),
            money(
                "money per million tokens received",
                [
                    before.money_per_million_output_tokens,
                    after.money_per_million_output_tokens,
                    change.money_per_million_output_tokens,
                ],
            ),
        ]
    }

    /// Returns the notes without which the table would be misleading.
    fn notes(&self) -> Vec<String> {
        let [before, after] = [&self.before.cost, &self.after.cost];
        let mut notes = Vec::new();
        let unknown = [(before, "before"), (after, "after")];
        let unknown = unknown.map(|(cost, when)| (cost.runs_with_unknown_requests, when)).into_iter();
        let unknown = unknown.filter(|(count, _)| *count > 0);
        let unknown: Vec<String> = unknown.map(|(count, when)| format!("{} {when}", counted(count, "run"))).collect();
        if !unknown.is_empty() {
            let runs = unknown.join(" and ");
            notes.push(format!(
                "`+ ?`: the number of requests of {runs} is unknown, because these are closed loops without an \
                 earlier result"
            ));
        }
        let unmeasured =
            [(before, "before"), (after, "after")].map(|(cost, when)| (cost.starts_of_unknown_length, when));
        let unmeasured: Vec<String> = unmeasured
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, when)| format!("{} {when}", counted(count, "server start")))
            .collect();
        if !unmeasured.is_empty() {
            notes.push(format!("time: {}, not yet measured", unmeasured.join(" and ")));
        }
        let named = [before, after].into_iter().flat_map(|cost| &cost.estimated_from);
        let named: BTreeSet<&str> = named.map(String::as_str).collect();
        if !named.is_empty() {
            let (count, first) = (named.len(), named.iter().take(3).copied().collect::<Vec<_>>().join(", "));
            let more = if count > 3 { format!(" and {} more", count - 3) } else { String::new() };
            notes.push(format!("closed loops are estimated from earlier results: {first}{more}"));
        }
        let unpriced: BTreeSet<&String> = before.without_price.iter().chain(&after.without_price).collect();
        if unpriced.is_empty() {
            notes.push(match [before.currency, after.currency] {
                [Some(old), Some(new)] if old != new => {
                    format!("money is in {old} before and in {new} after: the change is unknown")
                }
                [_, Some(currency)] | [Some(currency), _] => format!("money is in {currency}"),
                [None, None] => "money is in the plan's currency".to_owned(),
            });
        } else {
            let names: Vec<String> = unpriced.into_iter().map(|name| plain(name)).collect();
            notes.push(format!("money n/a: neither price_per_hour nor owned is declared for {}", names.join(", ")));
        }
        notes
    }
}

impl SideCost {
    fn all(plan: &Estimated) -> SideCost {
        let mut all = SideCost { cost: plan.whole(), money_per_million_output_tokens: None };
        let is_counted = all.cost.runs_with_unknown_requests == 0 && all.cost.output_tokens > 0;
        let per_million = all.money().filter(|_| is_counted).map(|money| money / all.cost.output_tokens as f64 * 1e6);
        all.money_per_million_output_tokens = per_million;
        all
    }

    /// Returns the money of all runs; `None` if any run has no price or an unknown length.
    fn money(&self) -> Option<f64> {
        let is_whole = self.cost.without_price.is_empty() && self.cost.runs_of_unknown_length == 0;
        self.cost.money.filter(|_| is_whole)
    }

    /// Returns a count, with a mark if some runs are not included.
    fn counted(&self, of: fn(&Cost) -> u64) -> String {
        match (of(&self.cost), self.cost.runs_with_unknown_requests) {
            (count, 0) => count.to_string(),
            (0, _) => na(),
            (count, _) => format!("{count} + ?"),
        }
    }
}

fn na() -> String {
    "n/a".to_owned()
}

fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", digits(value)) } else { digits(value) }
}

fn runs<'c, 'a>(
    compared: &'c Compared<'a>,
    of: fn(&'c Group<'a>) -> &'c Vec<&'a PlannedRun>,
) -> impl Iterator<Item = &'a PlannedRun> + use<'c, 'a> {
    compared.groups.iter().flat_map(of).copied()
}
