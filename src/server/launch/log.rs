//! Writes the output of a server to log files. The beginning and the end are kept, however much is printed
//! in between, and secrets are removed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};

use crate::units::SecretMask;
use crate::units::text::is_unseen;

/// Maximum size of each file of a log, in bytes. One file contains the beginning of the output, and two
/// files contain the newest output.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum length of a line, in bytes. Longer lines are split.
const LONGEST_LINE: usize = 64 * 1024;
/// Number of bytes at the end of a log that are searched for its last lines.
const TAIL_BYTES: u64 = 16 * 1024;
/// Maximum number of characters of a line that are quoted.
const LONGEST_QUOTED: usize = 300;

/// A log that is being written. The beginning of the output is in `NAME.log`; the rest is written to
/// `NAME.log.1` and `NAME.log.2` in turn.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    written: u64,
    /// Number of files that have been filled.
    filled: u64,
    mask: SecretMask,
    line: Vec<u8>,
}

impl Log {
    pub(super) fn create(path: &Path, secrets: &[String]) -> io::Result<Log> {
        let file = File::create(path)?;
        let mask = SecretMask::new(secrets.iter().map(String::as_str), "[secret]");
        Ok(Log { path: path.to_owned(), file, written: 0, filled: 0, mask, line: Vec::new() })
    }

    /// Copies the input to the log until the input ends. `is_writing` is true from before input is read until it is
    /// written. If the disk is full, lines are lost, but the server is not stopped.
    pub(super) fn copy(mut self, mut from: impl Read + AsFd, is_writing: &AtomicBool) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            is_writing.store(!self.line.is_empty(), Ordering::SeqCst);
            // Returns when there is input, or when it has ended.
            let _ = poll(&mut [PollFd::new(&from, PollFlags::IN)], None);
            is_writing.store(true, Ordering::SeqCst);
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.end_of_line();
        is_writing.store(false, Ordering::SeqCst);
    }

    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() >= LONGEST_LINE {
                self.end_of_line();
            }
        }
        // An incomplete line is written at once, because it may be a prompt or a progress bar, and a user
        // may be following the log. With secrets, this is not possible, because the line may end within a
        // secret.
        if !self.line.is_empty() && self.mask.is_empty() {
            self.end_of_line();
        }
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = match self.mask.is_empty() {
            true => line,
            false => self.mask.hide(&String::from_utf8_lossy(&line)).into_bytes(),
        };
        if self.written + text.len() as u64 > MOST_BYTES {
            self.next_file();
        }
        if self.file.write_all(&text).is_ok() {
            self.written += text.len() as u64;
        }
    }

    fn next_file(&mut self) {
        self.filled += 1;
        if let Ok(file) = File::create(numbered(&self.path, (self.filled + 1) % 2 + 1)) {
            (self.file, self.written) = (file, 0);
        }
    }
}

fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Returns the last `lines` lines that a server printed, without control and invisible characters.
pub(super) fn tail(path: &Path, lines: usize) -> Vec<String> {
    let newest = [path.to_owned(), numbered(path, 1), numbered(path, 2)]
        .into_iter()
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max_by_key(|(modified, _)| *modified);
    let Some((_, path)) = newest else { return Vec::new() };
    let text = end_of(&path).unwrap_or_default();
    let shown =
        text.lines().map(|line| line.chars().filter(|c| !is_unseen(*c)).take(LONGEST_QUOTED).collect::<String>());
    let all: Vec<String> = shown.filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].to_vec()
}

fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // If the file is longer than the part that was read, the first line is incomplete and skipped.
    Ok(match text.split_once('\n') {
        Some((_, rest)) if length > TAIL_BYTES => rest.to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_beginning_and_its_end_within_bounds_and_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        let log = Log::create(&path, &["hunter2hunter2".to_owned()]).unwrap();
        let mut text = String::from("started with key hunter2hunter2\n");
        for number in 0..400_000 {
            text.push_str(&format!("line {number} of a server that talks a lot, and more\n"));
        }
        let printed = dir.path().join("printed");
        std::fs::write(&printed, text).unwrap();
        log.copy(File::open(&printed).unwrap(), &AtomicBool::new(false));
        std::fs::remove_file(&printed).unwrap();
        let sizes: Vec<u64> =
            std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).collect();
        assert!(sizes.len() == 3 && sizes.iter().sum::<u64>() <= 3 * MOST_BYTES, "{sizes:?}");
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("started with key [secret]\n"));
        let last = tail(&path, 2);
        assert_eq!(last[1], "line 399999 of a server that talks a lot, and more");
    }
}
