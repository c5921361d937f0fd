//! The default columns of a table for human readers: about thirty columns in reading order. Names come first,
//! followed by the verdict, the main numbers with their intervals, errors, cost and the objective; ids come
//! last.
//!
//! After the scenario come the further axes, and every fact of a server, a model or a request that differs
//! between rows. If the rows are in memory, a column that is null in every row is omitted, unless it is in
//! [`ESSENTIAL`].

use crate::analysis::curve::Ordinate;
use crate::analysis::quantile;
use crate::plan::Slo;

use super::{Cell, Column, Sheet};

/// Default columns of the tables of runs and of classes.
pub(crate) const RUNS: [&str; 36] = [
    "sweep",
    "class",
    "endpoint",
    "engine",
    "model",
    "scenario",
    "batch_size",
    "qps",
    "repeat",
    "verdict",
    "reasons",
    "requests",
    "arrived_rate_requests_per_s",
    "request_throughput_requests_per_s",
    "output_throughput_tokens_per_s",
    "ttft_p50_ms",
    "ttft_p50_low_ms",
    "ttft_p50_high_ms",
    "ttft_p99_ms",
    "ttft_p99_low_ms",
    "ttft_p99_high_ms",
    "ttft_from_schedule_p99_ms",
    "tpot_p50_ms",
    "tpot_p50_low_ms",
    "tpot_p50_high_ms",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "jitter_ratio",
    "failed",
    "errors",
    "first_error",
    "given_up",
    "goodput_share",
    "cost_per_million_output_tokens",
    "objective",
    "run_id",
];

/// Default columns of the table of curves.
pub(crate) const CURVES: [&str; 36] = [
    "sweep",
    "endpoint",
    "model",
    "scenario",
    "cap",
    "load_axis",
    "load",
    "arrived_rate_requests_per_s",
    "runs",
    "left_out",
    "excluded",
    "given_up_reason",
    "request_throughput_requests_per_s",
    "output_throughput_tokens_per_s",
    "output_throughput_low_tokens_per_s",
    "output_throughput_high_tokens_per_s",
    "user_throughput_mean_tokens_per_s",
    "ttft_p50_ms",
    "ttft_p50_low_ms",
    "ttft_p50_high_ms",
    "ttft_p99_ms",
    "ttft_p99_low_ms",
    "ttft_p99_high_ms",
    "tpot_p50_ms",
    "tpot_p50_low_ms",
    "tpot_p50_high_ms",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "error_share",
    "goodput_share",
    "cost_per_million_output_tokens",
    "tokens_per_joule",
    "saturation",
    "objective",
    "few_samples",
    "plan",
];

/// Default columns of the tables of length buckets and of turns.
pub(crate) const PARTS: [&str; 28] = [
    "sweep",
    "endpoint",
    "model",
    "scenario",
    "batch_size",
    "qps",
    "repeat",
    "by",
    "tokens",
    "turn",
    "requests",
    "output_throughput_tokens_per_s",
    "ttft_p50_ms",
    "ttft_p50_low_ms",
    "ttft_p50_high_ms",
    "ttft_p99_ms",
    "ttft_p99_low_ms",
    "ttft_p99_high_ms",
    "tpot_p50_ms",
    "tpot_p50_low_ms",
    "tpot_p50_high_ms",
    "itl_p50_ms",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "cached_share",
    "failed",
    "error_share",
    "run_id",
];

/// Default columns of the table of requests.
pub(crate) const REQUESTS: [&str; 33] = [
    "sweep",
    "endpoint",
    "model",
    "scenario",
    "batch_size",
    "qps",
    "repeat",
    "request",
    "phase",
    "measured",
    "class",
    "conversation",
    "turn",
    "outcome",
    "http_status",
    "error",
    "finish_reason",
    "intended_prompt_tokens",
    "prompt_tokens",
    "cached_tokens",
    "requested_tokens",
    "output_tokens",
    "streamed_tokens",
    "tokens_unknown",
    "ttft_ms",
    "ttft_from_schedule_ms",
    "tpot_ms",
    "e2e_ms",
    "e2e_from_schedule_ms",
    "lateness_ms",
    "user_throughput_tokens_per_s",
    "usage_doubt",
    "run_id",
];

/// Columns that are kept even if they are null in every row, because the fact that a value is unknown is
/// informative.
const ESSENTIAL: [&str; 16] = [
    "endpoint",
    "engine",
    "model",
    "scenario",
    "repeat",
    "load_axis",
    "load",
    "verdict",
    "requests",
    "runs",
    "output_throughput_tokens_per_s",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "e2e_p50_ms",
    "run_id",
];

/// The column that axes and distinguishing facts are inserted after.
const BEFORE_AXES: &str = "scenario";

/// The column that the percentiles limited by the objective are inserted after.
const BEFORE_LIMITED: &str = "e2e_p99_ms";

/// Returns the names of the columns of the percentiles that an objective limits. If such a percentile lies
/// among the failed requests, only a lower bound is known; the columns of these bounds are included. No
/// single table has all of these columns, because the names are those of all kinds of tables.
pub(crate) fn limited(slo: Option<&Slo>) -> Vec<String> {
    let of = |reading: &Ordinate| {
        let percentile = reading.percentile.map(quantile::column).unwrap_or_default();
        let metrics = [reading.metric(false).key, reading.metric(true).key];
        let latency = reading.name.split('_').next().unwrap_or_default();
        let names = metrics.map(|key| format!("{key}_{percentile}_ms")).into_iter();
        let above = metrics.map(|key| format!("{key}_above_ms"));
        names.chain(above).chain([format!("{latency}_{percentile}_at_least_ms")]).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = Ordinate::limited(slo).into_iter().flat_map(of).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Which columns of a table have values, and which columns distinguish rows.
pub(crate) struct Values {
    /// For each column: whether any row has a value, and whether rows differ.
    of: Vec<(bool, bool)>,
}

impl Values {
    /// Determines which columns have values and which distinguish rows. Consumes the table.
    pub(crate) fn of(sheet: Sheet<'_>) -> Values {
        let mut of = vec![(false, false); sheet.columns.len()];
        let mut first: Option<Vec<Cell>> = None;
        for row in sheet.rows {
            let first = first.get_or_insert_with(|| row.clone());
            for ((seen, cell), of_first) in of.iter_mut().zip(&row).zip(first.iter()) {
                seen.0 |= *cell != Cell::Null;
                seen.1 |= cell != of_first;
            }
        }
        Values { of }
    }
}

/// The inputs that determine which columns of a table are shown.
pub(crate) struct Choice<'a> {
    /// The names of the table's default columns, in reading order.
    pub(crate) names: &'a [&'a str],
    /// Names of the further axes of all runs.
    pub(crate) axes: &'a [String],
    /// Names of the columns for figures that the plan's objective limits.
    pub(crate) limited: Vec<String>,
    /// Names of the columns of facts that are shown only if rows differ in them.
    pub(crate) telling: Vec<String>,
    /// Which columns have values; `None` if the rows are not in memory.
    pub(crate) values: Option<Values>,
}

impl Choice<'_> {
    /// Returns the indices of the shown columns, in reading order.
    pub(crate) fn places(&self, columns: &[Column]) -> Vec<usize> {
        let find = |name: &str| columns.iter().position(|column| column.name == name);
        let is_shown = |at: &usize| {
            let has_values = self.values.as_ref().is_none_or(|values| values.of[*at].0);
            has_values || ESSENTIAL.contains(&columns[*at].name.as_str())
        };
        let further = self.further(columns);
        let mut places = Vec::new();
        for name in self.names {
            places.extend(find(name).filter(is_shown));
            if *name == BEFORE_AXES {
                places.extend(&further);
            }
            if *name == BEFORE_LIMITED {
                places.extend(self.limited.iter().filter_map(|name| find(name)).filter(is_shown));
            }
        }
        let mut seen = std::collections::HashSet::new();
        places.retain(|place| seen.insert(*place));
        places
    }

    /// Returns the indices of the columns for axes, and for facts that differ between rows.
    fn further(&self, columns: &[Column]) -> Vec<usize> {
        let find = |name: &str| columns.iter().position(|column| column.name == name);
        let axis = |axis: &String| find(&format!("axis_{axis}")).or_else(|| find(axis));
        let differs = |at: &usize| self.values.as_ref().is_some_and(|values| values.of[*at].1);
        let facts = self.telling.iter().filter(|name| !self.names.contains(&name.as_str()));
        let facts = facts.filter_map(|name| find(name)).filter(differs);
        self.axes.iter().filter_map(axis).chain(facts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::schema::tables;

    #[test]
    fn every_name_is_a_column_of_its_table() {
        for (kind, columns) in tables() {
            let names: &[&str] = match kind {
                "runs" | "classes" => &RUNS,
                "curves" => &CURVES,
                "lengths" | "turns" => &PARTS,
                "requests" => &REQUESTS,
                _ => continue,
            };
            let has = |name: &&&str| columns.iter().any(|column| column.name == **name);
            let known = names.iter().filter(has).count();
            assert!(known + 3 >= names.len() && known >= 25, "{kind}: {known} of {}", names.len());
        }
        let all: Vec<String> = tables().into_iter().flat_map(|(_, columns)| columns).map(|one| one.name).collect();
        let lists: [&[&str]; 5] = [&RUNS, &CURVES, &PARTS, &REQUESTS, &ESSENTIAL];
        for name in lists.concat() {
            assert!(all.iter().any(|own| own == name), "no table has {name}");
        }
    }

    #[test]
    fn what_differs_is_shown_and_what_is_null_is_not() {
        let text = |name: &str| Column::new(name, super::super::Kind::Text, "x");
        let columns: Vec<Column> =
            ["run_id", "endpoint", "scenario", "turns", "gpu", "precision", "errors", "e2e_p50_ms"].map(text).into();
        let row = |gpu: &'static str| {
            let null = Cell::Null;
            vec!["r".into(), "e".into(), "s".into(), "2".into(), gpu.into(), "fp8".into(), null.clone(), null]
        };
        let rows = vec![row("H100"), row("H200")];
        let values = Values::of(Sheet { columns: columns.clone(), rows: Box::new(rows.into_iter()) });
        let telling = ["gpu", "precision"].map(str::to_owned).to_vec();
        let axes = ["turns".to_owned()];
        let choice = Choice { names: &RUNS, axes: &axes, limited: Vec::new(), telling, values: Some(values) };
        let shown: Vec<&str> = choice.places(&columns).into_iter().map(|at| columns[at].name.as_str()).collect();
        assert_eq!(shown, ["endpoint", "scenario", "turns", "gpu", "e2e_p50_ms", "run_id"]);
    }
}
