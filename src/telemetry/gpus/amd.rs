//! Reads GPUs with AMD's programs. For amd-smi, the format is that of ROCm 6.3 (0ceca28,
//! `amdsmi_cli/amdsmi_commands.py`), or that of later versions, which wrap the list in an object
//! `gpu_data`. For rocm-smi, the format is its JSON output, whose field names are descriptions such as `GPU
//! use (%)`.

use std::time::Duration;

use serde_json::Value;

use super::super::gap::Gap;
use super::command::output;
use super::device::{Device, Values, put};
use super::source::{OnGpu, Source, Tool};

/// Time limit of a tool. It is long because the tools are Python programs.
const WITHIN: Duration = Duration::from_secs(4);
const METRICS: [&str; 8] =
    ["metric", "--usage", "--power", "--clock", "--temperature", "--mem-usage", "--energy", "--json"];
const ROCM: [&str; 9] = [
    "--showuse",
    "--showmemuse",
    "--showpower",
    "--showtemp",
    "--showclocks",
    "--showenergycounter",
    "--showuniqueid",
    "--showmeminfo",
    "vram",
];
const MIB: f64 = 1_048_576.0;
/// For each series: its fields in amd-smi's output, in order of preference, with the factor that converts
/// the field to the canonical unit.
const AMD_SMI: [(&str, &str, f64); 9] = [
    ("gpu_utilization", "/usage/gfx_activity", 0.01),
    ("gpu_memory_bandwidth_utilization", "/usage/umc_activity", 0.01),
    ("gpu_memory_used", "/mem_usage/used_vram", MIB),
    ("gpu_memory_total", "/mem_usage/total_vram", MIB),
    ("gpu_power_watts", "/power/socket_power", 1.0),
    ("gpu_energy_joules", "/energy/total_energy_consumption", 1.0),
    ("gpu_temperature", "/temperature/hotspot", 1.0),
    ("gpu_temperature", "/temperature/edge", 1.0),
    ("gpu_sm_clock", "/clock/gfx_0/clk", 1e6),
];
/// For each series: its fields in rocm-smi's output, in order of preference, with the factor that converts
/// the field to the canonical unit.
const ROCM_SMI: [(&str, &str, f64); 10] = [
    ("gpu_utilization", "GPU use (%)", 0.01),
    ("gpu_memory_bandwidth_utilization", "GPU Memory Read/Write Activity (%)", 0.01),
    ("gpu_memory_used", "VRAM Total Used Memory (B)", 1.0),
    ("gpu_memory_total", "VRAM Total Memory (B)", 1.0),
    ("gpu_power_watts", "Current Socket Graphics Package Power (W)", 1.0),
    ("gpu_power_watts", "Average Graphics Package Power (W)", 1.0),
    ("gpu_energy_joules", "Accumulated Energy (uJ)", 1e-6),
    ("gpu_temperature", "Temperature (Sensor junction) (C)", 1.0),
    ("gpu_temperature", "Temperature (Sensor edge) (C)", 1.0),
    ("gpu_sm_clock", "sclk clock speed:", 1e6),
];

/// Reads GPUs with one of AMD's programs.
#[derive(Debug)]
pub(super) struct Amd(Tool);

impl Amd {
    /// Creates the reader for `amd-smi` or `rocm-smi`.
    pub(super) fn new(tool: Tool) -> Amd {
        Amd(tool)
    }

    /// Runs the program and returns its output for each GPU, with the number of the GPU.
    fn ask(&self, arguments: &[&str]) -> Result<Vec<(u32, Value)>, Gap> {
        let name = self.0.name();
        let text = output(name, arguments, WITHIN)?;
        gpus(&text).ok_or_else(|| Gap { kind: "malformed", why: format!("the output of {name} is not a list of GPUs") })
    }

    fn readings(&self) -> Result<Vec<(u32, Value)>, Gap> {
        match self.0 {
            Tool::RocmSmi => self.ask(&[&ROCM[..], &["--json"]].concat()),
            _ => self.ask(&METRICS),
        }
    }
}

impl Source for Amd {
    fn tool(&self) -> Tool {
        self.0
    }

    fn list(&mut self) -> Result<Vec<Device>, Gap> {
        let (arguments, uuid) = match self.0 {
            Tool::RocmSmi => (["--showuniqueid", "--json"], "Unique ID"),
            _ => (["list", "--json"], "uuid"),
        };
        let text = |gpu: &Value| gpu[uuid].as_str().map(crate::units::text::plain).unwrap_or_default();
        let device =
            |(index, gpu): (u32, Value)| Device { index, uuid: text(&gpu), name: String::new(), is_instance: false };
        Ok(self.ask(&arguments)?.into_iter().map(device).collect())
    }

    fn read(&mut self, devices: &[Device]) -> Result<Vec<Values>, Gap> {
        let read = self.readings()?;
        let name = self.0.name();
        let of = |device: &Device| {
            let found = read.iter().find(|(index, _)| *index == device.index);
            let gone = || Gap { kind: "failed", why: format!("{name} no longer lists GPU {}", device.index) };
            found.map(|(_, gpu)| values(self.0, gpu)).ok_or_else(gone)
        };
        devices.iter().map(of).collect()
    }

    fn processes(&mut self, _: &[Device]) -> Result<Vec<OnGpu>, String> {
        Err(format!("{} is not queried for processes", self.0.name()))
    }

    fn asks_dearly(&self) -> bool {
        false
    }
}

/// Returns the number and the JSON object of each GPU in the output. The output is either a list whose items
/// have the field `gpu`, which may be wrapped in `gpu_data`, or an object with the fields `card0`, `card1`,
/// and so on. Returns `None` for other output.
fn gpus(text: &str) -> Option<Vec<(u32, Value)>> {
    // The JSON may be preceded by warnings.
    let start = text.find(['{', '['])?;
    let page: Value = serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()?;
    let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let list = page.as_array().or_else(|| page["gpu_data"].as_array());
    if let Some(list) = list {
        return list.iter().map(|gpu| Some((number(&gpu["gpu"])?, gpu.clone()))).collect();
    }
    let cards = page.as_object()?.iter().filter_map(|(name, card)| Some((name.strip_prefix("card")?, card)));
    let found: Vec<(u32, Value)> =
        cards.map(|(index, card)| Some((index.parse().ok()?, card.clone()))).collect::<Option<_>>()?;
    (!found.is_empty()).then_some(found)
}

fn values(tool: Tool, gpu: &Value) -> Values {
    let mut values = Values::new();
    let found = |place: &str| if tool == Tool::RocmSmi { gpu.get(place) } else { gpu.pointer(place) };
    let table: &[(&'static str, &str, f64)] = if tool == Tool::RocmSmi { &ROCM_SMI } else { &AMD_SMI };
    for (key, place, factor) in table {
        if values.iter().all(|(known, _)| known != key) {
            put(&mut values, key, found(place).and_then(number).map(|value| value * factor));
        }
    }
    values
}

/// Parses a number in the forms that AMD's programs write: `612`, `"612.0"`, `{ "value": 612,
/// "unit": "W" }`, `"(1700Mhz)"`. Returns `None` for other values, such as `"N/A"`.
fn number(value: &Value) -> Option<f64> {
    let value = value.get("value").unwrap_or(value);
    let read = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let text = text.trim_start_matches('(').trim_end_matches(')');
            text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim().parse().ok()
        }
        _ => None,
    };
    read.filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tool: Tool, text: &str, key: &str) -> Option<f64> {
        let found = gpus(text).unwrap();
        values(tool, &found.last().unwrap().1).into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    #[test]
    fn amd_smi_s_values_have_their_unit_beside_them() {
        let gpu = r#"{ "gpu": 3,
            "usage": { "gfx_activity": { "value": 88, "unit": "%" }, "umc_activity": { "value": 25, "unit": "%" } },
            "power": { "socket_power": { "value": 550, "unit": "W" } },
            "clock": { "gfx_0": { "clk": { "value": 2100, "unit": "MHz" } } },
            "temperature": { "edge": "N/A", "hotspot": { "value": 64, "unit": "C" } },
            "mem_usage": { "total_vram": { "value": 196592, "unit": "MB" }, "used_vram": { "value": 100000, "unit": "MB" } },
            "energy": { "total_energy_consumption": { "value": 1234.5, "unit": "J" } } }"#;
        for text in [format!("[{gpu}]"), format!("WARNING: old\n{{ \"gpu_data\": [{gpu}] }}")] {
            assert_eq!(gpus(&text).unwrap()[0].0, 3);
            for (key, wanted) in [
                ("gpu_utilization", 0.88),
                ("gpu_memory_bandwidth_utilization", 0.25),
                ("gpu_memory_used", 100_000.0 * MIB),
                ("gpu_power_watts", 550.0),
                ("gpu_energy_joules", 1_234.5),
                ("gpu_temperature", 64.0),
                ("gpu_sm_clock", 2.1e9),
            ] {
                assert_eq!(of(Tool::AmdSmi, &text, key), Some(wanted), "{key}");
            }
        }
        let silent = r#"[{ "gpu": 0, "usage": "N/A", "power": { "socket_power": "N/A" }, "energy": "N/A" }]"#;
        assert!(values(Tool::AmdSmi, &gpus(silent).unwrap()[0].1).is_empty());
    }

    #[test]
    fn rocm_smi_s_names_are_sentences() {
        let text = r#"{ "card0": { "GPU use (%)": "12", "Unique ID": "0x1" },
            "card1": { "GPU use (%)": 97, "sclk clock speed:": "(1700Mhz)", "VRAM Total Used Memory (B)": "1024",
            "Average Graphics Package Power (W)": "210.0", "Temperature (Sensor edge) (C)": "61.0",
            "Accumulated Energy (uJ)": "5000000" }, "system": { "Driver version": "6.7" } }"#;
        assert_eq!(gpus(text).unwrap().iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1]);
        for (key, wanted) in [
            ("gpu_utilization", 0.97),
            ("gpu_sm_clock", 1.7e9),
            ("gpu_memory_used", 1_024.0),
            ("gpu_power_watts", 210.0),
            ("gpu_temperature", 61.0),
            ("gpu_energy_joules", 5.0),
        ] {
            assert_eq!(of(Tool::RocmSmi, text, key), Some(wanted), "{key}");
        }
        for none in ["", "no GPU", "{}", "[1]", "{ \"system\": {} }", "[{ \"gpu\": \"x\" }]"] {
            assert_eq!(gpus(none), None, "{none}");
        }
    }
}
