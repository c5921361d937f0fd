//! Groups elements into job arrays, and creates the sbatch script of each array.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::plan::model::Resources;
use crate::submit::{Element, Wait, still_waits};
use crate::units::Nanos;
use crate::units::text::quoted;

/// Maximum number of times an element is requeued before a user has to investigate.
const RESTARTS: u32 = 3;
/// Maximum time between the signal to stop and the end of a job's time limit, in seconds.
const NOTICE: u64 = 120;

/// The command in the scripts, and the paths that it uses.
#[derive(Debug, Clone)]
pub struct Call {
    /// The program.
    pub program: PathBuf,
    /// The folder in which jobs start.
    pub folder: PathBuf,
    /// The plan's file, relative to `folder`.
    pub plan: PathBuf,
    /// The results folder, relative to `folder`.
    pub results: PathBuf,
    /// Other flags of `run`, quoted for a shell, each with a leading blank.
    pub flags: String,
    /// The name of the jobs.
    pub job_name: String,
    /// The folder of the submission, as an absolute path.
    pub submission: PathBuf,
}

/// Elements with the same resources and dependencies, which form one job array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The positions of the elements.
    pub elements: Vec<usize>,
    /// The elements that the array depends on.
    pub waits: BTreeMap<usize, Wait>,
}

/// Returns the arrays of the elements to submit, each after its dependencies. A dependency that is
/// neither submitted nor in the queue is replaced by its own dependencies.
pub fn arrays(
    elements: &[Element],
    is_wanted: &dyn Fn(usize) -> bool,
    is_queued: &dyn Fn(usize) -> bool,
) -> Vec<Array> {
    let waits = still_waits(elements, &|at| is_wanted(at) || is_queued(at));
    let mut arrays: Vec<Array> = Vec::new();
    for (at, own) in waits.into_iter().enumerate().filter(|(at, _)| is_wanted(*at)) {
        let needs = &elements[at].resources;
        let same = |array: &&mut Array| array.waits == own && elements[array.elements[0]].resources == *needs;
        match arrays.iter_mut().find(same) {
            Some(array) => array.elements.push(at),
            None => arrays.push(Array { elements: vec![at], waits: own }),
        }
    }
    arrays
}

impl Array {
    /// Returns the script of the array with this number, from 1.
    pub fn script(&self, number: usize, elements: &[Element], call: &Call) -> String {
        let own = || self.elements.iter().map(|at| &elements[*at]);
        let Some(first) = own().next() else { return String::new() };
        let parts: Vec<String> = own().map(|element| quoted(&element.part.name)).collect();
        let only: Vec<String> = own().map(|element| quoted(&element.only().unwrap_or_default())).collect();
        let names: Vec<String> =
            own().enumerate().map(|(at, element)| format!("#   {at}  {}", element.name())).collect();
        let mut lines = vec!["#!/bin/bash".to_owned()];
        lines.push(format!(
            "# Written by sweepline {} submit. The elements of this job array:",
            env!("CARGO_PKG_VERSION")
        ));
        lines.extend(names.into_iter().map(|name| name.replace(char::is_control, " ")));
        lines
            .extend(self.options(number, &first.resources, call).into_iter().map(|option| format!("#SBATCH {option}")));
        lines.push(String::new());
        lines.push(format!("parts=({})", parts.join(" ")));
        lines.push(format!("only=({})", only.join(" ")));
        let exit = call.submission.join(format!("job-{number}-")).display().to_string();
        let run = format!(
            "{} run {} --results {} --part \"${{parts[$SLURM_ARRAY_TASK_ID]}}\"",
            quoted(&call.program.to_string_lossy()),
            quoted(&call.plan.to_string_lossy()),
            quoted(&call.results.to_string_lossy()),
        );
        lines.push(
            BODY.replace("{exit}", &quoted(&exit))
                .replace("{run}", &run)
                .replace("{flags}", &call.flags)
                .replace("{restarts}", &RESTARTS.to_string()),
        );
        lines.join("\n")
    }

    /// Returns the files for an element's exit code and output.
    pub fn files(submission: &Path, number: usize, task: usize) -> (PathBuf, PathBuf) {
        let file = |ending: &str| submission.join(format!("job-{number}-{task}.{ending}"));
        (file("exit"), file("log"))
    }

    fn options(&self, number: usize, resources: &Resources, call: &Call) -> Vec<String> {
        // In the path of the log, sbatch interprets a percent sign as the start of a pattern.
        let folder = call.submission.display().to_string().replace('%', "%%");
        let log = format!("{folder}/job-{number}-%a.log");
        let mut options = vec![
            format!("--job-name={}", call.job_name),
            format!("--array=0-{}", self.elements.len() - 1),
            format!("--chdir={}", quoted(&call.folder.to_string_lossy())),
            format!("--output={}", quoted(&log)),
            "--open-mode=append".to_owned(),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={}", resources.cpus()),
            format!("--mem={}M", resources.memory().mebibytes()),
        ];
        options.extend(resources.gpus.filter(|gpus| *gpus > 0).map(|gpus| format!("--gres=gpu:{gpus}")));
        options.extend(resources.time.map(|time| format!("--time={}", days(time))));
        options.extend(resources.partition.as_ref().map(|partition| format!("--partition={partition}")));
        options.extend(resources.account.as_ref().map(|account| format!("--account={account}")));
        options.extend(resources.slurm.0.iter().cloned());
        let notice = resources.time.map_or(NOTICE, |time| (seconds(time) / 4).min(NOTICE));
        options.push("--requeue".to_owned());
        options.push(format!("--signal=B:TERM@{notice}"));
        options
    }
}

fn seconds(time: Nanos) -> u64 {
    time.0.div_ceil(1_000_000_000)
}

/// Formats a time for sbatch: days-hours:minutes:seconds.
fn days(time: Nanos) -> String {
    let seconds = seconds(time);
    format!("{}-{:02}:{:02}:{:02}", seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60)
}

/// The commands of every element: call `run`, write its exit code to a file for `status`, and return an exit
/// code to Slurm.
const BODY: &str = r#"
exit_file={exit}"$SLURM_ARRAY_TASK_ID.exit"
rm -f "$exit_file"
echo "== job ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID on ${SLURMD_NODENAME:-$(hostname)}, restart ${SLURM_RESTART_COUNT:-0}, $(date -u +%FT%TZ)"
filter=()
[ -z "${only[$SLURM_ARRAY_TASK_ID]}" ] || filter=(--only "${only[$SLURM_ARRAY_TASK_ID]}")
{run} "${filter[@]}" --progress plain{flags} &
run=$!
# At the end of the job's time or a preemption, the run stops cleanly, and committed runs are kept.
trap 'kill -TERM "$run" 2> /dev/null' TERM INT
while :; do
  wait "$run"
  code=$?
  # A signal ends `wait` with 143; the run continues until it has stopped.
  { [ "$code" -eq 143 ] && kill -0 "$run" 2> /dev/null; } || break
done
echo "$code" > "$exit_file"
case $code in
  # All runs are done. 3: some are invalid or given up; `sweepline status` lists them, and dependents start as in one process.
  0 | 3) exit 0 ;;
  # 6: something is missing that may exist at the next try. 130, 143: stopped before it was done.
  6 | 130 | 143)
    # Not $SLURM_JOB_ID: for the last element of an array it is the whole array.
    job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    state=$(squeue --noheader --jobs="$job" --format=%T)
    if [ "$state" = RUNNING ] && [ "${SLURM_RESTART_COUNT:-0}" -lt {restarts} ]; then
      scontrol requeue "$job"
    fi
    ;;
esac
exit "$code"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_sbatch_takes_them() {
        assert_eq!(days(Nanos::from_secs(90)), "0-00:01:30");
        assert_eq!(days(Nanos::from_secs(100_000)), "1-03:46:40");
    }
}
