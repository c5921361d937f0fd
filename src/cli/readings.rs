//! The committed runs of a plan, each read once: what the answers over several runs are made of.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::analysis::PlanMetrics;
use crate::analysis::curve::Run;
use crate::plan::Plan;
use crate::report::format::{fill, plain};
use crate::store::{RunRecord, Store};

use super::answers::{self, Answered};
use super::changes::Changes;
use super::left_out::LeftOut;
use super::run::quoted;
use super::selection::Selection;
use super::workspace::Workspace;
use super::{Failure, Folder, TextOrJson};

/// The arguments of every command that answers from a plan's results.
#[derive(Debug, Args)]
pub struct Asked {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    selection: Selection,
    /// Count invalid runs too
    #[arg(long)]
    pub include_invalid: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// One run of the plan that has a result.
pub struct Reading {
    /// The plan's sweep.
    pub sweep: String,
    /// What was committed.
    pub record: RunRecord,
    /// Its metrics and verdict under the plan.
    pub answered: Answered,
}

/// The runs of a plan that have results.
pub struct Readings {
    /// The plan.
    pub plan: Plan,
    /// Its runs with results, in its order. A run of two sweeps is there twice.
    pub runs: Vec<Reading>,
    /// How many of its runs have no result.
    pub missing: usize,
    /// Whose they are: endpoint and scenario, how many have none, and of how many.
    absent: Vec<(String, usize, usize)>,
    /// Those whose result cannot be used; they count as runs without one.
    pub left_out: LeftOut,
}

impl Asked {
    /// Reads the results. That there is none is a mistake of the call.
    pub fn read(&self) -> Result<Readings, Failure> {
        let workspace = Workspace::open(&self.plan, &self.changes, &self.folder)?;
        let picked = self.selection.pick(workspace.plan(), &workspace.expansion.runs)?;
        let wanted: Vec<_> =
            workspace.expansion.runs.iter().zip(picked).filter(|(_, is)| *is).map(|(run, _)| run).collect();
        let mut readings = Readings {
            plan: workspace.plan().clone(),
            runs: Vec::new(),
            missing: 0,
            absent: Vec::new(),
            left_out: LeftOut::default(),
        };
        for run in answers::in_plan_order(workspace.plan(), &wanted) {
            let of = readings.of(&format!("{} · {}", run.spec.endpoint.name, run.spec.labels.scenario));
            readings.absent[of].2 += 1;
            let answer = answers::answer(&workspace.store, run, workspace.plan());
            match readings.left_out.take(answer).flatten() {
                Some((record, answered)) => {
                    readings.runs.push(Reading { sweep: run.sweep.to_string(), record, answered });
                }
                None => {
                    readings.missing += 1;
                    readings.absent[of].1 += 1;
                }
            }
        }
        if readings.runs.is_empty() {
            readings.left_out.nothing_left()?;
            return Err(no_results(&self.plan, &self.changes, &self.folder));
        }
        Ok(readings)
    }
}

/// That a plan has no result in a folder, what makes them, and where there are others, what tells why they are not its.
pub fn no_results(plan: &Path, changes: &Changes, folder: &Folder) -> Failure {
    let asked = format!("{}{}{}", quoted(&plan.to_string_lossy()), changes.typed(quoted), folder.typed());
    let others = Store::open(&folder.results).list().is_ok_and(|runs| !runs.is_empty());
    let why = if others {
        format!("; `sweepline preview {asked}` says by which edits they differ from what is there")
    } else {
        String::new()
    };
    let shown = folder.results.display();
    Failure::Usage(format!("{shown} has no result of this plan: `sweepline run {asked}` makes them{why}"))
}

impl Readings {
    /// Its runs as points of curves.
    pub fn points(&self) -> Vec<Run<'_>> {
        self.runs.iter().map(point).collect()
    }

    /// Its runs that have the class, each with the figures of the class's requests alone. Goodput and money are of whole runs, and
    /// unknown here; verdict and objective stay those of the run.
    pub fn points_of(&self, class: &str) -> Vec<Run<'_>> {
        static UNKNOWN: PlanMetrics = PlanMetrics {
            given: true,
            goodput: None,
            cost_per_million_output_tokens: None,
            tokens_per_unit_of_money: None,
        };
        let mut points = Vec::new();
        for reading in &self.runs {
            let own = reading.answered.classes.iter().find(|own| own.class == class);
            points.extend(own.map(|own| Run { metrics: &own.metrics, plan_metrics: &UNKNOWN, ..point(reading) }));
        }
        points
    }

    /// The classes of its runs.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().flat_map(|reading| &reading.answered.classes).map(|class| class.class.as_str())
    }

    /// Where runs without a result are counted for a name.
    fn of(&mut self, name: &str) -> usize {
        self.absent.iter().position(|(other, ..)| other == name).unwrap_or_else(|| {
            self.absent.push((name.to_owned(), 0, 0));
            self.absent.len() - 1
        })
    }

    /// What is said where runs have no result, and whose they are, and where invalid ones are left out.
    pub fn said_of_missing(&self, left_out: usize) -> Option<String> {
        const MOST: usize = 8;
        let mut parts = Vec::new();
        if self.missing > 0 {
            let absent: Vec<_> = self.absent.iter().filter(|(_, missing, _)| *missing > 0).collect();
            let names =
                absent.iter().take(MOST).map(|(name, missing, all)| format!("{} {missing} of {all}", plain(name)));
            let more = if absent.len() > MOST { ", …" } else { "" };
            let names = names.collect::<Vec<_>>().join(", ");
            parts.push(format!("{} of the plan's runs have no result yet: {names}{more}", self.missing));
        }
        if left_out > 0 {
            parts.push(format!("{left_out} invalid left out (--include-invalid counts them)"));
        }
        (!parts.is_empty()).then(|| fill("", 2, &parts.join("; ")).trim_end().to_owned())
    }
}

/// A run as a point of a curve.
fn point(reading: &Reading) -> Run<'_> {
    let Reading { sweep, record: _, answered } = reading;
    Run {
        sweep: sweep.as_str(),
        labels: &answered.labels,
        metrics: &answered.metrics,
        plan_metrics: &answered.plan_metrics,
        verdict: &answered.verdict,
        slo: &answered.slo,
        cost: answered.cost,
        tokens: answered.tokens,
    }
}
