//! The input of an import, and its format.

use std::path::PathBuf;

/// The maximum size of one file, in bytes.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The input of an import.
#[derive(Clone)]
pub struct Wishes<'a> {
    /// Its name in messages and comments: the file, or `the command line`.
    pub name: String,
    /// The file's text.
    pub text: Option<String>,
    /// The words of a command; with a text, the command that the parameter file belongs to.
    pub command: Vec<String>,
    /// The name of the text's format; `auto` detects it.
    pub format: String,
    /// Whether the plan contains short phases for a first look next to the full ones.
    pub quick: bool,
    /// The model, instead of the text's.
    pub model: Option<String>,
    /// The server's base address, instead of the text's.
    pub url: Option<String>,
    /// The entries of the text to import, if it has many; `*` matches any part of a name.
    pub entries: Vec<String>,
    /// The plan's folder: files that it names are there or below.
    pub folder: PathBuf,
    /// Returns the text of a file that the input names, of at most [`MOST_BYTES`].
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}
