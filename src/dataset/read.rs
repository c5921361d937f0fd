//! Reads the records of a file: converts its entries to records, keeps those that pass the filter, and
//! counts the others by reason.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::units::Nanos;

use super::detect::{self, Container};
use super::entries::Entries;
use super::entry::Entry;
use super::error::{Bad, DatasetError};
use super::options::{Format, OnBad, Options};
use super::record::{Place, Record};
use super::shape::{self, Draft};
use super::skipped::{Reason, Skipped};

/// A file that is being read.
///
/// A `Dataset` is an iterator over the kept records, which ends after an error.
pub struct Dataset {
    path: PathBuf,
    options: Options,
    container: Container,
    format: Format,
    entries: Entries,
    /// The first readable entry, from which the format was detected; `None` once it has been returned.
    first: Option<Entry>,
    ids: HashSet<u64>,
    hasher: RandomState,
    /// The first time in the file and the latest time so far, in nanoseconds; `None` before the first time.
    times: Option<(i64, i64)>,
    skipped: Skipped,
    kept: u64,
    ended: bool,
}

impl Dataset {
    /// Opens a file and detects its container and format.
    pub fn open(path: &Path, options: &Options) -> Result<Dataset, DatasetError> {
        let container = detect::container(path)?;
        let wanted = wanted(options);
        let entries = Entries::open(path, container, options.most_bytes, &|name| wanted.contains(name))?;
        let mut dataset = Dataset {
            path: path.to_owned(),
            options: options.clone(),
            container,
            format: options.format.unwrap_or(Format::Columns),
            entries,
            first: None,
            ids: HashSet::new(),
            hasher: RandomState::new(),
            times: None,
            skipped: Skipped::default(),
            kept: 0,
            ended: false,
        };
        dataset.find_format()?;
        Ok(dataset)
    }

    /// Returns the format of the entries.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the name of the file's container, for users.
    pub fn container(&self) -> &'static str {
        match self.container {
            Container::Array => "JSON array",
            Container::Lines => "JSON lines",
            Container::Csv => "CSV",
            Container::Parquet => "Parquet",
        }
    }

    /// Returns the entries that have been skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns the number of records that have been kept so far.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Reads up to the first readable entry, and detects its format.
    fn find_format(&mut self) -> Result<(), DatasetError> {
        if let Some(header) = self.entries.header() {
            let header: Vec<String> = header.to_vec();
            self.check_header(&header)?;
        }
        let first = loop {
            let Some(entry) = self.entries.next()? else {
                let first = self.skipped.0.values().min_by_key(|skips| skips.place());
                let problem = match first {
                    None => "the file contains no entry".to_owned(),
                    Some(first) => {
                        format!(
                            "none of its {} entries can be read; {}: {}",
                            self.skipped.total(),
                            first.place(),
                            first.example
                        )
                    }
                };
                return Err(DatasetError::file(&self.path, problem, "check that it is the right file"));
            };
            match entry.fields {
                Ok(fields) => break (entry.place, fields),
                Err(bad) => self.refuse(entry.place, bad)?,
            }
        };
        if self.options.format.is_none() {
            let names = || detect::names(first.1.keys().map(String::as_str));
            self.format = detect::format(&first.1, &self.options.mapping).ok_or_else(|| self.unknown(&names()))?;
        }
        let declares = matches!(self.format, Format::Oasst | Format::Columns);
        if !self.options.filter.languages.is_empty() && !declares {
            let problem = format!("the format {} does not declare languages", self.format);
            return Err(DatasetError::file(&self.path, problem, "remove the filter on languages"));
        }
        self.first = Some(Entry { place: first.0, fields: Ok(first.1) });
        Ok(())
    }

    fn unknown(&self, names: &str) -> DatasetError {
        let problem = format!("its entries have an unknown format (their fields: {names})");
        DatasetError::file(&self.path, problem, "map its columns, like --map prompt=COLUMN,output=COLUMN")
    }

    /// Checks that a file with a header has the columns that its format and the mapping require.
    fn check_header(&self, header: &[String]) -> Result<(), DatasetError> {
        let has = |name: &&str| header.iter().any(|column| column == name || name.split('.').next() == Some(column));
        let mapped = self.options.mapping.columns.values().map(String::as_str);
        let needed = self.options.format.map_or(&[][..], shape::needs).iter().copied().chain(mapped);
        let missing: Vec<&str> = needed.filter(|name| !has(name)).collect();
        let known = || detect::names(header.iter().map(String::as_str));
        if !missing.is_empty() {
            let problem = format!("it lacks the column {} (it has {})", detect::names(missing.into_iter()), known());
            return Err(DatasetError::file(&self.path, problem, "check that file and format are right"));
        }
        let is_columns = matches!(self.options.format, None | Some(Format::Columns));
        let of_a_format = Format::ALL.iter().copied().filter(|format| *format != Format::Columns);
        let mut of_a_format = of_a_format.map(shape::needs);
        if is_columns
            && !self.options.mapping.all().any(|name| has(&name))
            && !of_a_format.any(|needs| needs.iter().all(has))
        {
            return Err(self.unknown(&known()));
        }
        Ok(())
    }

    /// Counts an entry that is not kept, or returns an error if bad entries must end the reading.
    fn refuse(&mut self, place: Place, bad: Bad) -> Result<(), DatasetError> {
        if bad.reason.is_bad() && self.options.on_bad == OnBad::Fail {
            let place = if self.container == Container::Parquet { format!("row {place}") } else { place.to_string() };
            return Err(DatasetError::Entry { path: self.path.clone(), place, reason: bad.reason, text: bad.text });
        }
        self.skipped.add(bad.reason, place, &bad.text);
        Ok(())
    }

    /// Reads up to the next record that is kept; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<Record>, DatasetError> {
        loop {
            let entry = match self.first.take() {
                Some(first) => first,
                None => match self.entries.next()? {
                    Some(entry) => entry,
                    None => return Ok(None),
                },
            };
            let draft = entry.fields.and_then(|fields| shape::read(self.format, &fields, &self.options.mapping));
            match draft.and_then(|draft| self.record(entry.place, draft)) {
                Ok(record) => {
                    self.kept += 1;
                    return Ok(Some(record));
                }
                Err(bad) => self.refuse(entry.place, bad)?,
            }
        }
    }

    /// Completes the record of a draft, and checks it against earlier records and the filter.
    fn record(&mut self, place: Place, Draft { mut record, time }: Draft) -> Result<Record, Bad> {
        record.place = place;
        if let Some(time) = time {
            record.offset = Some(self.offset(time)?);
        }
        if let Some(id) = &record.id
            && !self.ids.insert(self.hasher.hash_one(id))
        {
            let text = format!("the id `{}` is a duplicate", super::value::shown(id));
            return Err(Bad::new(Reason::Duplicate, text));
        }
        if record.exchanges().next().is_none() && record.input_tokens.unwrap_or(0) == 0 {
            return Err(Bad::new(Reason::NoPrompt, "no user message and no prompt tokens"));
        }
        if record.output_tokens == Some(0) {
            return Err(Bad::new(Reason::NoAnswer, "0 output tokens: a request that failed"));
        }
        match self.options.filter.refuses(&record) {
            Some((reason, text)) => Err(Bad::new(reason, text)),
            None => Ok(record),
        }
    }

    /// Converts a time to its offset from the first time in the file. Fails if the time is earlier than a
    /// previous one.
    fn offset(&mut self, time: i64) -> Result<Nanos, Bad> {
        let (first, latest) = *self.times.get_or_insert((time, time));
        if time < latest {
            let back = Nanos(latest.abs_diff(time));
            return Err(Bad::new(
                Reason::Unsorted,
                format!("its time is {back} before that of an earlier entry: sort the file by time"),
            ));
        }
        self.times = Some((first, time));
        Ok(Nanos(time.abs_diff(first)))
    }
}

/// Returns the columns that are read from a Parquet file: the columns of all formats, and the mapped
/// columns or the objects that contain them.
fn wanted(options: &Options) -> HashSet<&str> {
    let known = Format::ALL.iter().copied().flat_map(shape::needs).chain(&shape::ALSO);
    let mut wanted = HashSet::new();
    for name in known {
        wanted.insert(*name);
    }
    options.mapping.all().for_each(|name| wanted.extend([name, name.split('.').next().unwrap_or_default()]));
    wanted
}

impl Iterator for Dataset {
    type Item = Result<Record, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
