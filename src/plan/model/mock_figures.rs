//! How the embedded mock server behaves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

/// Behavior of the embedded mock; every field is part of the run's identity.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MockFigures {
    /// Time from the start of a request in a slot to its first token, without prefill. Default 20ms.
    pub ttft: Nanos,
    /// Time between tokens of a stream while there are no other streams. Default 4ms.
    pub itl: Nanos,
    /// Number of streams served at once; further streams wait in a queue. Default 8.
    #[schemars(range(min = 1))]
    pub slots: u32,
    /// Extra time to first token per prompt token that is not in the prefix cache, like 0.1ms/token. Default 0s/token.
    pub prefill: PerToken,
    /// Number of prompt and response tokens that the prefix cache holds, at least one block. Default: no
    /// prefix cache.
    #[schemars(range(min = 1))]
    #[schemars(example = 100_000)]
    pub prefix_cache: Option<u32>,
    /// Tokens per block of the prefix cache; only full blocks are cached and reused. Default: 16, as in vLLM.
    #[schemars(range(min = 1))]
    #[schemars(example = 16)]
    pub prefix_block: Option<u32>,
    /// Growth of the inter-token time per further busy slot: itl × (1 + load × (busy − 1)). Default 0.
    #[schemars(range(min = 0))]
    #[schemars(example = 0.05)]
    pub load: Decimal,
    /// Variation of every time: each is multiplied by a factor drawn uniformly from 1 ± jitter, by seed.
    /// Default 0%.
    #[schemars(example = "5%")]
    pub jitter: Share,
    /// Seed of the jitter. Default 0.
    pub seed: Seed,
}

impl MockFigures {
    /// Default number of tokens per block of the prefix cache.
    pub const PREFIX_BLOCK: u32 = 16;
}

impl Default for MockFigures {
    fn default() -> Self {
        MockFigures {
            ttft: Nanos::from_millis(20),
            itl: Nanos::from_millis(4),
            slots: 8,
            prefill: PerToken::default(),
            prefix_cache: None,
            prefix_block: None,
            load: Decimal::new(0, 0),
            jitter: Share::percent(0),
            seed: Seed(0),
        }
    }
}
