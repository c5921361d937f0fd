//! GPUs read by `nvidia-smi`, if the library cannot be loaded. It has no energy counter.

use std::time::Duration;

use super::super::gap::Gap;
use super::command::output;
use super::device::{Device, Values, put};
use super::source::{OnGpu, Source, Tool};

/// Time limit of `nvidia-smi`, which has to wake every GPU if the driver is not persistent.
const WITHIN: Duration = Duration::from_secs(4);
const PROGRAM: &str = "nvidia-smi";
const FORMAT: &str = "--format=csv,noheader,nounits";
/// The field that replaces the last one for drivers before 535.
const OLD_REASONS: &str = "clocks_throttle_reasons.active";
const REASONS: &str = "clocks_event_reasons.active";
/// The values read for each GPU after its UUID: the field, the series, and the factor to its unit.
const FIELDS: [(&str, &str, f64); 8] = [
    ("utilization.gpu", "gpu_utilization", 0.01),
    ("utilization.memory", "gpu_memory_bandwidth_utilization", 0.01),
    ("memory.used", "gpu_memory_used", 1_048_576.0),
    ("memory.total", "gpu_memory_total", 1_048_576.0),
    ("power.draw", "gpu_power_watts", 1.0),
    ("temperature.gpu", "gpu_temperature", 1.0),
    ("clocks.sm", "gpu_sm_clock", 1e6),
    (REASONS, "gpu_throttle_reasons", 1.0),
];

/// The `nvidia-smi` program.
#[derive(Debug, Default)]
pub(super) struct NvidiaSmi {
    /// Whether the program knows the throttle reasons only by their old name.
    is_old: bool,
}

impl NvidiaSmi {
    fn ask(&self) -> Result<String, Gap> {
        let fields =
            FIELDS.iter().map(|(field, ..)| if *field == REASONS && self.is_old { OLD_REASONS } else { field });
        let fields: Vec<&str> = fields.collect();
        output(PROGRAM, &[&format!("--query-gpu=uuid,{}", fields.join(",")), FORMAT], WITHIN)
    }
}

impl Source for NvidiaSmi {
    fn tool(&self) -> Tool {
        Tool::NvidiaSmi
    }

    fn list(&mut self) -> Result<Vec<Device>, Gap> {
        let text = output(PROGRAM, &["--query-gpu=index,uuid,name", FORMAT], WITHIN)?;
        text.lines().filter(|line| !line.trim().is_empty()).map(device).collect()
    }

    fn read(&mut self, devices: &[Device]) -> Result<Vec<Values>, Gap> {
        let text = match self.ask() {
            Err(gap) if !self.is_old && gap.why.contains(REASONS) => {
                self.is_old = true;
                self.ask()?
            }
            other => other?,
        };
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
        devices.iter().map(|device| values(device, &lines)).collect()
    }

    fn processes(&mut self, devices: &[Device]) -> Result<Vec<OnGpu>, String> {
        let text = output(PROGRAM, &["--query-compute-apps=pid,gpu_uuid", FORMAT], WITHIN).map_err(|gap| gap.why)?;
        let of = |line: &str| -> Option<OnGpu> {
            let (pid, uuid) = line.split_once(',')?;
            Some(OnGpu { pid: pid.trim().parse().ok()?, uuid: uuid.trim().to_owned() })
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let all = lines.map(|line| of(line).ok_or_else(|| format!("{PROGRAM} names no process in `{}`", cut(line))));
        let all = all.collect::<Result<Vec<OnGpu>, String>>()?;
        Ok(all.into_iter().filter(|process| devices.iter().any(|device| device.uuid == process.uuid)).collect())
    }

    fn asks_dearly(&self) -> bool {
        true
    }
}

/// `0, GPU-…, NVIDIA H100 80GB HBM3`.
fn device(line: &str) -> Result<Device, Gap> {
    let mut parts = line.splitn(3, ',').map(str::trim);
    let index = parts.next().and_then(|index| index.parse().ok());
    match (index, parts.next(), parts.next()) {
        (Some(index), Some(uuid), Some(name)) if uuid.starts_with("GPU-") => {
            Ok(Device { index, uuid: uuid.to_owned(), name: crate::units::text::plain(name), is_instance: false })
        }
        _ => Err(malformed(format!("`{}` is not a GPU", cut(line)))),
    }
}

/// Returns the values of a device among the lines. `[N/A]` and similar texts mean that a value is
/// not reported.
fn values(device: &Device, lines: &[Vec<&str>]) -> Result<Values, Gap> {
    let Some(line) = lines.iter().find(|line| line.first() == Some(&&*device.uuid)) else {
        return Err(Gap { kind: "failed", why: format!("{PROGRAM} no longer lists {}", device.uuid) });
    };
    if line.len() != FIELDS.len() + 1 {
        return Err(malformed(format!("`{}` does not have {} values", cut(&line.join(", ")), FIELDS.len() + 1)));
    }
    let mut values = Values::new();
    for ((_, key, factor), text) in FIELDS.iter().zip(&line[1..]) {
        put(&mut values, key, number(text)?.map(|value| value * factor));
    }
    Ok(values)
}

/// Parses a number, or a mask like `0x0000000000000004`; `None` if the GPU does not report it.
fn number(text: &str) -> Result<Option<f64>, Gap> {
    let absent = ["N/A", "Not Supported", "Unknown Error", "Insufficient Permissions", "Not Found"];
    if absent.contains(&text.trim_matches(['[', ']'])) {
        return Ok(None);
    }
    let value = match text.strip_prefix("0x") {
        Some(mask) => u64::from_str_radix(mask, 16).ok().map(|mask| mask as f64),
        None => text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0),
    };
    value.map(Some).ok_or_else(|| malformed(format!("`{}` is not a number", cut(text))))
}

fn malformed(why: String) -> Gap {
    Gap { kind: "malformed", why: format!("output of {PROGRAM}: {why}") }
}

fn cut(text: &str) -> String {
    crate::units::text::plain(text).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h100() -> Device {
        device("1, GPU-11, NVIDIA H100 80GB HBM3").unwrap()
    }

    fn read(text: &str) -> Result<Values, Gap> {
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
        values(&h100(), &lines)
    }

    #[test]
    fn values_have_canonical_units_and_what_is_not_told_is_absent() {
        assert_eq!((h100().index, h100().name.as_str()), (1, "NVIDIA H100 80GB HBM3"));
        let text = "GPU-00, 1, 1, 1, 1, 1, 1, 1, 0x0\n\
                    GPU-11, 97, 41, 70123, 81559, 612.34, 66, 1980, 0x0000000000000004";
        let found = read(text).unwrap();
        let of = |key: &str| found.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        assert_eq!(of("gpu_utilization"), Some(0.97));
        assert_eq!(of("gpu_memory_used"), Some(70_123.0 * 1_048_576.0));
        assert_eq!((of("gpu_power_watts"), of("gpu_sm_clock")), (Some(612.34), Some(1.98e9)));
        assert_eq!((of("gpu_throttle_reasons"), of("gpu_energy_joules")), (Some(4.0), None));
        let cut = read("GPU-11, [N/A], [N/A], 70123, 81559, [Not Supported], 66, 1980, N/A").unwrap();
        let keys: Vec<&str> = cut.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["gpu_memory_used", "gpu_memory_total", "gpu_temperature", "gpu_sm_clock"]);
    }

    #[test]
    fn what_is_no_reading_is_none() {
        for (text, kind, why) in [
            ("GPU-00, 1, 1, 1, 1, 1, 1, 1, 0x0", "failed", "no longer lists GPU-11"),
            ("GPU-11, 1, 1", "malformed", "does not have 9 values"),
            ("GPU-11, x, 1, 1, 1, 1, 1, 1, 0x0", "malformed", "`x` is not a number"),
            ("GPU-11, -1, 1, 1, 1, 1, 1, 1, 0x0", "malformed", "`-1` is not a number"),
        ] {
            let gap = read(text).unwrap_err();
            assert!(gap.kind == kind && gap.why.contains(why), "{gap:?}");
        }
        assert_eq!(device("No devices were found").unwrap_err().kind, "malformed");
    }
}
