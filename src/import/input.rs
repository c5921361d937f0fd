//! What is imported, and in what form.

use std::path::PathBuf;

use clap::ValueEnum;

/// The most text that is read of one file.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// In what form something is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// By its look.
    Auto,
    /// The closed-loop JSON configuration (`endpoints`, `models`, `scenarios`, `batch_sizes`, …).
    ClosedLoop,
    /// Command lines of `vllm bench serve`, `benchmark_serving.py` and `vllm bench sweep`.
    VllmBench,
    /// A parameter file of `vllm bench sweep`.
    VllmSweepParams,
}

/// What is imported.
pub struct Wishes<'a> {
    /// What it is called in messages and comments: the file, or `the command line`.
    pub name: String,
    /// The file's text.
    pub text: Option<String>,
    /// The words of a command; with a text, the command that the parameter file is for.
    pub command: Vec<String>,
    /// In what form the text is.
    pub format: Format,
    /// The model, where nothing else names one.
    pub model: Option<String>,
    /// The server, where nothing else names one.
    pub url: Option<String>,
    /// The folder that the plan will lie in: files that it names lie there or below.
    pub folder: PathBuf,
    /// Gives the text of a file that is named in what is imported, of at most [`MOST_BYTES`].
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}
