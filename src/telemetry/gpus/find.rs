//! Finds a reader for the GPUs of this machine.

use super::super::gap::Gap;
use super::amd::Amd;
use super::device::Device;
use super::nvidia_smi::NvidiaSmi;
use super::nvml::ByNvml;
use super::source::{Source, Tool};

/// Returns the first of the tools that has a GPU, together with all GPUs that it lists.
///
/// # Errors
/// No tool has a GPU; contains the response of each tool.
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
                // A driver that hangs does exist, so the kind of the gap is the timeout in this
                // case.
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
