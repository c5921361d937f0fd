//! Selects the GPUs of this machine that are monitored during a run: the GPUs that the plan names, or else
//! those that the server's environment variables allow.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expand::RunSpec;
use crate::expand::launch::concrete;
use crate::plan::{Endpoint, GpuSource, TextOrSecret};
use crate::server::launch::ServerWatch;
use crate::telemetry::gpus::{IsOwn, Visible, Wanted, Which};

/// Returns the settings for monitoring GPUs during runs like `spec`; `None` if no GPUs are monitored.
/// `server` is the handle for watching the server if sweepline started it.
pub(super) fn gpus_of(endpoint: &Endpoint, spec: &RunSpec, server: Option<&ServerWatch>) -> Option<Wanted> {
    let source = endpoint.gpu_source()?;
    let devices = endpoint.telemetry.as_ref().and_then(|telemetry| telemetry.gpus.as_ref()).map(|gpus| &gpus.devices.0);
    let which = match devices.filter(|devices| !devices.is_empty()) {
        Some(devices) => Which::Told(devices.iter().map(|device| device.0.clone()).collect()),
        None => Which::Given(server.map(|_| visible(endpoint, spec)).unwrap_or_default()),
    };
    let is_own = server.cloned().map(|server| Arc::new(move |pid| server.owns(pid)) as IsOwn);
    Some(Wanted { tools: source.tools(), may_be_none: source == GpuSource::Auto, which, is_own })
}

/// Returns the environment variables of a launched server that select GPUs. A variable that the plan does
/// not set has the same value as in sweepline's own environment, which the server inherits.
fn visible(endpoint: &Endpoint, spec: &RunSpec) -> Visible {
    // The port does not affect these variables, so any port can be used here.
    let of_plan: BTreeMap<String, TextOrSecret> = concrete(endpoint, spec, 1).map(|made| made.env).unwrap_or_default();
    let value = |name: &str| match of_plan.get(name) {
        Some(value) => value.text().map(str::to_owned),
        None => std::env::var(name).ok(),
    };
    Visible {
        cuda: value("CUDA_VISIBLE_DEVICES"),
        cuda_order: value("CUDA_DEVICE_ORDER"),
        rocr: value("ROCR_VISIBLE_DEVICES"),
        hip: value("HIP_VISIBLE_DEVICES"),
    }
}
