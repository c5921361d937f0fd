//! Reads small files whole: plans, secrets, certificates, baselines. Only regular files are read, up to a limit,
//! because a pipe may block forever, and a device may have no end. Symbolic links are followed, because container
//! platforms mount secrets as links.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

use super::text::counted;

/// Why a file is not read although the system permits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("it is a folder")]
    Folder,
    #[error("it is {0}, not a regular file")]
    Kind(&'static str),
    #[error("it is larger than {}, the limit for such a file", size(*.0))]
    TooLarge(u64),
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        let kind = match refused {
            Refused::Folder => ErrorKind::IsADirectory,
            Refused::Kind(_) => ErrorKind::InvalidInput,
            Refused::TooLarge(_) => ErrorKind::FileTooLarge,
        };
        io::Error::new(kind, refused)
    }
}

/// Opens a regular file for reading, without waiting for the writer of a pipe.
///
/// # Errors
///
/// Fails if the file cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // The type is checked before the file is opened, because opening a device may have effects. It is checked again
    // afterwards, because something else may have taken the file's place.
    regular(std::fs::metadata(path)?.file_type())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?);
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Returns the bytes of a regular file that has at most `most` bytes.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut is_larger = file.metadata()?.len() > most;
    let mut bytes = Vec::new();
    if !is_larger {
        // The file may grow while it is read.
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        is_larger = bytes.len() as u64 > most;
    }
    if is_larger { Err(Refused::TooLarge(most).into()) } else { Ok(bytes) }
}

/// Returns the text of a regular file that has at most `most` bytes.
///
/// # Errors
///
/// Fails like [`read`], and if the file is not UTF-8 text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read(path, most)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Returns what a user can do about an error of this module.
pub fn remedy(error: &io::Error) -> &'static str {
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>());
    match refused {
        Some(Refused::Folder) => "name a file in it",
        Some(Refused::Kind(_)) => "write its content to a regular file, and name that file",
        Some(Refused::TooLarge(_)) => "check that it is the right file",
        None => "check the path and its permissions",
    }
}

fn regular(kind: FileType) -> Result<(), Refused> {
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_dir() => Err(Refused::Folder),
        () if kind.is_fifo() => Err(Refused::Kind("a named pipe")),
        () if kind.is_socket() => Err(Refused::Kind("a socket")),
        () if kind.is_char_device() || kind.is_block_device() => Err(Refused::Kind("a device")),
        () => Err(Refused::Kind("of another kind")),
    }
}

/// Formats a limit in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size && bytes.is_multiple_of(*size));
    unit.map_or_else(|| counted(bytes, "byte"), |(size, name)| format!("{} {name}", bytes / size))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "12345678").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("link", at("second link")).unwrap();
        for name in ["file", "link", "second link"] {
            assert_eq!(read_text(&at(name), 8).unwrap(), "12345678", "{name}");
        }
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("pipe", at("link to pipe")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::fs::write(at("bytes"), b"\xff").unwrap();
        let why = |path: &Path, most: u64| {
            let error = read_text(path, most).unwrap_err();
            format!("{error}; {}", remedy(&error))
        };
        let write_it = "not a regular file; write its content to a regular file, and name that file";
        assert_eq!(
            why(&at("file"), 7),
            "it is larger than 7 bytes, the limit for such a file; check that it is the right file"
        );
        assert_eq!(why(&at("pipe"), 8), format!("it is a named pipe, {write_it}"));
        assert_eq!(why(&at("link to pipe"), 8), format!("it is a named pipe, {write_it}"));
        assert_eq!(why(&at("socket"), 8), format!("it is a socket, {write_it}"));
        assert_eq!(why(Path::new("/dev/zero"), 8), format!("it is a device, {write_it}"));
        assert_eq!(why(dir.path(), 8), "it is a folder; name a file in it");
        assert_eq!(why(&at("bytes"), 8), "it is not UTF-8 text; check the path and its permissions");
        assert_eq!(read(&at("none"), 8).unwrap_err().kind(), ErrorKind::NotFound);
        // The size of such a file is reported as 0.
        assert!(!read(Path::new("/proc/self/stat"), 1 << 20).unwrap().is_empty());
        assert_eq!(read(Path::new("/proc/self/stat"), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn limits_are_shown_in_a_readable_unit() {
        let shown = [1, 1 << 10, 1 << 20, 3 << 20, 1 << 30, (1 << 20) + 1].map(size);
        assert_eq!(shown, ["1 byte", "1 KiB", "1 MiB", "3 MiB", "1 GiB", "1048577 bytes"]);
    }
}
