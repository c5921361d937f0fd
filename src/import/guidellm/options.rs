//! The options of `guidellm run` (`src/guidellm/cli/run.py` and `benchmark/schemas/` of
//! github.com/vllm-project/guidellm, ee7a7745 of August 2026, 0.7.3) and of `guidellm benchmark` up to 0.6
//! (`src/guidellm/__main__.py` of tag v0.6.0, and earlier option names), with the number of words that
//! each option takes.

use crate::import::options::Arity::{Each, Flag, One};
use crate::import::options::Fate::{Needless, Read};
use crate::import::options::{Fate, Known};

const FOLDER: Fate = Needless("`sweepline run --results DIR` sets the results folder, `export` the format");
const STORED: Fate = Needless("every run is stored, one row per request");
const QUIET: Fate = Needless("`sweepline run -q` is silent");

/// All known options.
pub(super) const OPTIONS: [Known; 62] = [
    ("config", One, Read),
    ("scenario", One, Read),
    ("label", Each, Read),
    ("override", Each, Read),
    // Tables: `kind=NAME,KEY=VALUE,…`, or JSON.
    ("backend", One, Read),
    ("profile", One, Read),
    ("constraint", Each, Read),
    ("data", Each, Read),
    ("data-loader", One, Read),
    ("data-column-mapper", One, Read),
    ("data-preprocessor", Each, Read),
    ("data-finalizer", One, Read),
    ("tokenizer", One, Read),
    ("seed", One, Read),
    ("output", Each, FOLDER),
    ("metrics", One, STORED),
    ("disable-console", Flag, QUIET),
    ("disable-console-outputs", Flag, QUIET),
    ("disable-console-interactive", Flag, QUIET),
    ("disable-progress", Flag, QUIET),
    // Options up to 0.6.
    ("target", One, Read),
    ("model", One, Read),
    ("rate-type", One, Read),
    ("rate", Each, Read),
    ("backend-type", One, Read),
    ("backend-kwargs", One, Read),
    ("backend-args", One, Read),
    ("request-format", One, Read),
    ("request-type", One, Read),
    ("processor", One, Read),
    ("processor-args", One, Read),
    ("data-args", Each, Read),
    ("data-samples", One, Read),
    ("data-sampler", One, Read),
    ("data-type", One, Needless("the file's format is detected")),
    ("data-preprocessors", One, Needless("texts are sent unchanged")),
    ("data-preprocessors-kwargs", One, Needless("texts are sent unchanged")),
    ("data-num-workers", One, Needless("data sets are read when the plan is loaded")),
    ("dataloader-kwargs", One, Needless("data sets are read when the plan is loaded")),
    ("random-seed", One, Read),
    ("max-seconds", One, Read),
    ("max-requests", One, Read),
    ("max-errors", One, Read),
    ("max-error-rate", One, Read),
    ("max-global-error-rate", One, Read),
    ("over-saturation", One, Read),
    ("detect-saturation", Flag, Read),
    ("default-over-saturation", Flag, Read),
    ("stop-over-saturated", Flag, Read),
    ("warmup", One, Read),
    ("warmup-percent", One, Read),
    ("cooldown", One, Read),
    ("cooldown-percent", One, Read),
    ("rampup", One, Read),
    ("output-dir", One, FOLDER),
    ("outputs", Each, FOLDER),
    ("output-path", One, FOLDER),
    ("output-extras", One, FOLDER),
    ("output-formats", Each, FOLDER),
    ("sample-requests", One, STORED),
    ("output-sampling", One, STORED),
    ("display-scheduler-stats", Flag, Needless("every run stores how late the client was")),
];

/// Short options.
pub(super) const SHORT: [(&str, &str); 2] = [("-c", "--config"), ("-l", "--label")];
