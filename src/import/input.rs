//! What is imported, and in what form.

use std::path::PathBuf;

/// The most text that is read of one file.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// What is imported.
#[derive(Clone)]
pub struct Wishes<'a> {
    /// What it is called in messages and comments: the file, or `the command line`.
    pub name: String,
    /// The file's text.
    pub text: Option<String>,
    /// The words of a command; with a text, the command that the parameter file is for.
    pub command: Vec<String>,
    /// The name of the text's format; `auto`: by its look.
    pub format: String,
    /// Whether the plan holds short phases for a first look beside the full ones.
    pub quick: bool,
    /// The model, in place of what the text names.
    pub model: Option<String>,
    /// The server's base address, in place of what the text names.
    pub url: Option<String>,
    /// Which entries of the text are imported, where it has many; `*` stands for any part of a name.
    pub entries: Vec<String>,
    /// The folder that the plan will lie in: files that it names lie there or below.
    pub folder: PathBuf,
    /// Gives the text of a file that is named in what is imported, of at most [`MOST_BYTES`].
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}
