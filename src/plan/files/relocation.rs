//! Rewrites the paths of a plan that is written to another folder, so that they still point to the same
//! files.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use crate::plan::model::file_ref::NamedFile;
use crate::plan::model::plan::Plan;
use crate::plan::model::scenario::Scenario;
use crate::units::regular_file;

/// The error for a file that a plan in another folder may not name, because it is outside that folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// The path as written in the plan.
    pub written: String,
}

impl Plan {
    /// Rewrites the paths of all files to paths relative to `folder`, to which the plan is moved. A plan may
    /// name files outside its folder only if `allow_outside` is true.
    pub fn moved_to(&mut self, folder: &Path, allow_outside: bool) -> Result<(), Unreachable> {
        let Ok(folder) = std::fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        else {
            return Ok(());
        };
        self.files().into_iter().try_for_each(|file| {
            let (written, lies_at) = file.named();
            rename(written, lies_at, &folder, allow_outside)
        })
    }

    /// All files that the plan names.
    fn files(&mut self) -> Vec<&mut dyn NamedFile> {
        let mut files: Vec<&mut dyn NamedFile> = Vec::new();
        for Scenario { trace, profile, data, lengths, .. } in self.scenarios.values_mut() {
            files.extend(trace.iter_mut().map(|trace| &mut trace.file as &mut dyn NamedFile));
            files.extend(profile.iter_mut().map(|profile| &mut profile.file as &mut dyn NamedFile));
            files.extend(data.iter_mut().map(|data| &mut data.file as &mut dyn NamedFile));
            let pairs = lengths.iter_mut().filter_map(|lengths| lengths.data.as_mut());
            files.extend(pairs.map(|data| &mut data.file as &mut dyn NamedFile));
        }
        let tokenizers = self.models.values_mut().filter_map(|model| model.tokenizer.as_mut());
        files.extend(tokenizers.map(|tokenizer| &mut tokenizer.0 as &mut dyn NamedFile));
        files
    }
}

/// Rewrites a path so that it is relative to `folder`. A path that already leads to the file, or to a
/// copy of it, stays as written.
fn rename(written: &mut String, lies_at: Option<&Path>, folder: &Path, allow_outside: bool) -> Result<(), Unreachable> {
    let Some(lies_at) = lies_at else { return Ok(()) };
    let named = std::fs::canonicalize(folder.join(&*written));
    if named.is_ok_and(|named| named == lies_at || is_copy(&named, lies_at).unwrap_or(false)) {
        return Ok(());
    }
    if !lies_at.starts_with(folder) && !allow_outside {
        return Err(Unreachable { written: written.clone() });
    }
    *written = from(folder, lies_at).to_string_lossy().into_owned();
    Ok(())
}

/// Whether two files have the same bytes.
fn is_copy(one: &Path, other: &Path) -> io::Result<bool> {
    let [one, other] = [regular_file::open(one)?, regular_file::open(other)?];
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let [mut one, mut other] = [one, other].map(BufReader::new);
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        other.consume(length);
    }
}

/// The relative path from a folder to a file. Both paths must be canonical.
fn from(folder: &Path, file: &Path) -> PathBuf {
    let mut below = file.components();
    let mut above = folder.components();
    loop {
        match (above.clone().next(), below.clone().next()) {
            (Some(one), Some(other)) if one == other => (above.next(), below.next()),
            _ => break,
        };
    }
    let up = above.map(|_| Component::ParentDir.as_os_str());
    let down: Vec<&OsStr> = below.map(Component::as_os_str).collect();
    up.chain(down).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_up_and_down() {
        for (folder, file, way) in [
            ("/a/b", "/a/b/c.json", "c.json"),
            ("/a/b", "/a/b/d/c.json", "d/c.json"),
            ("/a/b/d", "/a/c.json", "../../c.json"),
            ("/a/b", "/x/c.json", "../../x/c.json"),
        ] {
            assert_eq!(from(Path::new(folder), Path::new(file)), Path::new(way), "{folder}");
        }
    }
}
