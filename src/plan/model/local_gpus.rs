//! The GPUs of the machine on which sweepline runs, as read by `telemetry` of an endpoint.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan::model::shorthand::OneOrMany;
use crate::telemetry::gpus::Tool;
use crate::units::Forms;

/// Which GPUs of this machine are read during the runs of an endpoint, and by which tool. The endpoint's
/// server must run on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalGpus {
    /// The tool that reads the GPUs. Default: auto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "auto"), example = &"nvml")]
    pub source: Option<GpuSource>,
    /// The GPUs, each by its number in the source, or by its UUID or the beginning of the UUID. Default: the
    /// ones passed to the launched server in CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or
    /// HIP_VISIBLE_DEVICES, else those that its processes use, else all.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!([0, 1]))]
    pub devices: OneOrMany<GpuId>,
}

/// The tool that reads the GPUs of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuSource {
    /// The first of these tools that finds a GPU: nvml, nvidia-smi, amd-smi, rocm-smi. None if no tool
    /// finds one.
    Auto,
    /// No tool: GPUs are not read.
    Off,
    /// NVIDIA's library, libnvidia-ml.so.1.
    Nvml,
    /// NVIDIA's command-line tool.
    NvidiaSmi,
    /// AMD's command-line tool.
    AmdSmi,
    /// AMD's older command-line tool.
    RocmSmi,
}

impl GpuSource {
    /// The tools to try, in order.
    pub fn tools(self) -> Vec<Tool> {
        match self {
            GpuSource::Auto => Tool::ALL.to_vec(),
            GpuSource::Off => Vec::new(),
            GpuSource::Nvml => vec![Tool::Nvml],
            GpuSource::NvidiaSmi => vec![Tool::NvidiaSmi],
            GpuSource::AmdSmi => vec![Tool::AmdSmi],
            GpuSource::RocmSmi => vec![Tool::RocmSmi],
        }
    }

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            GpuSource::Auto => "auto",
            GpuSource::Off => "off",
            named => named.tools().first().map_or("off", |tool| tool.name()),
        }
    }
}

/// A GPU: its number, or its UUID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuId(pub String);

impl GpuId {
    /// Whether this can identify a GPU: a number, or a text that begins like the UUID of a GPU or of a MIG
    /// instance.
    pub fn is_one(&self) -> bool {
        let GpuId(text) = self;
        text.parse::<u32>().is_ok() || ["GPU-", "MIG-", "0x"].iter().any(|begin| text.starts_with(begin))
    }
}

impl<'de> Deserialize<'de> for GpuId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("the number of a GPU, or its UUID like GPU-8f6a1c2e")
            .number(|number| GpuId(number.to_string()))
            .text(|text| Ok(GpuId(text.to_owned())))
            .read(deserializer)
    }
}

impl JsonSchema for GpuId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GpuId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                {
                    "type": "string",
                    "pattern": "^([0-9]+|(GPU-|MIG-|0x).*)$",
                    "patternErrorMessage": "write the number of a GPU, or its UUID like GPU-8f6a1c2e",
                },
            ],
        })
    }
}
