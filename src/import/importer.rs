//! The parts of an importer: how a format is recognized, and how it becomes jobs.

use super::draft::{Draft, Field};
use super::error::ImportError;
use super::input::Wishes;
use super::job::{Around, Job};
use super::notes::Notes;
use super::shell::Command;
use super::tree::{At, Item, Known};

/// A format of another tool.
pub(super) struct Importer {
    /// The name of the format for `--format`.
    pub name: &'static str,
    /// The name of the format in the plan's first line.
    pub title: &'static str,
    /// The accepted input, described for the message about unknown input.
    pub takes: &'static str,
    /// The reader of the format's files, if it has files.
    pub file: Option<FileReader>,
    /// The reader of the format's commands, if it has commands.
    pub command: Option<CommandReader>,
}

/// A reader of files.
pub(super) struct FileReader {
    /// Whether a file has this format. It inspects the tree with `peek`, `has` and `keys`, and does not mark
    /// anything as read.
    pub is: fn(&Input) -> bool,
    /// The fields that `read` does not read, each with the reason that is listed for it.
    pub known: &'static [Known],
    /// Returns the plan. Fields of the tree that remain unread are listed, with their reason in `known` or as
    /// unknown.
    pub read: fn(&Input, &Context) -> Result<Draft, ImportError>,
}

/// A reader of commands.
pub(super) struct CommandReader {
    /// Returns the words after the program's name; `None` if the command does not start this program.
    pub arguments: fn(&[String]) -> Option<&[String]>,
    /// Returns the jobs of the command. If the command contains nothing that can be measured here, the list
    /// is empty and the reason is listed in the notes.
    pub read: fn(&Asked, &Context) -> Result<Vec<Job>, ImportError>,
}

/// A file that is imported.
pub(super) struct Input<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The text of the file.
    pub text: &'a str,
    /// The values in the file; `None` if the file is not written in YAML, JSON or TOML, because it contains
    /// commands or has its own format.
    pub tree: Option<Item>,
}

impl<'a> Input<'a> {
    /// Returns the table in the file.
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
    /// The words after the program's name.
    pub words: &'a [String],
    /// The context: `import --model` and `--url`, and the server that a script started before.
    pub around: &'a Around,
}

/// The inputs and outputs that all parts of an import share.
pub(super) struct Context<'a> {
    /// The input from the command line.
    pub wishes: &'a Wishes<'a>,
    /// The notes, and the secrets that must not be shown.
    pub notes: &'a Notes<'a>,
    /// The plan's name, if the source does not contain one.
    pub name: Field,
    /// The known formats, for files that contain files of other formats.
    pub formats: &'static [&'static Importer],
}

impl Context<'_> {
    /// Returns the place of a command, for errors.
    pub(super) fn place(&self, command: &Command) -> String {
        self.place_of(command.line)
    }

    /// Returns the place of a line of the file, for errors. Lines are counted from 1; 0 stands for the whole
    /// file.
    pub(super) fn place_of(&self, line: usize) -> String {
        let file = &self.wishes.name;
        if line == 0 { file.clone() } else { format!("{file}:{line}") }
    }

    /// Returns the context before any command or file adds to it.
    pub(super) fn around(&self) -> Around {
        let given =
            |value: &Option<String>, option: &str| value.clone().map(|value| (value, format!("import {option}")));
        let url = given(&self.wishes.url, "--url");
        let folder = self.wishes.folder.clone();
        Around { model: given(&self.wishes.model, "--model"), url, folder, ..Around::default() }
    }
}
