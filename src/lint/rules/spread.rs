//! Rule about a declared number of accelerators that stays fixed although flags of a launched server change
//! the actual number. Per-accelerator figures and costs are computed from the declared number.

use std::fmt::Write as _;

use super::super::finding::{Finding, Scope};
use super::super::view::{SweepView, View, steps};
use super::quoted;
use crate::plan::model::axis::server_flag;
use crate::plan::{Axis, Endpoint, PerCell, Sweep, What};

/// Flags that set the number of accelerators of a server, under the names that engines use.
const PARALLELISM: [&str; 15] = [
    "tensor_parallel",
    "tensor_parallel_size",
    "tp",
    "tp_size",
    "pipeline_parallel",
    "pipeline_parallel_size",
    "pp",
    "pp_size",
    "data_parallel",
    "data_parallel_size",
    "dp",
    "dp_size",
    "context_parallel_size",
    "num_shard",
    "num_gpus",
];

/// M026: a flag that changes the number of accelerators varies, but the declared number does not.
pub(crate) fn fixed_accelerators(view: &View) -> Vec<Finding> {
    view.sweeps.iter().flat_map(of_sweep).collect()
}

fn of_sweep(sweep: &SweepView) -> Vec<Finding> {
    let flags = sweep.sweep.fields().into_iter().filter_map(server_flag);
    let is_parallelism = |flag: &&str| PARALLELISM.contains(&flag.replace('-', "_").to_lowercase().as_str());
    let is_varied = |flag: &&str| {
        let axis = format!("server.{flag}");
        sweep.sweep.values(&axis).len() > 1 || is_left_out(sweep.sweep, &axis)
    };
    let varied: Vec<&str> = flags.filter(is_parallelism).filter(is_varied).collect();
    if varied.is_empty() {
        return Vec::new();
    }
    let finding = |(name, endpoint): &(&str, &Endpoint)| {
        let hardware = endpoint.hardware.as_ref()?;
        let gpus = hardware.gpus.as_ref().and_then(PerCell::same)?;
        let axes: Vec<String> = varied.iter().map(|flag| format!("server.{flag}")).collect();
        // In an expression, a dash would mean subtraction.
        let names: Vec<String> = axes.iter().map(|axis| axis.replace('-', "_")).collect();
        let product = names.join(" * ");
        let mut remedy = format!("write `gpus: \"{{{{ {product} }}}}\"`");
        if hardware.price_per_hour.as_ref().and_then(PerCell::same).is_some() {
            let _ = write!(remedy, ", and likewise `price_per_hour: \"{{{{ PRICE_OF_ONE * {product} }}}}\"`");
        }
        if axes != names {
            let _ = write!(remedy, "; also write {} with underscores instead of dashes in the matrix", quoted(&axes));
        }
        if axes.iter().any(|axis| is_left_out(sweep.sweep, axis)) {
            remedy.push_str("; every entry of the matrix axis must then set the flag, even if only to its default");
        }
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: steps!["endpoints", *name, "hardware", "gpus"],
            message: format!(
                "{} {} how many accelerators `{name}` uses, but `gpus: {gpus}` is the same in every cell",
                quoted(&axes),
                if axes.len() == 1 { "changes" } else { "change" },
            ),
            remedy,
            undisclosed: Vec::new(),
        })
    };
    let launched = sweep.endpoints.iter().filter(|(_, endpoint)| endpoint.launch.is_some());
    launched.filter_map(finding).collect()
}

/// Whether some points of an axis set a flag while others leave it at the server's default.
fn is_left_out(sweep: &Sweep, flag: &str) -> bool {
    sweep.matrix.values().any(|axis| match axis {
        Axis::Values(items) => {
            let gives = |what: &What| matches!(what, What::Fields(table) if table.contains_key(flag));
            items.iter().any(|item| gives(&item.what)) && !items.iter().all(|item| gives(&item.what))
        }
        Axis::Zip(_) => false,
    })
}
