//! The interface to readers of GPUs.

use super::super::gap::Gap;
use super::device::{Device, Values};

/// Tools that can read GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// NVIDIA's library, `libnvidia-ml.so.1`.
    Nvml,
    /// NVIDIA's program.
    NvidiaSmi,
    /// AMD's program.
    AmdSmi,
    /// AMD's program in ROCm before version 6.
    RocmSmi,
}

impl Tool {
    /// All tools, in order of preference: a library takes less time than a program.
    pub const ALL: [Tool; 4] = [Tool::Nvml, Tool::NvidiaSmi, Tool::AmdSmi, Tool::RocmSmi];

    /// Returns the name of the tool in plans and results.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Nvml => "nvml",
            Tool::NvidiaSmi => "nvidia-smi",
            Tool::AmdSmi => "amd-smi",
            Tool::RocmSmi => "rocm-smi",
        }
    }

    /// Whether the tool reads AMD GPUs.
    pub(super) fn is_amd(self) -> bool {
        matches!(self, Tool::AmdSmi | Tool::RocmSmi)
    }
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnGpu {
    /// The process id.
    pub(super) pid: u32,
    /// The UUID of the GPU.
    pub(super) uuid: String,
}

/// A reader of GPUs. Its calls may block.
pub(super) trait Source {
    /// Returns the tool that this reader uses.
    fn tool(&self) -> Tool;
    /// Lists the available GPUs, each followed by its MIG instances.
    fn list(&mut self) -> Result<Vec<Device>, Gap>;
    /// Reads the values of these GPUs, in the same order.
    fn read(&mut self, devices: &[Device]) -> Result<Vec<Values>, Gap>;
    /// Returns the processes that run or have memory on these GPUs; the error states why they are
    /// unknown.
    fn processes(&mut self, devices: &[Device]) -> Result<Vec<OnGpu>, String>;
    /// Whether a process query costs as much as a reading. If so, processes are queried less often.
    fn asks_dearly(&self) -> bool;
}
