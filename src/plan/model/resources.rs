//! Cluster resources for the runs of an endpoint; only `submit` reads them.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::memory::Memory;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::table::Table;
use crate::units::Nanos;

/// Resources of a job that measures the runs of an endpoint on a cluster: for the client, and for the
/// server if the plan launches it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Number of GPUs. Default: none.
    #[schemars(range(max = 1024), example = 8)]
    pub gpus: Option<u32>,
    /// Number of CPU cores. Default 4.
    #[schemars(range(min = 1, max = 4096), example = 16)]
    pub cpus: Option<u32>,
    /// Memory of the node, not of the GPUs. Default 8GiB.
    #[schemars(example = &"200GB")]
    pub memory: Option<Memory>,
    /// Time limit of one job; the next job continues with the remaining runs. Default: the cluster's.
    #[schemars(example = &"4h")]
    pub time: Option<Nanos>,
    /// Slurm: the partition.
    #[schemars(example = &"h100")]
    pub partition: Option<String>,
    /// Slurm: the account that is charged.
    #[schemars(example = &"team-inference")]
    pub account: Option<String>,
    /// Slurm: further options of sbatch, written as on its command line.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["--constraint=nvlink", "--exclusive"]))]
    pub slurm: OneOrMany<String>,
    /// Settings for Kubernetes only.
    #[schemars(example = serde_json::json!({ "image": "registry.example.org/vllm-sweepline:0.9", "claim": "results" }))]
    pub kubernetes: Option<Pod>,
}

/// The pod of a job on Kubernetes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pod {
    /// The image: contains sweepline, and the server if the plan launches it.
    #[schemars(example = &"registry.example.org/vllm-sweepline:0.9")]
    pub image: Option<String>,
    /// The PersistentVolumeClaim for results; every node can write it (ReadWriteMany).
    #[schemars(example = &"results")]
    pub claim: Option<String>,
    /// The Secret with the values of the plan's secrets: each is read from the key named like its
    /// variable.
    #[schemars(example = &"sweepline")]
    pub secret: Option<String>,
    /// The service account of the pod.
    #[schemars(example = &"bench")]
    pub service_account: Option<String>,
    /// Resource name of GPUs. Default nvidia.com/gpu.
    #[schemars(example = &"amd.com/gpu")]
    pub gpu: Option<String>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(example = serde_json::json!({ "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3" }))]
    pub node_selector: Table<String>,
    /// Taints of nodes that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// A tolerated taint. As in Kubernetes, a missing `value` matches every value of the key, a missing
/// `effect` every effect.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// The key of the taint.
    #[schemars(example = &"nvidia.com/gpu")]
    pub key: String,
    /// Its value.
    #[schemars(example = &"true")]
    pub value: Option<String>,
    /// Its effect.
    pub effect: Option<TaintEffect>,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not scheduled there.
    NoSchedule,
    /// They are not scheduled there if other nodes are available.
    PreferNoSchedule,
    /// They are evicted from there.
    NoExecute,
}

impl Resources {
    /// Number of CPU cores if the plan does not set it.
    pub const CPUS: u32 = 4;
    /// Memory if the plan does not set it, because a Slurm job without a limit takes the whole node.
    pub const MEMORY: Memory = Memory(8 << 30);
    /// Resource name of GPUs on Kubernetes if the plan does not set it.
    pub const GPU: &'static str = "nvidia.com/gpu";

    /// Returns the CPU cores.
    pub fn cpus(&self) -> u32 {
        self.cpus.unwrap_or(Self::CPUS)
    }

    /// Returns the memory.
    pub fn memory(&self) -> Memory {
        self.memory.unwrap_or(Self::MEMORY)
    }
}
