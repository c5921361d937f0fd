//! The thorough check of a results folder, which checks the digests and reads every page of every file.
//! This module also gives access to the rows of a run, after checking the digests.

use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::deleted::Deleted;
use super::error::StoreError;
use super::folder::Folder;
use super::inventory::Entered;
use super::layout::{RUN_JSON, short, split_numbered};
use super::list::{Listed, State, size_problem, wanted};
use super::record::RunRecord;
use super::{Store, disk};
use crate::rows::{self, EventRow, RequestRow, RowFile, RunReader, Sample, Table};

/// Maximum number of times to look for a replaced commit that is being moved to `superseded/`.
const LOOKS: u32 = 20;
/// How long to wait before looking again for a commit that is being moved.
const INSTANT: Duration = Duration::from_millis(5);

/// The result of checking one file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OneFile")]
pub struct FileReport {
    /// The name of the file.
    pub name: String,
    /// The problem of the file; null if there is none.
    pub problem: Option<String>,
    /// Whether the problem is only that this user or this program cannot read the file, which is not
    /// considered damage.
    #[serde(skip)]
    pub closed: bool,
}

/// The result of the thorough check of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// The run's short id.
    pub id: String,
    /// The results for `run.json` and for the files that it lists, in this order.
    pub files: Vec<FileReport>,
    /// Whether the run's `run.json` contains its own digest; `None` if the file cannot be read.
    pub covered: Option<bool>,
    /// The relation between the run and its entry in the inventory.
    pub entered: Entered,
}

impl RunReport {
    /// Whether every file is undamaged.
    pub fn is_whole(&self) -> bool {
        self.files.iter().all(|file| file.problem.is_none())
    }

    /// Whether any file differs from its committed content.
    pub fn is_damaged(&self) -> bool {
        self.files.iter().any(|file| file.problem.is_some() && !file.closed)
    }

    /// Whether this user or this program cannot read some file, and no file is known to be damaged.
    pub fn is_closed(&self) -> bool {
        !self.is_whole() && !self.is_damaged()
    }
}

/// The result of the thorough check of a results folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Every existing run, sorted by id.
    pub runs: Vec<RunReport>,
    /// Committed runs whose folders are gone.
    pub deleted: Vec<Deleted>,
    /// The problem of the inventory itself; `None` if it has none.
    pub inventory: Option<String>,
}

impl Store {
    /// Checks the digests and reads every page of all committed runs, and finds missing runs that the
    /// inventory lists.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut runs = Vec::new();
        for listed in self.stream()? {
            runs.push(self.report(listed));
        }
        let inventory = self.no_inventory().map(|error| error.to_string());
        Ok(Verified { runs, deleted: self.deleted()?, inventory })
    }

    /// Reads the record of the commit with this attempt number again, even if another commit has replaced
    /// it since.
    ///
    /// Fails with `Gone` if the record is neither in `runs/` nor in `superseded/`.
    pub fn record_of(&self, id: &str, attempt: u32) -> Result<RunRecord, StoreError> {
        let is_meant = |record: &RunRecord| record.attempt == attempt;
        let run = self.layout.run(id);
        let now = RunRecord::read(&run);
        if now.as_ref().is_ok_and(is_meant) {
            return now;
        }
        let replaced = RunRecord::read(&self.layout.superseded_run(id, attempt)).ok().filter(is_meant);
        replaced.map_or_else(|| now.and(Err(StoreError::Gone { dir: run })), Ok)
    }

    /// Reads the requests of a committed run, and opens the file with the gaps between their token events,
    /// which is read later. The two files are first checked against the commit.
    pub fn read(&self, record: &RunRecord) -> Result<RunReader, StoreError> {
        let folder = self.folder_with(record, &[Table::Requests, Table::Events])?;
        let requests = open(&folder, record, Table::Requests)?;
        let mut reader = RunReader::of(requests, open(&folder, record, Table::Events)?)?;
        if record.reuse_is_unknown() {
            reader.forget_reuse();
        }
        Ok(reader)
    }

    /// Streams the requests of a committed run, after checking that the file matches the commit.
    pub fn stream_requests(
        &self,
        record: &RunRecord,
    ) -> Result<impl Iterator<Item = Result<RequestRow, StoreError>> + use<>, StoreError> {
        let rows = open(&self.folder_with(record, &[Table::Requests])?, record, Table::Requests)?.requests()?;
        let is_unknown = record.reuse_is_unknown();
        let known = move |row: RequestRow| match is_unknown {
            true => RequestRow { reusable_tokens: None, ..row },
            false => row,
        };
        Ok(rows.map(move |row| row.map(known).map_err(StoreError::from)))
    }

    /// Streams the token events of a committed run, after checking that the file matches the commit.
    pub fn stream_events(
        &self,
        record: &RunRecord,
    ) -> Result<impl Iterator<Item = Result<EventRow, StoreError>> + use<>, StoreError> {
        let rows = open(&self.folder_with(record, &[Table::Events])?, record, Table::Events)?.events()?;
        Ok(rows.map(|row| row.map_err(StoreError::from)))
    }

    /// Reads the samples of a committed run, after checking that the file matches the commit.
    pub fn read_samples(&self, record: &RunRecord) -> Result<Vec<Sample>, StoreError> {
        Ok(open(&self.folder_with(record, &[Table::Samples])?, record, Table::Samples)?.samples()?)
    }

    /// Opens the folder of a run, after fetching missing files of these tables from the shared results.
    fn folder_with(&self, record: &RunRecord, tables: &[Table]) -> Result<Folder, StoreError> {
        self.need(record, tables.iter().map(|table| table.file()))?;
        self.folder_of(record)
    }

    /// Whether the run `id` (short) is committed and some of its row files are only in the shared results.
    pub fn lacks_rows(&self, id: &str) -> bool {
        let dir = self.layout.run(id);
        let is_absent = |table: &Table| !table.is_optional() && !disk::is_taken(&dir.join(table.file()));
        self.remote.is_some() && disk::is_taken(&dir.join(RUN_JSON)) && Table::ALL.iter().any(is_absent)
    }

    /// Returns the total size of a run's files that are only in the shared results, in bytes.
    pub fn absent_bytes(&self, record: &RunRecord) -> u64 {
        let dir = self.layout.run(&record.id);
        let is_absent = |name: &String| self.remote.is_some() && !disk::is_taken(&dir.join(name));
        record.files.iter().filter(|(name, _)| is_absent(name)).map(|(_, file)| file.bytes).sum()
    }

    /// Fetches the files of a run that are in `names` but missing from the run's folder. Does nothing for
    /// an ordinary folder.
    fn need<'n>(&self, record: &RunRecord, names: impl Iterator<Item = &'n str>) -> Result<(), StoreError> {
        let Some(remote) = self.remote() else { return Ok(()) };
        let dir = self.layout.run(&record.id);
        let mut absent = names.filter(|name| record.files.contains_key(*name) && !disk::is_taken(&dir.join(name)));
        absent.try_for_each(|name| remote.fetch(&self.layout, record, name))
    }

    /// Opens the folder with the files of a commit: the run's folder or, if another commit has replaced it,
    /// the folder to which it was moved. A reader that has read a `run.json` thus reads the files of the
    /// same commit.
    fn folder_of(&self, record: &RunRecord) -> Result<Folder, StoreError> {
        let run = self.layout.run(&record.id);
        let mut current = Ok(());
        for look in 0..LOOKS {
            if look > 0 {
                thread::sleep(INSTANT);
            }
            let opened = Folder::open(&run).and_then(|folder| Ok((RunRecord::read_in(&folder)?, folder)));
            current = match opened {
                Ok((found, folder)) if found == *record => return Ok(folder),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Some(folder) = self.replaced(record) {
                return Ok(folder);
            }
            // The run's folder is damaged, so waiting does not help.
            if matches!(&current, Err(error) if error.damaged_file().is_some()) {
                break;
            }
        }
        current?;
        Err(StoreError::Gone { dir: run })
    }

    /// Checks a run thoroughly. The report combines the result of the quick check with the results for its
    /// files.
    fn report(&self, listed: Listed) -> RunReport {
        let Listed { id, dir, state, record, entered } = listed;
        let covered = record.as_ref().map(|record| record.sha256.is_some());
        let mut files = vec![FileReport { name: RUN_JSON.to_owned(), problem: None, closed: false }];
        if let Some(record) = &record {
            let there = self.need(record, record.files.keys().map(String::as_str));
            match there.and_then(|()| self.folder_of(record).or_else(|_| Folder::open(&dir))) {
                Ok(folder) => files.extend(file_reports(&folder, record)),
                Err(error) => {
                    (files[0].closed, files[0].problem) = (error.is_refusal(), Some(error.to_string()));
                }
            }
        }
        // If the quick check found a problem that was not found in any file, it is reported as a problem of
        // `run.json`.
        if let Some(problem) =
            state.problem().filter(|found| !files.iter().any(|f| f.problem.as_deref() == Some(found)))
        {
            files[0].problem = Some(problem.to_owned());
            files[0].closed = matches!(state, State::Unreadable(_));
        }
        RunReport { id, files, covered, entered }
    }

    /// Opens the folder of a replaced commit; `None` if it was not kept.
    fn replaced(&self, record: &RunRecord) -> Option<Folder> {
        let mut places = vec![self.layout.superseded_run(&record.id, record.attempt)];
        for folder in [self.layout.attempts(), self.layout.superseded()] {
            let names = disk::names(&folder).unwrap_or_default();
            let of_run = |name: &&String| split_numbered(name).is_some_and(|(id, _)| id == short(&record.id));
            places.extend(names.iter().filter(of_run).map(|name| folder.join(name)));
        }
        places.into_iter().find_map(|place| {
            let folder = Folder::open(&place).ok()?;
            (RunRecord::read_in(&folder).ok()? == *record).then_some(folder)
        })
    }
}

/// Opens the file of a table, after checking that it still matches its commit.
fn open(folder: &Folder, record: &RunRecord, table: Table) -> Result<RowFile, StoreError> {
    checked(folder, record, table.file())?.map_err(|reason| {
        let path = folder.path().join(table.file());
        StoreError::Damaged { path, reason }
    })
}

/// Opens a file after checking its size and digest against the commit. Returns the problem as text if they
/// do not match.
fn checked(folder: &Folder, record: &RunRecord, name: &str) -> Result<Result<RowFile, String>, StoreError> {
    if let Some(problem) = size_problem(folder, record, name)? {
        return Ok(Err(problem));
    }
    let Some(listed) = record.files.get(name) else { return Ok(Err(format!("{name} is not listed in {RUN_JSON}"))) };
    let path = folder.path().join(name);
    let (file, _) = folder.file(name)?;
    if disk::sha256(&path, &file)? != listed.sha256 {
        return Ok(Err(format!("the SHA-256 of {name} does not match {RUN_JSON}")));
    }
    Ok(Ok(RowFile::opened(path, file)))
}

/// Checks the files of a run, all through one open folder.
fn file_reports(folder: &Folder, record: &RunRecord) -> Vec<FileReport> {
    let report = |(name, table): (&str, Option<Table>)| {
        let found = file_problem(folder, record, (name, table));
        let closed = found.as_ref().is_err_and(StoreError::is_refusal);
        let problem = found.unwrap_or_else(|error| Some(error.to_string()));
        FileReport { name: name.to_owned(), problem, closed }
    };
    let is_of_run = |file: &FileReport| record.files.contains_key(&file.name) || file.problem.is_some();
    wanted(record).map(report).filter(is_of_run).collect()
}

/// Returns the problem of a file; `None` if it has none. Even if the file's bytes match the commit, its
/// rows may have a problem.
fn file_problem(
    folder: &Folder,
    record: &RunRecord,
    (name, table): (&str, Option<Table>),
) -> Result<Option<String>, StoreError> {
    if !record.files.contains_key(name) {
        return size_problem(folder, record, name);
    }
    let file = match checked(folder, record, name)? {
        Ok(file) => file,
        Err(problem) => return Ok(Some(problem)),
    };
    Ok(table.and_then(|table| page_problem(file, record, table)))
}

/// Describes what is wrong with a file's rows; `None` if nothing is.
fn page_problem(file: RowFile, record: &RunRecord, table: Table) -> Option<String> {
    let name = table.file();
    if table == Table::Requests {
        let labels = rows::labels(&file).ok().flatten();
        let other = labels.filter(|labels| labels.run_id != record.id || labels.attempt != record.attempt);
        if let Some(other) = other {
            let id = short(&other.run_id);
            return Some(format!("{name} contains the rows of run {id}, attempt {}", other.attempt));
        }
    }
    let wanted = record.files.get(name).map(|file| file.rows);
    match rows::check_open(&file, table) {
        Ok(rows) if Some(rows) == wanted => None,
        Ok(rows) => Some(format!("{name} has {rows} rows, but {RUN_JSON} lists another number")),
        Err(error) => Some(error.to_string()),
    }
}
