//! An index of runs. If the files of a run have not changed since the index was written, the run is taken
//! from the index. A sweep with nothing to do then need not read a hundred thousand records.
//!
//! ```text
//! derived/runs.index
//!     <SHA-256 of the rest, 64 hex digits>\n
//!     {"program": …, "endpoints": [ … ], "servers": [ … ]}\n
//!     one row of ROW bytes for each run
//! ```
//!
//! The index is derived data, so nothing is lost if it is deleted. It is ignored if it is damaged or was
//! written by another program. A row is valid only while the run's stamp is unchanged.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::brief::{Common, Said, ShortId};
use super::hex::hex;
use super::layout::Layout;
use super::record::{FORMAT, Moment};
use super::stamp::Stamp;
use crate::expand::RunId;
use crate::rows::Fingerprint;

/// Version of the index's file format.
const VERSION: u32 = 1;
/// Size of a row, in bytes. It consists of the id, the stamp, the attempt number, seconds and nanoseconds
/// of the end time, the endpoint, the server and the flags.
const ROW: usize = 32 + 16 + 4 + 8 + 4 + 4 + 4 + 1;
/// The server number in the row of a run without a fingerprint.
const NONE: u32 = u32::MAX;
/// The flag of a run whose id matches its spec.
const SOUND: u8 = 1;
/// The flag of a run that recorded texts.
const TEXTS: u8 = 2;

/// The runs that earlier commands have read.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The runs, sorted by id.
    runs: Vec<(ShortId, Stamp, Said)>,
}

/// The second line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    program: String,
    endpoints: Vec<Arc<str>>,
    servers: Vec<Arc<Fingerprint>>,
}

impl Index {
    /// Reads the index of a results folder. It is empty if the file is missing, damaged or written by
    /// another program.
    pub(super) fn read(layout: &Layout, common: &Common) -> Index {
        Index::of_file(layout, common).unwrap_or_default()
    }

    fn of_file(layout: &Layout, common: &Common) -> Option<Index> {
        let path = layout.index();
        // A special file is not read, because reading it could block.
        let bytes = fs::metadata(&path).ok()?.is_file().then(|| fs::read(&path).ok())??;
        let (digest, body) = bytes.split_at_checked(64)?;
        let body = body.strip_prefix(b"\n")?;
        if digest != hex(&Sha256::digest(body)).as_bytes() {
            return None;
        }
        let end = body.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&body[..end]).ok()?;
        if head.program != program()? {
            return None;
        }
        let endpoints: Vec<Arc<str>> = head.endpoints.iter().map(|name| common.name(name)).collect();
        let servers: Vec<Arc<Fingerprint>> = head.servers.iter().map(|server| common.server(server)).collect();
        let rows = body[end + 1..].chunks(ROW);
        let mut runs = rows.map(|row| said(row, &endpoints, &servers)).collect::<Option<Vec<_>>>()?;
        runs.sort_unstable_by_key(|(id, ..)| *id);
        Some(Index { runs })
    }

    /// Returns the indexed summary of a run; `None` if the run is missing from the index or has another
    /// stamp there.
    pub(super) fn get(&self, id: ShortId, stamp: Stamp) -> Option<&Said> {
        let at = self.runs.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
        let (_, of, said) = &self.runs[at];
        (*of == stamp).then_some(said)
    }

    /// Writes the index. Errors are ignored, because without the index, commands are only slower.
    pub(super) fn write<'a>(layout: &Layout, runs: impl Iterator<Item = (Stamp, &'a Said)>) {
        let Some(program) = program() else { return };
        let (mut endpoints, mut servers) = (Numbered::default(), Numbered::default());
        let mut rows = Vec::new();
        for (stamp, said) in runs {
            let Some(id) = said.id else { continue };
            let server = said.server.as_ref().map_or(NONE, |server| servers.number(server));
            let flags = if said.is_sound { SOUND } else { 0 } | if said.has_texts { TEXTS } else { 0 };
            rows.extend_from_slice(&id.0);
            rows.extend_from_slice(&stamp.0);
            rows.extend_from_slice(&said.attempt.to_le_bytes());
            rows.extend_from_slice(&said.ended.0.as_second().to_le_bytes());
            rows.extend_from_slice(&said.ended.0.subsec_nanosecond().to_le_bytes());
            rows.extend_from_slice(&endpoints.number(&said.endpoint).to_le_bytes());
            rows.extend_from_slice(&server.to_le_bytes());
            rows.push(flags);
        }
        let head = Head { program, endpoints: endpoints.values, servers: servers.values };
        let Ok(mut body) = serde_json::to_vec(&head) else { return };
        body.push(b'\n');
        body.append(&mut rows);
        let digest = hex(&Sha256::digest(&body));
        place(layout, &[digest.as_bytes(), b"\n", &body].concat());
    }
}

/// Replaces the file in one step.
fn place(layout: &Layout, bytes: &[u8]) {
    let path = layout.index();
    let beside = path.with_extension(std::process::id().to_string());
    let made = fs::create_dir(layout.derived());
    if made.is_err_and(|error| error.kind() != ErrorKind::AlreadyExists) {
        return;
    }
    if fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, &path)).is_err() {
        let _ = fs::remove_file(&beside);
    }
}

/// Identifies this build of the program, because another build may evaluate a record differently. `None` if
/// the metadata of the program's file cannot be read.
fn program() -> Option<String> {
    let file = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let (size, at, ns) = (file.len(), file.mtime(), file.mtime_nsec());
    Some(format!("{VERSION} {FORMAT} {} {size} {at}.{ns}", env!("CARGO_PKG_VERSION")))
}

/// Assigns consecutive numbers to distinct values.
struct Numbered<T: ?Sized> {
    values: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32>,
}

impl<T: ?Sized> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Hash + Eq + ?Sized> Numbered<T> {
    fn number(&mut self, value: &Arc<T>) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(Arc::clone(value));
        self.numbers.insert(Arc::clone(value), number);
        number
    }
}

/// Parses a row of the index; `None` if the row is too short or refers to an unknown endpoint or server.
fn said(row: &[u8], endpoints: &[Arc<str>], servers: &[Arc<Fingerprint>]) -> Option<(ShortId, Stamp, Said)> {
    let mut rest = row;
    let id = RunId(take(&mut rest)?);
    let stamp = Stamp(take(&mut rest)?);
    let attempt = u32::from_le_bytes(take(&mut rest)?);
    let (second, ns) = (i64::from_le_bytes(take(&mut rest)?), i32::from_le_bytes(take(&mut rest)?));
    let endpoint = endpoints.get(u32::from_le_bytes(take(&mut rest)?) as usize)?;
    let server = match u32::from_le_bytes(take(&mut rest)?) {
        NONE => None,
        number => Some(Arc::clone(servers.get(number as usize)?)),
    };
    let [flags] = take(&mut rest)?;
    let said = Said {
        id: Some(id),
        is_sound: flags & SOUND != 0,
        attempt,
        ended: Moment(Timestamp::new(second, ns).ok()?),
        has_texts: flags & TEXTS != 0,
        endpoint: Arc::clone(endpoint),
        server,
    };
    Some((ShortId::of(&id), stamp, said))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}
