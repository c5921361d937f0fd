//! Records of submissions. Each call of `submit` writes one file next to its scripts. `status` and `cancel`
//! use this file to find the jobs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::Moment;
use crate::units::regular_file;

/// The version of the file's format.
const FORMAT: u32 = 1;
/// Maximum size of a record, in bytes.
const MOST_BYTES: u64 = 256 << 20;
/// The name of the file with a record.
const NAME: &str = "submission.json";

/// The record of one call of `submit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The version of the file's format.
    pub format: u32,
    /// The plan's file, as an absolute path.
    pub plan: PathBuf,
    /// The cluster's kind: slurm or kubernetes.
    pub on: Cluster,
    /// Time of the submission.
    pub submitted: Moment,
    /// The name of the jobs in the queue.
    pub job_name: String,
    /// The submitted elements. Each is listed before the elements that depend on it.
    pub elements: Vec<Submitted>,
}

/// The cluster's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Cluster {
    /// Slurm: job arrays submitted with sbatch.
    Slurm,
    /// Kubernetes: Jobs applied with kubectl.
    Kubernetes,
}

/// A submitted element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// The element's name.
    pub name: String,
    /// The element's part.
    pub part: String,
    /// The element's job: `12_0` for element 0 of Slurm's array 12; the name of the Job on
    /// Kubernetes.
    pub job: String,
    /// The file with the job's output; `None` on Kubernetes, where pods keep the output.
    pub log: Option<PathBuf>,
    /// The file in which the job's script writes the exit code of the last try; `None` on Kubernetes.
    pub exit: Option<PathBuf>,
    /// The short ids of the runs that were open at submission.
    pub runs: Vec<String>,
    /// The jobs that must have ended, successfully or not, before this job starts.
    pub waits_for: Vec<String>,
    /// The jobs that must have ended successfully before this job starts.
    pub needs: Vec<String>,
    /// The file that defines the job: a script or a manifest.
    pub file: PathBuf,
    /// Whether the job has been submitted to the cluster. On Kubernetes, `status --advance` submits jobs
    /// that depend on others.
    pub is_handed_over: bool,
    /// Whether the job was cancelled by `cancel`.
    #[serde(default)]
    pub is_cancelled: bool,
}

impl Submission {
    /// Creates an empty record with the current time.
    pub fn new(plan: PathBuf, on: Cluster, job_name: String) -> Submission {
        Submission { format: FORMAT, plan, on, submitted: Moment::now(), job_name, elements: Vec::new() }
    }

    /// Writes the record atomically into its folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let beside = folder.join(format!("{NAME}.new"));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(&beside, text)?;
        fs::rename(beside, folder.join(NAME))
    }
}

/// Returns the submissions of a plan with their folders, oldest first. A folder without a record is skipped;
/// it comes from a `submit` that was killed before it had submitted a job.
pub fn submissions(folder: &Path, plan: &Path) -> io::Result<Vec<(PathBuf, Submission)>> {
    let mut all = Vec::new();
    for number in numbers(folder)? {
        let own = folder.join(named(number));
        let path = own.join(NAME);
        let text = match regular_file::read_text(&path, MOST_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        let read: Submission = serde_json::from_str(&text)
            .map_err(|error| io::Error::other(format!("{} is damaged: {error}", path.display())))?;
        if read.format > FORMAT {
            return Err(io::Error::other(format!("{} was written by a later version of sweepline", path.display())));
        }
        all.extend((read.plan == plan).then_some((own, read)));
    }
    Ok(all)
}

/// Creates the folder of the next submission.
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

/// Returns the number of the submission in this folder.
pub fn number_of(folder: &Path) -> u32 {
    folder.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or_default()
}

fn named(number: u32) -> String {
    format!("{number:04}")
}

/// Returns the numbers of the submission folders, in order.
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
