//! Reads the traces that scenarios replay.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::dataset::{Dataset, DatasetError, Options, Record, digest};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::files::loader::Loader;
use crate::plan::files::tables::Found;
use crate::plan::model::trace::{Replay, TraceFile, TraceRequest, TraceRequests};
use crate::plan::text::span::Span;
use crate::units::Nanos;

/// Maximum number of requests in a trace. All of them are held in memory.
const MOST_REQUESTS: usize = 5_000_000;

/// The traces of a plan. A file is read once for each combination of settings that the plan uses for it.
#[derive(Default)]
pub(crate) struct Traces {
    known: HashMap<(PathBuf, String), Replay>,
}

impl Traces {
    /// The requests that a scenario replays.
    pub(crate) fn read(&mut self, trace: &TraceFile, span: &Span, loader: &Loader<'_>) -> Found<Replay> {
        let written = trace.file.written();
        let path = loader.on_disk("trace", written, span)?;
        let (reading, window) = (trace.reading(), trace.window);
        let key = (path.clone(), format!("{reading} {window:?}"));
        if let Some(replay) = self.known.get(&key) {
            return Ok((Replay { speed: trace.speed, repeat: trace.repeat, ..replay.clone() }, path));
        }
        let cannot = |error: DatasetError| {
            let remedy = "`sweepline dataset inspect` shows the content of a file; docs/DATASETS.md describes \
                          the supported formats";
            Diagnostic::new(Code::File, format!("the trace `{written}` cannot be read: {error}")).remedy(remedy)
        };
        let (mapping, on_bad) = (trace.map.mapping(), trace.on_bad);
        let options = Options { format: trace.format, mapping, on_bad, ..Options::default() };
        let requests = enough(written, requests(&path, &options, window).map_err(cannot)?)?;
        let sha256 = digest(&path).map_err(cannot)?;
        let replay = Replay { sha256, reading, speed: trace.speed, window, repeat: trace.repeat, requests };
        self.known.insert(key, replay.clone());
        Ok((replay, path))
    }
}

/// Checks that requests can be replayed: there must be neither too few nor too many, and each must
/// have a time and lengths.
fn enough(written: &str, requests: Option<Vec<TraceRequest>>) -> Result<TraceRequests, Box<Diagnostic>> {
    let (what, remedy) = match requests {
        Some(requests) if requests.len() > MOST_REQUESTS => {
            ("has more than 5 000 000 requests", "replay a part of it: window: [0s, 10m]")
        }
        Some(requests) if requests.len() < 2 => {
            ("has fewer than two requests in its window", "show its times with sweepline dataset inspect")
        }
        Some(requests) => return Ok(TraceRequests(requests.into())),
        None => (
            "has entries without a time or lengths",
            "map a column with times: map: { time: COLUMN }, and columns with prompt and response tokens",
        ),
    };
    Err(Diagnostic::new(Code::Empty, format!("the trace `{written}` {what}")).remedy(remedy).into())
}

/// The requests of a file that are within a time window; `None` if a request has no time or no lengths.
fn requests(
    path: &Path,
    options: &Options,
    window: Option<[Nanos; 2]>,
) -> Result<Option<Vec<TraceRequest>>, DatasetError> {
    let [from, to] = window.unwrap_or([Nanos::ZERO, Nanos(u64::MAX)]);
    let mut requests = Vec::new();
    for record in Dataset::open(path, options)? {
        let record = record?;
        let (prompt_tokens, output_tokens) = (record.prompt_tokens(), record.answer_tokens());
        let Record { offset, hash_ids, .. } = record;
        let (Some(at), Some(prompt_tokens), Some(output_tokens)) = (offset, prompt_tokens, output_tokens) else {
            return Ok(None);
        };
        if at >= to || requests.len() > MOST_REQUESTS {
            break;
        }
        if at >= from {
            let output_tokens = output_tokens.max(1);
            requests.push(TraceRequest { at, prompt_tokens, output_tokens, blocks: hash_ids.into() });
        }
    }
    Ok(Some(requests))
}
