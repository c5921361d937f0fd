//! The options of `genai-bench benchmark` (`genai_bench/cli/option_groups.py` of
//! github.com/sgl-project/genai-bench, 7fd04d8c of July 2026), with the number of words that each option
//! takes and how it is handled.

use crate::import::options::Arity::{Each, Flag, One};
use crate::import::options::Fate::{Lost, Needless, Read};
use crate::import::options::{Fate, Known};

const FOLDER: Fate = Needless("`sweepline run --results DIR` sets the results folder");
const UPLOAD: Fate = Needless("results are a folder of files: upload it like any other");
const PROVIDER: Fate = Lost(
    "only servers with OpenAI's API are supported; `headers` and `api_key` of the endpoint carry what a gateway needs",
);
const CLIENT: Fate =
    Needless("`engine: { workers: N }` gives the client more processes, and `threads: N` more threads");

/// All known options.
pub(super) const OPTIONS: [Known; 73] = [
    // The server and the task.
    ("api-backend", One, Read),
    ("api-base", One, Read),
    ("api-key", One, Read),
    ("model-api-key", One, Read),
    ("model-auth-type", One, Needless("the key is sent as a bearer token")),
    ("api-model-name", One, Read),
    ("task", One, Read),
    ("additional-request-params", One, Read),
    // Facts of the server.
    ("server-engine", One, Read),
    ("server-gpu-type", One, Read),
    ("server-gpu-count", One, Read),
    ("server-version", One, Read),
    // The load.
    ("traffic-scenario", Each, Read),
    ("num-concurrency", Each, Read),
    ("batch-size", Each, Read),
    (
        "iteration-type",
        One,
        Needless(
            "the task determines it: embeddings and rankings vary the texts per request, all others the requests in \
             flight",
        ),
    ),
    ("max-time-per-run", One, Read),
    ("max-requests-per-run", One, Read),
    ("spawn-rate", One, Read),
    ("warmup-ratio", One, Needless("load rises in `fill` and settles in `stabilize` before anything is measured")),
    ("cooldown-ratio", One, Needless("`drain` keeps up the load until the measured requests end")),
    ("num-workers", One, CLIENT),
    ("master-port", One, CLIENT),
    // Content of the requests.
    ("model", One, Needless("a name for the results: requests use `id` of the model")),
    ("model-tokenizer", One, Read),
    ("prefix-len", One, Read),
    ("prefix-ratio", One, Read),
    ("dataset-path", One, Read),
    ("dataset-prompt-column", One, Read),
    ("dataset-config", One, Read),
    ("dataset-image-column", One, Lost("requests carry text only")),
    // Reports.
    ("experiment-folder-name", One, FOLDER),
    ("experiment-base-dir", One, FOLDER),
    ("log-dir", One, FOLDER),
    ("metrics-time-unit", One, Needless("durations include their unit")),
    ("metrics-refresh-interval", One, Needless("`sweepline run --progress` sets how a run's progress is shown")),
    // Upload of results.
    ("upload-results", Flag, UPLOAD),
    ("namespace", One, UPLOAD),
    ("storage-provider", One, UPLOAD),
    ("storage-bucket", One, UPLOAD),
    ("storage-prefix", One, UPLOAD),
    ("storage-auth-type", One, UPLOAD),
    ("storage-aws-access-key-id", One, UPLOAD),
    ("storage-aws-secret-access-key", One, UPLOAD),
    ("storage-aws-session-token", One, UPLOAD),
    ("storage-aws-region", One, UPLOAD),
    ("storage-aws-profile", One, UPLOAD),
    ("storage-azure-account-name", One, UPLOAD),
    ("storage-azure-account-key", One, UPLOAD),
    ("storage-azure-connection-string", One, UPLOAD),
    ("storage-azure-sas-token", One, UPLOAD),
    ("storage-gcp-project-id", One, UPLOAD),
    ("storage-gcp-credentials-path", One, UPLOAD),
    ("github-token", One, UPLOAD),
    ("github-owner", One, UPLOAD),
    ("github-repo", One, UPLOAD),
    // Other providers.
    ("auth", One, PROVIDER),
    ("config-file", One, PROVIDER),
    ("profile", One, PROVIDER),
    ("security-token", One, PROVIDER),
    ("region", One, PROVIDER),
    ("aws-access-key-id", One, PROVIDER),
    ("aws-secret-access-key", One, PROVIDER),
    ("aws-session-token", One, PROVIDER),
    ("aws-profile", One, PROVIDER),
    ("aws-region", One, PROVIDER),
    ("azure-endpoint", One, PROVIDER),
    ("azure-deployment", One, PROVIDER),
    ("azure-api-version", One, PROVIDER),
    ("azure-ad-token", One, PROVIDER),
    ("gcp-project-id", One, PROVIDER),
    ("gcp-location", One, PROVIDER),
    ("gcp-credentials-path", One, PROVIDER),
];
