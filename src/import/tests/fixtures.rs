//! The public examples under `tests/import/TOOL/`; each `NAME.cells` is next to its file.

use std::path::{Path, PathBuf};

use crate::import::{ImportError, Imported, Wishes, import};

/// One example.
#[derive(Debug)]
pub(super) struct Fixture {
    /// The folder, which is the tool's name.
    pub tool: String,
    /// The file.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The arguments of `import` other than the file: `--model`, `--url`, `--format`, and a command after
    /// `--`.
    typed: Vec<String>,
}

impl Fixture {
    /// Returns the name of the example in messages.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.tool, self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Imports another text instead. Files that it names are next to the example's file.
    pub(super) fn import(&self, text: &str) -> Result<Imported, ImportError> {
        self.import_as(text, &self.path.to_string_lossy())
    }

    /// Imports a text as a file of this name.
    pub(super) fn import_as(&self, text: &str, name: &str) -> Result<Imported, ImportError> {
        let typed = |option: &str| {
            let at = self.typed.iter().position(|word| word == option)?;
            self.typed.get(at + 1).cloned()
        };
        let command = self.typed.iter().position(|word| word == "--").map_or(&[][..], |at| &self.typed[at + 1..]);
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string());
        import(&Wishes {
            name: name.to_owned(),
            text: Some(text.to_owned()),
            command: command.to_vec(),
            format: typed("--format").unwrap_or_else(|| "auto".to_owned()),
            quick: false,
            model: typed("--model"),
            url: typed("--url"),
            entries: typed("--entry").into_iter().collect(),
            folder: folder.clone(),
            read: &read,
        })
    }
}

/// Returns all examples, by tool and name.
pub(super) fn fixtures() -> Vec<Fixture> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let files = |folder: &Path| -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let mut found = Vec::new();
    for folder in files(&home).into_iter().filter(|path| path.is_dir()) {
        let all = files(&folder);
        for cells in all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "cells")) {
            let stem = cells.file_stem();
            let path = all.iter().find(|path| *path != cells && path.file_stem() == stem);
            let path = path.unwrap_or_else(|| panic!("{}: no such file next to it", cells.display())).clone();
            let said = std::fs::read_to_string(cells).unwrap();
            let typed = said.lines().find_map(|line| line.strip_prefix("import:")).unwrap_or_default();
            found.push(Fixture {
                tool: folder.file_name().unwrap().to_string_lossy().into_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
                typed: shlex::split(typed).unwrap(),
                path,
            });
        }
    }
    assert!(!found.is_empty(), "no examples under {}", home.display());
    found
}
