//! Files that are written whole or not at all.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use super::Failure;

/// Why a file, or stdout, could not be written: a path that cannot be is the caller's mistake.
pub fn cannot_write(path: Option<&Path>, error: &std::io::Error) -> Failure {
    let what = path.map_or_else(|| "the output".to_owned(), |path| path.display().to_string());
    let text = format!("cannot write {what}: {error}");
    match (path, error.kind()) {
        (Some(_), ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory)
        | (Some(_), ErrorKind::NotADirectory | ErrorKind::ReadOnlyFilesystem) => Failure::Usage(text),
        _ => Failure::Unexpected(anyhow::anyhow!(text)),
    }
}

/// Writes a file under another name beside it and puts it in its place when it is whole. What a link leads to is
/// replaced, not the link; what is no regular file, like a pipe, is written to.
pub fn replace(path: &Path, fill: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>) -> std::io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
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
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    if moved.is_err() {
        // What was begun is of no use; that it cannot be removed is not worth a second error.
        let _ = std::fs::remove_file(&beside);
    }
    moved
}
