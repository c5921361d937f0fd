//! Reads GPUs with NVIDIA's library, NVML. The library is loaded at run time. On machines without a driver,
//! it is missing, and loading it fails with an error that states this.

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device as Handle, Nvml};

use super::super::gap::Gap;
use super::device::{Device, Values, put};
use super::source::{OnGpu, Source, Tool};

/// The error in the static binary, which cannot load NVML because it has no dynamic loader.
const STATIC: &str = "nvml: this is the static binary, which cannot load libnvidia-ml.so.1: use nvidia-smi, or install \
                      the wheel for glibc";

/// Reads GPUs with the NVML library.
pub(super) struct ByNvml(Nvml);

impl ByNvml {
    /// Loads the library.
    pub(super) fn open() -> Result<ByNvml, Gap> {
        let none = |error: NvmlError| Gap { kind: "no_gpu", why: format!("nvml: {error}") };
        if cfg!(target_feature = "crt-static") {
            return Err(Gap { kind: "no_gpu", why: STATIC.to_owned() });
        }
        Nvml::init().map(ByNvml).map_err(none)
    }

    /// Returns NVML's handle to a listed GPU.
    fn handle(&self, device: &Device) -> Result<Handle<'_>, Gap> {
        self.0.device_by_uuid(&*device.uuid).map_err(failed)
    }
}

impl Source for ByNvml {
    fn tool(&self) -> Tool {
        Tool::Nvml
    }

    fn list(&mut self) -> Result<Vec<Device>, Gap> {
        let mut all = Vec::new();
        for index in 0..self.0.device_count().map_err(failed)? {
            let gpu = self.0.device_by_index(index).map_err(failed)?;
            all.push(Device {
                index,
                uuid: gpu.uuid().map_err(failed)?,
                name: gpu.name().unwrap_or_default(),
                is_instance: false,
            });
            all.extend(instances(&gpu, index));
        }
        Ok(all)
    }

    fn read(&mut self, devices: &[Device]) -> Result<Vec<Values>, Gap> {
        devices.iter().map(|device| values(&self.handle(device)?, device.is_instance)).collect()
    }

    fn processes(&mut self, devices: &[Device]) -> Result<Vec<OnGpu>, String> {
        let mut found = Vec::new();
        for device in devices {
            let processes = self.handle(device).map_err(|gap| gap.why)?.running_compute_processes();
            let processes = processes.map_err(|error| format!("nvml does not report processes: {error}"))?;
            found.extend(processes.into_iter().map(|process| OnGpu { pid: process.pid, uuid: device.uuid.clone() }));
        }
        Ok(found)
    }

    fn asks_dearly(&self) -> bool {
        false
    }
}

/// Returns the instances of a GPU partitioned by MIG.
fn instances(gpu: &Handle, index: u32) -> Vec<Device> {
    let is_cut = gpu.mig_mode().is_ok_and(|mode| mode.current == 1);
    let most = if is_cut { gpu.mig_device_count().unwrap_or_default() } else { 0 };
    // NVML returns an error for an index without an instance; such indexes are skipped.
    let of = |place| {
        let instance = gpu.mig_device_by_index(place).ok()?;
        let name = instance.name().unwrap_or_default();
        Some(Device { index, uuid: instance.uuid().ok()?, name, is_instance: true })
    };
    (0..most).filter_map(of).collect()
}

/// Returns the values of a GPU. For a MIG instance, the memory values are those of the instance, while
/// temperature, clock and throttle reasons are those of the whole GPU. Power is omitted, because it is
/// measured only for the whole GPU, and the instance's share is unknown.
fn values(gpu: &Handle, is_instance: bool) -> Result<Values, Gap> {
    let mut values = Values::new();
    let memory = told(gpu.memory_info())?;
    put(&mut values, "gpu_memory_used", memory.as_ref().map(|memory| memory.used as f64));
    put(&mut values, "gpu_memory_total", memory.map(|memory| memory.total as f64));
    let parent = if is_instance { told(gpu.mig_parent_device())? } else { None };
    let whole = parent.as_ref().unwrap_or(gpu);
    put(&mut values, "gpu_temperature", told(whole.temperature(TemperatureSensor::Gpu))?.map(f64::from));
    put(&mut values, "gpu_sm_clock", told(whole.clock_info(Clock::SM))?.map(|mhz| f64::from(mhz) * 1e6));
    let reasons = told(whole.current_throttle_reasons())?;
    put(&mut values, "gpu_throttle_reasons", reasons.map(|reasons| reasons.bits() as f64));
    if is_instance {
        return Ok(values);
    }
    let used = told(gpu.utilization_rates())?;
    put(&mut values, "gpu_utilization", used.as_ref().map(|used| f64::from(used.gpu) / 100.0));
    put(&mut values, "gpu_memory_bandwidth_utilization", used.map(|used| f64::from(used.memory) / 100.0));
    put(&mut values, "gpu_power_watts", told(gpu.power_usage())?.map(|milliwatts| f64::from(milliwatts) / 1e3));
    put(&mut values, "gpu_energy_joules", told(gpu.total_energy_consumption())?.map(|mj| mj as f64 / 1e3));
    Ok(values)
}

/// Converts NVML's result to a value; `None` if this GPU or driver does not support the query.
fn told<T>(found: Result<T, NvmlError>) -> Result<Option<T>, Gap> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(
            NvmlError::NotSupported
            | NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound
            | NvmlError::InvalidArg
            | NvmlError::NoPermission
            | NvmlError::NoData,
        ) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: NvmlError) -> Gap {
    Gap { kind: "failed", why: format!("nvml: {error}") }
}
