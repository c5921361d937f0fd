//! The source of a plan: a file, or a file at a git revision that is read with the `git` program.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::super::changes::Changes;
use crate::cli::failure::Failure;
use crate::cli::stderr;
use crate::expand::{Expansion, PlannedRun, expand};
use crate::plan::{Files, Format, Loaded, Step, Sweep};

/// A plan named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The file of the plan.
    pub path: PathBuf,
    /// The git revision; `None` for the current file.
    pub revision: Option<String>,
}

/// A plan that was read, with its runs.
pub(crate) struct Side {
    /// The name on the command line: file, or file@revision.
    pub name: String,
    /// The plan and the places of its values.
    pub loaded: Loaded,
    /// The runs of the plan.
    pub expansion: Expansion,
    revision: Option<String>,
}

impl Side {
    /// Returns a plan that is already loaded, in its current state.
    pub(crate) fn loaded(loaded: Loaded, expansion: Expansion) -> Side {
        Side { name: loaded.file().display().to_string(), loaded, expansion, revision: None }
    }

    /// Whether one of the plan's runs would confirm the result of a search.
    pub(crate) fn is_confirmation(&self, run: &PlannedRun) -> bool {
        let mut members = self.expansion.pools.iter().flat_map(|pool| &pool.members);
        members.any(|member| member.confirms && member.run.id == run.id)
    }

    /// Whether results decide which runs are executed.
    pub(crate) fn has_choices(&self) -> bool {
        let asks = |sweep: &Sweep| Sweep::asks(sweep).next().is_some();
        !self.expansion.pools.is_empty() || self.loaded.plan.sweeps.values().any(asks)
    }

    /// Returns the place of the value at `path`, or of its nearest parent: `plan.yaml@main:4:7`.
    pub(crate) fn place(&self, path: &[Step]) -> Option<String> {
        let place = self.loaded.place(path)?;
        let Some(revision) = &self.revision else { return Some(place.to_string()) };
        Some(format!("{}@{revision}:{}:{}", place.file.display(), place.line, place.column))
    }
}

impl Source {
    /// Returns a source that stands for the current file.
    pub(crate) fn file(path: &Path) -> Source {
        Source { path: path.to_owned(), revision: None }
    }

    /// Parses `FILE` or `FILE@REV`. An existing file named like the whole argument takes precedence.
    /// Otherwise the `@` after the file extension of a plan separates file and revision, because the names of
    /// files and revisions (`main@{1}`) may contain other `@` characters.
    pub(crate) fn parse(text: &str) -> Source {
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

    /// Reads the plan with its fragments, checks it and expands it.
    pub(crate) fn load(&self, changes: &Changes) -> Result<Side, Failure> {
        let (name, loaded) = match &self.revision {
            None => (self.path.display().to_string(), changes.load(&self.path)?),
            Some(revision) => {
                let name = format!("{}@{revision}", self.path.display());
                let loaded = Revision::open(&self.path, revision)?.load(&self.path, &name, changes)?;
                (name, loaded)
            }
        };
        let expansion = expand(&loaded.plan)?;
        Ok(Side { name, loaded, expansion, revision: self.revision.clone() })
    }
}

/// The files of a repository at a revision.
struct Revision<'a> {
    revision: &'a str,
}

impl<'a> Revision<'a> {
    /// Opens the repository that contains `path`. The file and its folder may no longer exist.
    fn open(path: &Path, revision: &'a str) -> Result<Revision<'a>, Failure> {
        let shown = path.display();
        if revision.starts_with('-') {
            return Err(Failure::Usage(format!(
                "`{revision}` is not a git revision: revisions do not begin with a dash"
            )));
        }
        let (folder, _) = located(path).map_err(|error| Failure::Unexpected(error.into()))?;
        let repository = git(&folder, &["rev-parse", "--is-inside-work-tree"])?;
        if !repository.status.success() {
            let reason = last_words(&repository);
            return Err(Failure::Usage(format!("{shown} is not in a git work tree, so it has no revisions: {reason}")));
        }
        if !git(&folder, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?.status.success() {
            let text =
                format!("the repository of {shown} has no revision `{revision}`; `git log --oneline` lists some");
            return Err(Failure::Usage(text));
        }
        Ok(Revision { revision })
    }

    /// Reads the plan at `path`; `name` is the plan's name in errors.
    fn load(&self, path: &Path, name: &str, changes: &Changes) -> Result<Loaded, Failure> {
        let Some(format) = Format::of(path) else {
            return Err(Failure::Usage(format!("{name}: a plan must be a .yaml, .yml or .toml file")));
        };
        let bytes = self.read(path, usize::MAX).map_err(|error| {
            Failure::Usage(format!("cannot read {} at revision `{}`: {error}", path.display(), self.revision))
        })?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{name} is not UTF-8 text")))?;
        changes.parse(path, &text, format, self).map_err(|errors| {
            // The errors name the places in the plan by file, without the revision.
            stderr::complain(&format!("{name} has errors:"));
            errors.into()
        })
    }

    /// Returns the output of git for the object at `path`.
    fn ask(&self, args: &[&str], path: &Path) -> io::Result<Vec<u8>> {
        let (folder, inside) = located(path)?;
        let object = format!("{}:./{}", self.revision, inside.display());
        let output =
            git(&folder, &[args, &[&object]].concat()).map_err(|_| io::Error::other("git cannot be started"))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(io::Error::new(ErrorKind::NotFound, last_words(&output))),
        }
    }
}

impl Files for Revision<'_> {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.ask(&["cat-file", "-e"], path)?;
        without_detours(path)
    }

    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.ask(&["cat-file", "blob"], path)?;
        bytes.truncate(most);
        Ok(bytes)
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let listed = self.ask(&["ls-tree", "--full-tree", "--name-only"], folder).unwrap_or_default();
        String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect()
    }
}

/// Returns the path from the root, without `.` and `..`. Symbolic links are not resolved.
fn without_detours(path: &Path) -> io::Result<PathBuf> {
    let mut whole = PathBuf::new();
    let here = std::env::current_dir()?;
    for component in here.join(path).components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    Ok(whole)
}

/// Returns the nearest existing parent folder of `path` and the remaining path.
fn located(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let whole = without_detours(path)?;
    let folder = whole.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let inside = whole.strip_prefix(folder).unwrap_or(Path::new("")).to_owned();
    Ok((folder.to_owned(), inside))
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

/// Returns the last error line of git, without its prefix.
fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git reports no reason");
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
