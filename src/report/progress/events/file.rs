//! A file to which whole lines are appended, possibly by several processes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Number of bytes that are read at once when searching for the end of the last line.
const BLOCK: u64 = 64 * 1024;

/// The file.
#[derive(Debug)]
pub(super) struct LineFile(File);

impl LineFile {
    /// Opens or creates the file. A partial line at its end, left by a full disk or a crash of the
    /// machine, is removed, unless another process has the file open and may be writing to it.
    pub(super) fn open(path: &Path) -> io::Result<LineFile> {
        if !std::fs::metadata(path).map_or(true, |there| there.is_file()) {
            // A pipe or a device has no end that could be repaired.
            return Ok(LineFile(OpenOptions::new().append(true).open(path)?));
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // On a file system without locks, no line is lost, but a partial line stays.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let end = end_of_last_line(&mut file)?;
            if end < file.metadata()?.len() {
                file.set_len(end)?;
            }
        }
        let _ = flock(&file, FlockOperation::NonBlockingLockShared);
        Ok(LineFile(file))
    }

    /// Appends a line, including its line end, in one write.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.0.write_all(line)
    }
}

fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.clear();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_cut_off_unless_somebody_else_may_be_writing_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let long = "x".repeat(2 * BLOCK as usize);
        for (before, after) in
            [("", ""), ("a\nb\n", "a\nb\n"), ("a\nto", "a\n"), ("torn", ""), (&format!("a\n{long}"), "a\n")]
        {
            std::fs::write(&path, before).expect("written");
            let mut file = LineFile::open(&path).expect("opens");
            file.append(b"new\n").expect("appends");
            assert_eq!(std::fs::read_to_string(&path).expect("read"), format!("{after}new\n"));
        }
        let mut first = LineFile::open(&path).expect("opens");
        first.append(b"half ").expect("appends");
        LineFile::open(&path).expect("opens a second time");
        first.append(b"whole\n").expect("appends");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "a\nnew\nhalf whole\n");
    }
}
