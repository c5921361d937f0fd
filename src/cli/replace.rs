//! Files that are written completely or not at all.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::failure::Failure;
use crate::units::regular_file;

/// Permission to overwrite a file that the command did not write.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Overwrite {
    /// Overwrite the output file, even if another program wrote it
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// Fails if the file at `path` must not be overwritten. It may be overwritten if it is empty, if
    /// `is_ours` returns true for it, or if the user permits it. `ours` describes the command's output,
    /// such as "an export". A special file, like a pipe, has no contents to lose.
    pub(super) fn check(self, path: &Path, ours: &str, is_ours: impl FnOnce(&Path) -> bool) -> Result<(), Failure> {
        let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
        if self.force || !found.is_file() || found.len() == 0 || is_ours(path) {
            return Ok(());
        }
        let path = path.display();
        Err(Failure::Usage(format!("{path} already exists and is not {ours}: choose another name, or add --force")))
    }
}

/// Whether `is_so` returns true for the first 256 bytes of a file.
pub(crate) fn begins_with(path: &Path, is_so: impl FnOnce(&str) -> bool) -> bool {
    let mut head = Vec::new();
    let read = regular_file::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
    read.is_ok() && is_so(&String::from_utf8_lossy(&head))
}

/// Whether a file is a JSON object with this first key.
pub(crate) fn begins_with_key(path: &Path, key: &str) -> bool {
    let has_key = |text: &str| {
        let text = text.trim_start().strip_prefix('{').unwrap_or_default().trim_start();
        text.strip_prefix('"').and_then(|text| text.strip_prefix(key)).is_some_and(|text| text.starts_with('"'))
    };
    begins_with(path, has_key)
}

/// Returns the failure for a file or for stdout that could not be written. An invalid path is a usage
/// error.
pub(crate) fn cannot_write(path: Option<&Path>, error: &std::io::Error) -> Failure {
    let what = path.map_or_else(|| "the output".to_owned(), |path| path.display().to_string());
    let text = format!("cannot write {what}: {error}");
    match (path, error.kind()) {
        (Some(_), ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory)
        | (Some(_), ErrorKind::NotADirectory | ErrorKind::ReadOnlyFilesystem) => Failure::Usage(text),
        _ => Failure::Unexpected(anyhow::anyhow!(text)),
    }
}

/// Writes a temporary file next to the target and renames it when it is complete. If the target is a link,
/// the file that it points to is replaced, not the link; a special file, like a pipe, is written to
/// directly.
pub(super) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| where_it_leads(path));
    let before = std::fs::metadata(path).ok();
    if before.as_ref().is_some_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        fill(&mut out)?;
        return out.flush();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create(&beside).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    });
    // The new file keeps the permissions of the old one.
    let written = written.and_then(|()| match &before {
        Some(before) => std::fs::set_permissions(&beside, before.permissions()),
        None => Ok(()),
    });
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    if moved.is_err() {
        // The partial file is useless, but a failure to remove it is not worth a second error.
        let _ = std::fs::remove_file(&beside);
    }
    moved
}

/// Returns the target if the path is a link to a file that does not exist yet, and otherwise the
/// path itself.
fn where_it_leads(path: &Path) -> PathBuf {
    let target = std::fs::read_link(path).map(|target| path.parent().unwrap_or(Path::new("")).join(target));
    target.unwrap_or_else(|_| path.to_owned())
}
