//! What was submitted: a file for each call of `submit`, beside its scripts, from which `status` and `cancel` know their jobs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::Moment;

/// The format of the file.
const FORMAT: u32 = 1;
/// Its name.
const NAME: &str = "submission.json";

/// What one call submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// Format of the file.
    pub format: u32,
    /// The plan's file, as a whole path.
    pub plan: PathBuf,
    /// The cluster's kind: slurm or kubernetes.
    pub on: Cluster,
    /// When.
    pub submitted: Moment,
    /// The name that its jobs have in the queue.
    pub job_name: String,
    /// What was submitted, each before what waits for it.
    pub elements: Vec<Submitted>,
}

/// What takes jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Cluster {
    /// Slurm: job arrays by sbatch.
    Slurm,
    /// Kubernetes: Jobs by kubectl.
    Kubernetes,
}

/// One element that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// The element's name.
    pub name: String,
    /// Its part.
    pub part: String,
    /// Its job: `12_0` for element 0 of Slurm's array 12; the name of the Job on Kubernetes.
    pub job: String,
    /// Where its output lies; none on Kubernetes, whose pods keep it.
    pub log: Option<PathBuf>,
    /// The file in which its script leaves the exit code of the last try; none on Kubernetes.
    pub exit: Option<PathBuf>,
    /// The short ids of the runs that it had to do.
    pub runs: Vec<String>,
    /// The jobs that it waits for.
    pub waits_for: Vec<String>,
    /// Those of them that have to end well.
    pub needs: Vec<String>,
    /// The file that makes the job: a script or a manifest.
    pub file: PathBuf,
    /// Whether the cluster has it. On Kubernetes `status --advance` hands over what waits for others.
    pub is_handed_over: bool,
    /// Whether `cancel` took it back.
    #[serde(default)]
    pub is_cancelled: bool,
}

impl Submission {
    /// An empty one of now.
    pub fn new(plan: PathBuf, on: Cluster, job_name: String) -> Submission {
        Submission { format: FORMAT, plan, on, submitted: Moment::now(), job_name, elements: Vec::new() }
    }

    /// Writes it into its folder, whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let beside = folder.join(format!("{NAME}.new"));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(&beside, text)?;
        fs::rename(beside, folder.join(NAME))
    }
}

/// The submissions of a plan, the oldest first, each with its folder. A folder without its file is one whose `submit` was killed before it had a job.
pub fn submissions(folder: &Path, plan: &Path) -> io::Result<Vec<(PathBuf, Submission)>> {
    let mut all = Vec::new();
    for number in numbers(folder)? {
        let own = folder.join(named(number));
        let path = own.join(NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        let read: Submission = serde_json::from_str(&text)
            .map_err(|error| io::Error::other(format!("{} is damaged: {error}", path.display())))?;
        if read.format > FORMAT {
            return Err(io::Error::other(format!("{} is of a later sweepline", path.display())));
        }
        all.extend((read.plan == plan).then_some((own, read)));
    }
    Ok(all)
}

/// Makes the folder of the next submission.
pub fn next_folder(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let mut number = numbers(folder)?.last().map_or(1, |last| last + 1);
    loop {
        let next = folder.join(named(number));
        match fs::create_dir(&next) {
            Ok(()) => return Ok(next),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The number of the submission in this folder.
pub fn number_of(folder: &Path) -> u32 {
    folder.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or_default()
}

fn named(number: u32) -> String {
    format!("{number:04}")
}

/// The numbers of the folders of submissions, in order.
fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
