//! What the runs of an endpoint need on a cluster: read by `submit` alone.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::memory::Memory;
use crate::plan::model::shorthand::OneOrMany;
use crate::plan::model::table::Table;
use crate::units::Nanos;

/// What a job needs that makes the runs of an endpoint on a cluster: the client, and the server where the plan launches it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// GPUs. Default: none.
    #[schemars(range(max = 1024), example = 8)]
    pub gpus: Option<u32>,
    /// CPU cores. Default 4.
    #[schemars(range(min = 1, max = 4096), example = 16)]
    pub cpus: Option<u32>,
    /// Memory of the node, not of the GPUs. Default 8GiB.
    #[schemars(example = &"200GB")]
    pub memory: Option<Memory>,
    /// The longest that one job may take; what it has not done by then goes on in the next. Default: what the cluster says.
    #[schemars(example = &"4h")]
    pub time: Option<Nanos>,
    /// Slurm: the partition.
    #[schemars(example = &"h100")]
    pub partition: Option<String>,
    /// Slurm: the account that pays.
    #[schemars(example = &"team-inference")]
    pub account: Option<String>,
    /// Slurm: further options of sbatch, each as one writes it.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    #[schemars(example = serde_json::json!(["--constraint=nvlink", "--exclusive"]))]
    pub slurm: OneOrMany<String>,
    /// What only Kubernetes asks for.
    #[schemars(example = serde_json::json!({ "image": "registry.example.org/vllm-sweepline:0.9", "claim": "results" }))]
    pub kubernetes: Option<Pod>,
}

/// The pod of a job on Kubernetes.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pod {
    /// The image: sweepline, and the server where the plan launches it.
    #[schemars(example = &"registry.example.org/vllm-sweepline:0.9")]
    pub image: Option<String>,
    /// The PersistentVolumeClaim on which results lie; every node can write it (ReadWriteMany).
    #[schemars(example = &"results")]
    pub claim: Option<String>,
    /// The Secret that holds the values of the plan's secrets: each is taken from the key with the name of its variable.
    #[schemars(example = &"sweepline")]
    pub secret: Option<String>,
    /// The service account of the pod.
    #[schemars(example = &"bench")]
    pub service_account: Option<String>,
    /// How GPUs are called. Default nvidia.com/gpu.
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

/// A taint that is tolerated. As in Kubernetes: without a `value` every value of the key is, without an `effect` every effect.
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
    /// What the taint does.
    pub effect: Option<TaintEffect>,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// None is scheduled there.
    NoSchedule,
    /// None is scheduled there while there are other nodes.
    PreferNoSchedule,
    /// Those that are there are evicted.
    NoExecute,
}

impl Resources {
    /// CPU cores where the plan does not say.
    pub const CPUS: u32 = 4;
    /// Memory where the plan does not say: without a limit a job of Slurm takes all of its node.
    pub const MEMORY: Memory = Memory(8 << 30);
    /// How GPUs are called on Kubernetes where the plan does not say.
    pub const GPU: &'static str = "nvidia.com/gpu";

    /// CPU cores.
    pub fn cpus(&self) -> u32 {
        self.cpus.unwrap_or(Self::CPUS)
    }

    /// Memory.
    pub fn memory(&self) -> Memory {
        self.memory.unwrap_or(Self::MEMORY)
    }
}
