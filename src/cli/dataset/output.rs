//! The file to which records are written.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::replace::{Overwrite, cannot_write, replace};
use crate::cli::failure::Failure;
use crate::dataset::Record;
use crate::dataset::write::{ParquetWriter, json_line};

/// The flags that set the output file of a command.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file to write: JSON lines, or Parquet if its name ends in .parquet
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub path: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl Output {
    /// Writes the records that `fill` supplies. An existing file is replaced only after all records have
    /// been written.
    pub(crate) fn write(
        &self,
        fill: impl FnOnce(&mut dyn FnMut(&Record) -> Result<(), Failure>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Converted records cannot be told apart from collected ones, so neither kind is
        // overwritten without --force.
        self.overwrite.check(&self.path, "empty", |_| false)?;
        let is_parquet = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let mut failed = None;
        let written = replace(&self.path, |out| {
            let filled = if is_parquet { parquet(out, &self.path, fill) } else { lines(out, &self.path, fill) };
            filled.map_err(|failure| {
                failed = Some(failure);
                std::io::Error::other("not all records could be written")
            })
        });
        match (failed, written) {
            (Some(failure), _) => Err(failure),
            (None, written) => written.map_err(|error| cannot_write(Some(&self.path), &error)),
        }
    }
}

fn lines(
    out: &mut (dyn Write + Send),
    path: &Path,
    fill: impl FnOnce(&mut dyn FnMut(&Record) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    fill(&mut |record| json_line(&mut *out, record).map_err(|error| cannot_write(Some(path), &error)))
}

fn parquet(
    out: &mut (dyn Write + Send),
    path: &Path,
    fill: impl FnOnce(&mut dyn FnMut(&Record) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed =
        |error: parquet::errors::ParquetError| cannot_write(Some(path), &std::io::Error::other(error.to_string()));
    let mut writer = ParquetWriter::new(BufWriter::new(out)).map_err(failed)?;
    fill(&mut |record| writer.add(record).map_err(failed))?;
    writer.finish().map_err(failed)
}
