//! `sweepline search` finds the highest load that meets an objective, without an existing plan. It
//! writes the plan that it runs.

use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches, ValueEnum};

use super::asked_server::{Asked, AskedServer};
use crate::analysis::quantile;
use crate::cli::failure::{Exit, Failure};
use crate::cli::run::{self, RunArgs};
use crate::cli::trust::NoExec;
use crate::cli::{import, stderr};
use crate::import::{Fresh, FreshLoad, FreshSearch, fresh};
use crate::plan::Percentile;
use crate::units::{Decimal, Nanos, Share, regular_file};

/// The minimum number of requests of a run. With fewer requests, a percentile is too imprecise to fit a
/// curve that predicts the next load.
const FEWEST: u64 = 200;

/// The arguments of `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    server: AskedServer,
    /// The objective, as METRIC PERCENTILE LIMIT, like "ttft p99 500ms"; to set several limits, repeat the
    /// flag or separate the limits with commas. Metrics: ttft, tpot, itl, e2e
    #[arg(long, value_name = "LIMIT", required = true, value_delimiter = ',', value_parser = limit)]
    slo: Vec<Limit>,
    /// The kind of load to vary: requests per second in an open loop, or requests in flight in a closed
    /// loop
    #[arg(long = "of", value_enum, value_name = "LOAD", default_value = "qps")]
    axis: Axis,
    /// The lightest load to try
    #[arg(long, value_name = "LOAD", default_value = "1")]
    from: Decimal,
    /// The heaviest load to try
    #[arg(long, value_name = "LOAD", default_value = "200")]
    to: Decimal,
    /// The resolution of the result, as a share of the load
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    within: Share,
    /// The minimum window of a run; the window is extended until it contains enough requests to decide
    /// whether the objective is met, if requests do not depend on each other
    #[arg(long, value_name = "TIME", default_value = "30s")]
    measure: Nanos,
    /// The window of the run that confirms the result; 0s disables this run
    #[arg(long, value_name = "TIME", default_value = "5m")]
    confirm: Nanos,
    /// The plan's name
    #[arg(long, value_name = "NAME", default_value = "search")]
    name: String,
    /// The plan file to write and run
    #[arg(short, long, value_name = "PLAN", default_value = "search.yaml")]
    output: PathBuf,
    /// Overwrite the plan file even if it contains a different plan
    #[arg(long)]
    force: bool,
    /// Write the plan without running it; `sweepline run PLAN` then runs the search
    #[arg(long)]
    plan_only: bool,
    #[command(flatten)]
    no_exec: NoExec,
    /// Results folder
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// How progress is shown on stderr: bar, plain, json or full [default: bar on a terminal, else plain]
    #[arg(long, value_name = "HOW")]
    progress: Option<String>,
    /// Print only errors on stderr; data still goes to stdout
    #[arg(short, long)]
    quiet: bool,
}

/// The kind of load that a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Axis {
    /// Requests per second.
    Qps,
    /// Requests in flight.
    BatchSize,
}

/// One limit of the objective.
#[derive(Debug, Clone, PartialEq)]
struct Limit {
    metric: String,
    percentile: Percentile,
    limit: Nanos,
}

/// Metrics that an objective can limit.
const METRICS: [&str; 4] = ["ttft", "tpot", "itl", "e2e"];

fn limit(text: &str) -> Result<Limit, String> {
    let [metric, percentile, limit] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("write a limit as METRIC PERCENTILE LIMIT, like \"ttft p99 500ms\"".to_owned());
    };
    if !METRICS.contains(&metric) {
        return Err(format!("`{metric}` cannot be limited; use one of {}", METRICS.join(", ")));
    }
    let named = Percentile::ALL.into_iter().find(|one| <&str>::from(*one) == percentile);
    let all = || Percentile::ALL.map(<&str>::from).join(", ");
    let percentile = named.ok_or_else(|| format!("unknown percentile `{percentile}`; use one of {}", all()))?;
    let limit = limit.parse().map_err(|error| format!("{error}"))?;
    Ok(Limit { metric: metric.to_owned(), percentile, limit })
}

/// Returns the longest window: ten times the shortest or, if that is longer, the time that it takes at the
/// lightest rate to send as many requests as the percentile needs. That many requests also suffice to show
/// that this rate meets the objective.
fn longest_window(args: &SearchArgs, fewest: u64) -> Nanos {
    let ten = Nanos(args.measure.0.saturating_mul(10));
    if args.axis != Axis::Qps || args.from.to_f64() <= 0.0 {
        return ten;
    }
    // A tenth more than the expected time, in whole minutes.
    let minutes = (1.1 * fewest as f64 / args.from.to_f64() / 60.0).ceil().min(1e6) as u64;
    ten.max(Nanos::from_secs(60 * minutes))
}

/// Writes the plan and runs it. After an interruption, the same command continues, because its plan exists
/// and is identical.
pub(super) fn run(args: SearchArgs) -> Result<Exit, Failure> {
    let Asked { model, longest, server } = args.server.ask()?;
    let highest = args.slo.iter().map(|limit| limit.percentile).max().unwrap_or(Percentile::P99);
    let search = FreshSearch {
        axis: if args.axis == Axis::Qps { "qps" } else { "batch_size" },
        from: args.from,
        to: args.to,
        within: args.within,
        confirm: args.confirm,
        slo: args.slo.iter().map(|limit| (limit.metric.clone(), limit.percentile, limit.limit)).collect(),
        // Twice the number that is enough if no request is above the limit, because near the answer
        // some requests are above it.
        min_requests: FEWEST.max(2 * quantile::need_to_decide(highest)),
        measure: args.measure,
        at_most: longest_window(&args, quantile::need(highest)),
    };
    let wish = Fresh { name: args.name.clone(), model, longest, server, load: FreshLoad::Search(search) };
    let text = fresh(&wish).map_err(|error| Failure::Usage(error.to_string()))?;
    let is_there = regular_file::read_text(&args.output, text.len() as u64).is_ok_and(|there| there == text);
    if !is_there {
        import::save(&args.output, &text, args.force)?;
        stderr::complain(&format!("wrote {}", args.output.display()));
    }
    if args.plan_only {
        return Ok(Exit::Done);
    }
    run::run(as_run(&args)?)
}

/// Builds the arguments of the equivalent `sweepline run PLAN`.
fn as_run(args: &SearchArgs) -> Result<RunArgs, Failure> {
    let mut typed = vec!["run".into(), args.output.clone().into_os_string(), "--results".into()];
    typed.push(args.results.clone().into_os_string());
    if let Some(progress) = &args.progress {
        typed.extend(["--progress".into(), progress.into()]);
    }
    if args.quiet {
        typed.push("--quiet".into());
    }
    if args.no_exec.no_exec {
        typed.push("--no-exec".into());
    }
    let matches = RunArgs::augment_args(Command::new("run")).try_get_matches_from(typed);
    let args = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
    args.map_err(|error| Failure::Usage(error.to_string()))
}
