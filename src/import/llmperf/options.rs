//! The options of `token_benchmark_ray.py`, with the number of words that each option takes and how
//! it is handled.

use crate::import::options::Arity::One;
use crate::import::options::Fate::{Needless, Read};
use crate::import::options::Known;

/// All known options. `tokenizer` exists in forks of the tool.
pub(super) const OPTIONS: [Known; 13] = [
    ("model", One, Read),
    ("tokenizer", One, Read),
    ("mean-input-tokens", One, Read),
    ("stddev-input-tokens", One, Read),
    ("mean-output-tokens", One, Read),
    ("stddev-output-tokens", One, Read),
    ("num-concurrent-requests", One, Read),
    ("timeout", One, Read),
    ("max-num-completed-requests", One, Read),
    ("additional-sampling-params", One, Read),
    ("llm-api", One, Read),
    ("metadata", One, Read),
    ("results-dir", One, Needless("`sweepline run --results DIR` sets the results folder")),
];
