//! What reads GPUs.

use super::super::gap::Gap;
use super::device::{Device, Values};

/// What GPUs can be read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// NVIDIA's library, `libnvidia-ml.so.1`.
    Nvml,
    /// NVIDIA's program.
    NvidiaSmi,
    /// AMD's program.
    AmdSmi,
    /// AMD's program of ROCm before 6.
    RocmSmi,
}

impl Tool {
    /// All of them, the best first: a library costs less time than a program.
    pub const ALL: [Tool; 4] = [Tool::Nvml, Tool::NvidiaSmi, Tool::AmdSmi, Tool::RocmSmi];

    /// Its name in plans and results.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Nvml => "nvml",
            Tool::NvidiaSmi => "nvidia-smi",
            Tool::AmdSmi => "amd-smi",
            Tool::RocmSmi => "rocm-smi",
        }
    }

    /// Whether it reads GPUs of AMD.
    pub(super) fn is_amd(self) -> bool {
        matches!(self, Tool::AmdSmi | Tool::RocmSmi)
    }
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnGpu {
    /// Its number.
    pub(super) pid: u32,
    /// The UUID of the GPU.
    pub(super) uuid: String,
}

/// Something that reads GPUs. Its calls may block.
pub(super) trait Source {
    /// What it is.
    fn tool(&self) -> Tool;
    /// The GPUs that there are, each with its instances by MIG behind it.
    fn list(&mut self) -> Result<Vec<Device>, Gap>;
    /// What these say, in their order.
    fn read(&mut self, devices: &[Device]) -> Result<Vec<Values>, Gap>;
    /// The processes that have memory on these or run there; an error says why that is not told.
    fn processes(&mut self, devices: &[Device]) -> Result<Vec<OnGpu>, String>;
    /// Whether asking for processes costs as much as a reading does: then it is asked for less often.
    fn asks_dearly(&self) -> bool;
}
