//! `sweepline curves PLAN`: what each load brings and costs, where curves bend, and up to which load the objective holds.

mod document;

use clap::Args;

use crate::analysis::curve::{self, Curve};
use crate::report::{curves as page, fronts};

use super::readings::{Asked, Readings};
use super::{Exit, Failure, TextOrJson, output};
use document::Document;

pub use document::{Bracket, Series, schema_text};

/// The arguments of `curves`.
#[derive(Debug, Args)]
pub struct CurvesArgs {
    #[command(flatten)]
    asked: Asked,
}

/// Shows the curves of a plan.
pub fn run(args: CurvesArgs) -> Result<Exit, Failure> {
    let readings = args.asked.read()?;
    let points = readings.points();
    let curves = curve::curves(&points, args.asked.include_invalid);
    match args.asked.format {
        TextOrJson::Text => text(&readings, &curves)?,
        TextOrJson::Json => output::json(&Document::of(&readings, &curves))?,
    }
    Ok(Exit::Done)
}

fn text(readings: &Readings, curves: &[Curve]) -> Result<(), Failure> {
    let mut out = page(curves);
    out.push_str(&fronts(curves));
    let left_out = curves.iter().flat_map(|curve| &curve.rungs).map(|rung| rung.left_out.len()).sum();
    if let Some(said) = readings.said_of_missing(left_out) {
        out.push_str(&format!("\n{said}\n"));
    }
    output::print(out.trim_start())
}
