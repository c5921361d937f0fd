//! The thorough check: digests and every page of every file.

use super::error::StoreError;
use super::layout::RUN_JSON;
use super::list::{Listed, State, inspect, size_problem};
use super::record::RunRecord;
use super::{Store, disk};
use crate::rows::{self, EventRow, RequestRow, RunReader, Sample, Table};

/// What the thorough check says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file's name in the run's folder.
    pub name: String,
    /// What is wrong with it; none where it is whole.
    pub problem: Option<String>,
}

/// What the thorough check says of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// The run's short id.
    pub id: String,
    /// `run.json` first, then the files it names.
    pub files: Vec<FileReport>,
}

impl RunReport {
    /// Whether every file is whole.
    pub fn is_whole(&self) -> bool {
        self.files.iter().all(|file| file.problem.is_none())
    }
}

impl Store {
    /// Checks the digests and reads every page of every committed run; `seen` is told of each run as it is done.
    pub fn verify(&self, mut seen: impl FnMut(&RunReport)) -> Result<Vec<RunReport>, StoreError> {
        let mut reports = Vec::new();
        for name in self.run_names()? {
            let report = report(inspect(&self.layout.run(&name), &name)?)?;
            seen(&report);
            reports.push(report);
        }
        Ok(reports)
    }

    /// The requests of a committed run and the way through their gaps, after checking that the files are still those of
    /// its commit.
    pub fn read(&self, record: &RunRecord) -> Result<RunReader, StoreError> {
        self.check_digests(record, &[Table::Requests, Table::Events])?;
        let mut reader = RunReader::open(&self.layout.run(&record.id))?;
        if record.reuse_is_unknown() {
            reader.forget_reuse();
        }
        Ok(reader)
    }

    /// The requests of a committed run, decoded as they are asked for, after the same check of their file.
    pub fn stream_requests(
        &self,
        record: &RunRecord,
    ) -> Result<impl Iterator<Item = Result<RequestRow, StoreError>> + use<>, StoreError> {
        self.check_digests(record, &[Table::Requests])?;
        let rows = rows::stream_requests(&self.layout.run(&record.id).join(Table::Requests.file()))?;
        let is_unknown = record.reuse_is_unknown();
        let known = move |row: RequestRow| match is_unknown {
            true => RequestRow { reusable_tokens: None, ..row },
            false => row,
        };
        Ok(rows.map(move |row| row.map(known).map_err(StoreError::from)))
    }

    /// The token events of a committed run, likewise.
    pub fn stream_events(
        &self,
        record: &RunRecord,
    ) -> Result<impl Iterator<Item = Result<EventRow, StoreError>> + use<>, StoreError> {
        self.check_digests(record, &[Table::Events])?;
        let rows = rows::stream_events(&self.layout.run(&record.id).join(Table::Events.file()))?;
        Ok(rows.map(|row| row.map_err(StoreError::from)))
    }

    /// The samples of a committed run, checked likewise.
    pub fn read_samples(&self, record: &RunRecord) -> Result<Vec<Sample>, StoreError> {
        self.check_digests(record, &[Table::Samples])?;
        Ok(rows::read_samples(&self.layout.run(&record.id).join(Table::Samples.file()))?)
    }

    fn check_digests(&self, record: &RunRecord, tables: &[Table]) -> Result<(), StoreError> {
        let dir = self.layout.run(&record.id);
        for table in tables {
            if let Some(reason) = digest_problem(&dir, record, *table)? {
                return Err(StoreError::Damaged { path: dir.join(table.file()), reason });
            }
        }
        Ok(())
    }
}

fn report(listed: Listed) -> Result<RunReport, StoreError> {
    let Listed { id, dir, state, record } = listed;
    let mut files = Vec::new();
    let Some(record) = record else {
        let problem = match state {
            State::Corrupt(reason) => Some(reason),
            State::Whole => None,
        };
        files.push(FileReport { name: RUN_JSON.to_owned(), problem });
        return Ok(RunReport { id, files });
    };
    files.push(FileReport { name: RUN_JSON.to_owned(), problem: None });
    for table in record.tables() {
        let mut problem = digest_problem(&dir, &record, table)?;
        if problem.is_none() {
            problem = page_problem(&dir, &record, table);
        }
        files.push(FileReport { name: table.file().to_owned(), problem });
    }
    Ok(RunReport { id, files })
}

/// What is wrong with a file's bytes.
fn digest_problem(dir: &std::path::Path, record: &RunRecord, table: Table) -> Result<Option<String>, StoreError> {
    let problem = size_problem(dir, record, table)?;
    let (None, Some(file)) = (&problem, record.files.get(table.file())) else { return Ok(problem) };
    let same = disk::sha256(&dir.join(table.file()))? == file.sha256;
    Ok((!same).then(|| format!("{} has another SHA-256 than {RUN_JSON} says", table.file())))
}

/// What is wrong with a file's rows, although its bytes are those of the commit.
fn page_problem(dir: &std::path::Path, record: &RunRecord, table: Table) -> Option<String> {
    let wanted = record.files.get(table.file()).map(|file| file.rows);
    match rows::check(&dir.join(table.file()), table) {
        Ok(rows) if Some(rows) == wanted => None,
        Ok(rows) => Some(format!("{} has {rows} rows, {RUN_JSON} says otherwise", table.file())),
        Err(error) => Some(error.to_string()),
    }
}
