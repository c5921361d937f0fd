//! Checks of endpoints' resources on a cluster, whose values are passed to the scheduler unchanged.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::memory::Memory;
use crate::plan::text::tree::Step;
use crate::units::Nanos;

/// Options of sbatch that `submit` writes itself, each with the reason for this, or with the field of the
/// plan that sets the option.
const OWN: [(&str, &str); 14] = [
    ("--array", "array elements are derived from the plan's resources"),
    ("--dependency", "dependencies are derived from `after`"),
    ("--job-name", "`status` and `cancel` find jobs by this name"),
    ("--output", "logs are written next to the scripts"),
    ("--error", "logs are written next to the scripts"),
    ("--chdir", "jobs run where `submit` was called"),
    ("--signal", "the script needs this signal to shut down cleanly"),
    ("--wrap", "the script is the job"),
    ("--gpus", "write `gpus`"),
    ("--cpus-per-task", "write `cpus`"),
    ("--mem", "write `memory`"),
    ("--time", "write `time`"),
    ("--partition", "write `partition`"),
    ("--account", "write `account`"),
];

impl Checker<'_> {
    /// Checks the `resources` of an endpoint.
    pub(super) fn resources(&mut self, name: &str, endpoint: &Endpoint) {
        let Some(resources) = &endpoint.resources else { return };
        let at = steps!["endpoints", name, "resources"];
        self.outside(&at, "gpus", "0 to 1024", resources.gpus.filter(|gpus| *gpus > 1024));
        self.outside(&at, "cpus", "1 to 4096", resources.cpus.filter(|cpus| !(1..=4096).contains(cpus)));
        self.outside(&at, "memory", "1MiB or more", resources.memory.filter(|memory| *memory < Memory(1 << 20)));
        let least = Nanos::from_secs(60);
        self.outside(&at, "time", "1m or longer", resources.time.filter(|time| *time < least));
        self.word(&at, "partition", resources.partition.as_deref());
        self.word(&at, "account", resources.account.as_deref());
        for (index, option) in resources.slurm.0.iter().enumerate() {
            self.option(&[&at[..], &steps!["slurm", index]].concat(), option);
        }
        let Some(pod) = &resources.kubernetes else { return };
        let at = steps!["endpoints", name, "resources", "kubernetes"];
        let words = [
            ("image", &pod.image),
            ("claim", &pod.claim),
            ("secret", &pod.secret),
            ("service_account", &pod.service_account),
            ("gpu", &pod.gpu),
        ];
        words.into_iter().for_each(|(key, text)| self.word(&at, key, text.as_deref()));
    }

    /// Reports a name that is empty or contains whitespace.
    fn word(&mut self, table: &[Step], key: &str, text: Option<&str>) {
        let is_wrong = |text: &&str| text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control());
        let Some(text) = text.filter(is_wrong) else { return };
        let message = format!("`{key}` must be one word without spaces, not `{text}`");
        let at = [table, &steps![key]].concat();
        self.report(
            &at,
            Diagnostic::new(Code::WrongValue, message)
                .remedy(format!("write the {key} as one word, or remove the key")),
        );
    }

    fn option(&mut self, at: &[Step], option: &str) {
        let name = option.split('=').next().unwrap_or_default();
        if let Some((own, instead)) = OWN.iter().find(|(own, _)| *own == name) {
            let message = format!("`submit` writes {own} itself");
            return self.report(
                at,
                Diagnostic::new(Code::Contradiction, message).remedy(format!("remove the option: {instead}")),
            );
        }
        if !option.starts_with("--") || name.len() < 4 || option.contains(char::is_control) {
            let message = format!("`{option}` is not a single long option of sbatch");
            let remedy = "write it as in an #SBATCH line, like --constraint=nvlink";
            self.report(at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
        }
    }
}
