//! Where a plan comes from: a file, or a file as it was at a git revision, which the `git` program is asked for.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::expand::{Expansion, expand};
use crate::plan::{self, Format, Loaded};

use super::super::Failure;

/// A plan that is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its file.
    pub path: PathBuf,
    /// The git revision at which it is meant; none for the file as it is.
    pub revision: Option<String>,
}

/// A plan that was read, with its runs.
pub struct Side {
    /// The plan and where its values were written.
    pub loaded: Loaded,
    /// Its runs.
    pub expansion: Expansion,
}

impl Source {
    /// The file as it is.
    pub fn file(path: &Path) -> Source {
        Source { path: path.to_owned(), revision: None }
    }

    /// `FILE`, or `FILE@REV`. A file that is called like the whole argument is meant first; else the `@` behind a plan's
    /// ending parts the two, since both names of files and revisions (`main@{1}`) may have others.
    pub fn parse(text: &str) -> Source {
        if Path::new(text).exists() {
            return Source::file(Path::new(text));
        }
        let parts = text.match_indices('@').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let mut parts = parts.filter(|(path, revision)| !path.is_empty() && !revision.is_empty());
        let is_plan = |(path, _): &(&str, &str)| Format::of(Path::new(path)).is_some();
        match parts.clone().find(is_plan).or_else(|| parts.next()) {
            Some((path, revision)) => Source { path: path.into(), revision: Some(revision.to_owned()) },
            None => Source::file(Path::new(text)),
        }
    }

    /// Reads the plan, checks it and expands it.
    pub fn load(&self) -> Result<Side, Failure> {
        let loaded = match &self.revision {
            None => plan::load(&self.path)?,
            Some(revision) => {
                let name = format!("{}@{revision}", self.path.display());
                let Some(format) = Format::of(&self.path) else {
                    return Err(Failure::Usage(format!("{name}: a plan is a .yaml, .yml or .toml file")));
                };
                plan::parse(Path::new(&name), &at_revision(&self.path, revision)?, format)?
            }
        };
        let expansion = expand(&loaded.plan)?;
        Ok(Side { loaded, expansion })
    }
}

/// The text of a file as it was at `revision` of the repository that it lies in. The file, and its folder, need not exist
/// any longer.
fn at_revision(path: &Path, revision: &str) -> Result<String, Failure> {
    let shown = path.display();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = parent.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let inside = path.strip_prefix(folder).unwrap_or(path);
    if revision.starts_with('-') {
        return Err(Failure::Usage(format!("`{revision}` is no git revision: none begins with a dash")));
    }
    let repository = git(folder, &["rev-parse", "--is-inside-work-tree"])?;
    if !repository.status.success() {
        let reason = last_words(&repository);
        return Err(Failure::Usage(format!("{shown} lies in no work tree of git, so it has no revisions: {reason}")));
    }
    if !git(folder, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?.status.success() {
        let text = format!("the repository of {shown} has no revision `{revision}`; `git log --oneline` lists some");
        return Err(Failure::Usage(text));
    }
    let blob = git(folder, &["cat-file", "blob", &format!("{revision}:./{}", inside.display())])?;
    if !blob.status.success() {
        let reason = last_words(&blob);
        return Err(Failure::Usage(format!("{shown} is no file at revision `{revision}`: {reason}")));
    }
    String::from_utf8(blob.stdout).map_err(|_| Failure::Usage(format!("{shown}@{revision} is not UTF-8 text")))
}

fn git(folder: &Path, args: &[&str]) -> Result<Output, Failure> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::Usage("FILE@REV needs the program `git`, which is not on the PATH: install it".to_owned())
        }
        _ => Failure::Unexpected(anyhow::Error::from(error).context("git cannot be started")),
    })
}

/// What git said last, without the word that it begins with.
fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git does not say why");
    crate::report::format::plain(line.trim_start_matches("fatal: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_at_behind_a_plans_ending_parts_file_and_revision() {
        for (text, path, revision) in [
            ("a.yaml", "a.yaml", None),
            ("a.yaml@main", "a.yaml", Some("main")),
            ("plans/a@b.toml@HEAD@{1}", "plans/a@b.toml", Some("HEAD@{1}")),
            ("a.yml@@{u}", "a.yml", Some("@{u}")),
            ("a@main", "a", Some("main")),
            ("a.yaml@", "a.yaml@", None),
            ("@main", "@main", None),
        ] {
            let expected = Source { path: path.into(), revision: revision.map(str::to_owned) };
            assert_eq!(Source::parse(text), expected, "{text}");
        }
    }
}
