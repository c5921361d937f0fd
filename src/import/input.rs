//! The input of an import, and its format.

use std::path::PathBuf;

/// The maximum size of one file, in bytes.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The input of an import.
#[derive(Clone)]
pub struct Wishes<'a> {
    /// The name of the input in messages and comments: the file, or `the command line`.
    pub name: String,
    /// The text of the file.
    pub text: Option<String>,
    /// The words of a command. If there is also a text, this text is a file that belongs to the command, such
    /// as its parameter file.
    pub command: Vec<String>,
    /// The name of the text's format; `auto` detects it.
    pub format: String,
    /// Whether the plan contains short phases for a first look in addition to the full ones.
    pub quick: bool,
    /// The model, instead of the one in the text.
    pub model: Option<String>,
    /// The server's base address, instead of the one in the text.
    pub url: Option<String>,
    /// The entries to import, if the text has several; `*` matches any part of a name.
    pub entries: Vec<String>,
    /// The plan's folder. Files that the plan names are in this folder or below.
    pub folder: PathBuf,
    /// Reads a file that the input names, and returns its text of at most [`MOST_BYTES`] bytes, or the reason
    /// why it cannot be read.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}
