//! The path of this program, which is needed to start it again as the embedded mock, a supervisor or a job.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of this program. On Linux it is read from `/proc`; without `/proc`, as in a bare chroot,
/// it is the path by which the program was started.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::args_os().next().and_then(|name| started_by(Path::new(&name), &path)).ok_or(error)
    })
}

/// Returns the file that a command name starts. A name with a folder is relative to the current folder, which
/// the program never changes; any other name is looked up in `PATH`.
fn started_by(name: &Path, path: &OsStr) -> Option<PathBuf> {
    if name.parent().is_some_and(|folder| folder != Path::new("")) {
        return std::path::absolute(name).ok();
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_the_file_that_it_starts() {
        let own = own_program().unwrap();
        let (folder, name) = (own.parent().unwrap().as_os_str(), Path::new(own.file_name().unwrap()));
        assert_eq!(started_by(&own, OsStr::new("")), Some(own.clone()));
        let path = std::env::join_paths([OsStr::new("/nowhere"), folder]).unwrap();
        assert_eq!(started_by(name, &path), Some(own.clone()));
        assert_eq!(started_by(name, OsStr::new("/nowhere")), None);
        assert_eq!(started_by(Path::new("./some"), &path), Some(std::env::current_dir().unwrap().join("some")));
    }
}
