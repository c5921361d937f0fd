//! Finds a tool that can read the GPUs of this machine.

use super::super::gap::Gap;
use super::amd::Amd;
use super::device::Device;
use super::nvidia_smi::NvidiaSmi;
use super::nvml::ByNvml;
use super::source::{Source, Tool};

/// Returns a reader for the first of `tools` that lists a GPU, together with the GPUs that it lists.
///
/// # Errors
/// Fails if no tool lists a GPU. The error contains the result of each tool.
pub(super) fn find(tools: &[Tool]) -> Result<(Box<dyn Source>, Vec<Device>), Gap> {
    let mut said: Vec<String> = Vec::new();
    let mut kind = "no_gpu";
    for tool in tools {
        let listed = open(*tool).and_then(|mut source| {
            let devices = source.list()?;
            Ok((source, devices))
        });
        match listed {
            Ok((source, devices)) if !devices.is_empty() => return Ok((source, devices)),
            Ok(_) => said.push(format!("{} lists none", tool.name())),
            Err(gap) => {
                // A tool that hangs shows that a driver exists, so the gap is a timeout rather than a lack of
                // GPUs.
                kind = if gap.kind == "timeout" { gap.kind } else { kind };
                said.push(gap.why);
            }
        }
    }
    Err(Gap { kind, why: format!("no GPU to read: {}", said.join("; ")) })
}

fn open(tool: Tool) -> Result<Box<dyn Source>, Gap> {
    Ok(match tool {
        Tool::Nvml => Box::new(ByNvml::open()?),
        Tool::NvidiaSmi => Box::new(NvidiaSmi::default()),
        Tool::AmdSmi | Tool::RocmSmi => Box::new(Amd::new(tool)),
    })
}
