//! What a format brings along to be imported: how it is known, and how it becomes jobs.

use super::draft::{Draft, Field};
use super::error::ImportError;
use super::input::Wishes;
use super::job::{Around, Job};
use super::notes::Notes;
use super::shell::Command;
use super::tree::{At, Item, Known};

/// A format of another tool.
pub(super) struct Importer {
    /// Its name for `--format`.
    pub name: &'static str,
    /// What it is called in the plan's first line.
    pub title: &'static str,
    /// What is taken, for the message that nothing is known.
    pub takes: &'static str,
    /// How its files are read, where it has some.
    pub file: Option<FileReader>,
    /// How its commands are read, where it has some.
    pub command: Option<CommandReader>,
}

/// Reads a file.
pub(super) struct FileReader {
    /// Whether a file is one of this format. It looks at the tree by `peek`, `has` and `keys`, and takes nothing.
    pub is: fn(&Input) -> bool,
    /// What becomes of fields that `read` does not read: the reason that is listed for each.
    pub known: &'static [Known],
    /// Its plan. What nobody took of the tree afterwards is listed, by `known` or as not known.
    pub read: fn(&Input, &Context) -> Result<Draft, ImportError>,
}

/// Reads a command.
pub(super) struct CommandReader {
    /// The words behind the program's name, where a command starts this program.
    pub arguments: fn(&[String]) -> Option<&[String]>,
    /// What it measures: none where it measures nothing that can be measured here, which is listed.
    pub read: fn(&Asked, &Context) -> Result<Vec<Job>, ImportError>,
}

/// A file that is imported.
pub(super) struct Input<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Its values, where it is written in YAML, JSON or TOML; else it holds commands, or something of its own.
    pub tree: Option<Item>,
}

impl<'a> Input<'a> {
    /// The file's table.
    pub(super) fn root(&'a self, context: &Context<'a>) -> Result<At<'a>, ImportError> {
        let none = || ImportError::unknown(self.name, "not a table in YAML, JSON or TOML");
        self.tree.as_ref().map(|tree| tree.at(context.notes)).ok_or_else(none)
    }
}

/// A command that is imported.
pub(super) struct Asked<'a> {
    /// The file and line, for errors.
    pub place: String,
    /// The whole command.
    pub command: &'a Command,
    /// The words behind the program's name.
    pub words: &'a [String],
    /// What is known from `import --model` and `--url`, and from a server that a script started before.
    pub around: &'a Around,
}

/// What goes along.
pub(super) struct Context<'a> {
    /// What was typed.
    pub wishes: &'a Wishes<'a>,
    /// What is listed, and what must not be repeated.
    pub notes: &'a Notes<'a>,
    /// The plan's name, where the source says no other.
    pub name: Field,
    /// The formats that are known, for files that wrap others.
    pub formats: &'static [&'static Importer],
}

impl Context<'_> {
    /// Where a command stands, for errors.
    pub(super) fn place(&self, command: &Command) -> String {
        self.place_of(command.line)
    }

    /// A line of the file, from 1, for errors; 0: the file.
    pub(super) fn place_of(&self, line: usize) -> String {
        let file = &self.wishes.name;
        if line == 0 { file.clone() } else { format!("{file}:{line}") }
    }

    /// What is known before any command or file says more.
    pub(super) fn around(&self) -> Around {
        let given =
            |value: &Option<String>, option: &str| value.clone().map(|value| (value, format!("import {option}")));
        let url = given(&self.wishes.url, "--url");
        let folder = self.wishes.folder.clone();
        Around { model: given(&self.wishes.model, "--model"), url, folder, ..Around::default() }
    }
}
