//! The settings of one model, looked up as in LoadGen: the most specific key wins, and the file
//! overrides LoadGen's own settings. Unread settings are listed.

use std::cell::RefCell;

use super::conf::Setting;
use super::known::{Benchmark, SCENARIOS, default};
use crate::import::notes::Notes;

/// The words with which comments refer to LoadGen's own settings.
pub(super) const OWN: &str = "LoadGen's mlperf.conf";

/// A number and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    /// The number.
    pub(super) value: f64,
    /// The number, as written.
    pub(super) text: String,
    /// The origin.
    pub(super) origin: String,
    /// The line; 0 if the setting is LoadGen's own.
    pub(super) line: usize,
}

/// How a setting was handled.
#[derive(Debug, Clone, PartialEq)]
enum Fate {
    Unread,
    /// Overridden by a more specific key.
    Behind(String),
    Taken,
}

/// The settings of one model.
pub(super) struct Settings<'a> {
    /// The model's name in LoadGen, or `*`.
    pub(super) model: &'a str,
    /// The model's benchmark, if it is a benchmark of language models.
    pub(super) benchmark: Option<&'static Benchmark>,
    all: Vec<Setting>,
    fates: RefCell<Vec<Fate>>,
    notes: &'a Notes<'a>,
}

impl<'a> Settings<'a> {
    /// Returns the settings of a file for this model.
    pub(super) fn new(
        all: Vec<Setting>,
        model: &'a str,
        benchmark: Option<&'static Benchmark>,
        notes: &'a Notes<'a>,
    ) -> Settings<'a> {
        let fates = RefCell::new(vec![Fate::Unread; all.len()]);
        Settings { model, benchmark, all, fates, notes }
    }

    /// Returns the value from the file; `None` if the file does not set it.
    pub(super) fn said(&self, scenario: &str, name: &str) -> Option<Said> {
        // LoadGen's `lookupkv` looks keys up in this order.
        let keys = [(self.model, scenario), ("*", scenario), (self.model, "*"), ("*", "*")];
        let mut found: Vec<usize> = Vec::new();
        for (model, scenario) in keys {
            let at = self.all.iter().position(|one| one.is_of(model, scenario, name));
            found.extend(at.filter(|at| !found.contains(at)));
        }
        let (first, others) = found.split_first()?;
        let mut fates = self.fates.borrow_mut();
        let winner = &self.all[*first];
        for other in others {
            if fates[*other] == Fate::Unread {
                fates[*other] = Fate::Behind(winner.key());
            }
        }
        fates[*first] = Fate::Taken;
        let origin = format!("{} = {}", winner.key(), winner.text);
        Some(Said { value: winner.value, text: winner.text.clone(), origin, line: winner.line })
    }

    /// Returns the value from the file, or else LoadGen's own value; `None` if there is neither.
    pub(super) fn value(&self, scenario: &str, name: &str) -> Option<Said> {
        self.said(scenario, name).or_else(|| {
            let value = default(self.benchmark, scenario, name)?;
            Some(Said { value, text: value.to_string(), origin: format!("{OWN}, {name} = {value}"), line: 0 })
        })
    }

    /// Lists a setting that has no counterpart in a plan.
    pub(super) fn missing(&self, said: &Said, why: &str) {
        self.notes.missing(&said.origin, why, said.line);
    }

    /// Lists a setting that the plan does not need.
    pub(super) fn needless(&self, said: &Said, why: &str) {
        self.notes.needless(&said.origin, why, said.line);
    }

    /// Lists a setting that is in the plan with a different meaning.
    pub(super) fn differs(&self, said: &Said, why: &str) {
        self.notes.differs(&said.origin, why, said.line);
    }

    /// Lists unread settings. `scenarios` are the imported scenarios.
    pub(super) fn list_rest(&self, scenarios: &[&str]) {
        for (setting, fate) in self.all.iter().zip(self.fates.borrow().iter()) {
            let what = format!("{} = {}", setting.key(), setting.text);
            match fate {
                Fate::Taken => {}
                Fate::Behind(key) => {
                    self.notes.needless(&what, &format!("`{key}` is more specific and wins"), setting.line);
                }
                Fate::Unread => self.unread(&what, setting, scenarios),
            }
        }
    }

    fn unread(&self, what: &str, setting: &Setting, scenarios: &[&str]) {
        let is_other_model = setting.model != "*" && setting.model != self.model;
        let is_other_scenario = setting.scenario != "*" && !scenarios.contains(&setting.scenario.as_str());
        if setting.scenario != "*" && !SCENARIOS.contains(&setting.scenario.as_str()) {
            return self.notes.missing(what, "unknown scenario in LoadGen", setting.line);
        }
        if is_other_model || is_other_scenario {
            let model = if is_other_model { &setting.model } else { self.model };
            let end = if setting.scenario == "*" { String::new() } else { format!(".{}", setting.scenario) };
            let why = format!("not requested: `--entry {model}{end}` imports it");
            return self.notes.needless(what, &why, setting.line);
        }
        match reason(&setting.name) {
            Some((true, why)) => self.notes.missing(what, why, setting.line),
            Some((false, why)) => self.notes.needless(what, why, setting.line),
            None => self.notes.missing(what, "LoadGen does not read this key here", setting.line),
        }
    }
}

/// Returns whether a setting that is not in the plan is lost, and the reason why it is not in the plan;
/// `None` if LoadGen does not read the key.
fn reason(name: &str) -> Option<(bool, &'static str)> {
    const SEED: &str = "one seed determines lengths, texts and arrivals here: `seed` of the plan";
    const ACCURACY: &str =
        "accuracy is not measured; send the data set with `data: { file: … }` and judge the stored texts";
    Some(match name {
        "performance_sample_count_override" | "performance_sample_count" => {
            (false, "prompts are never repeated here; `data: { file: … }` sends a whole data set")
        }
        "sample_concatenate_permutation" => (false, "prompts are never repeated here, so samples have no order"),
        "performance_issue_unique" => (false, "prompts are never repeated here"),
        "performance_issue_same_index" => (false, "the scenario's only prompt has no index"),
        "qsl_rng_seed" | "sample_index_rng_seed" | "schedule_rng_seed" => (false, SEED),
        "print_timestamps" => (false, "every run stores its time"),
        "accuracy_sample_count_override" | "accuracy_log_rng_seed" | "accuracy_log_probability" => (true, ACCURACY),
        "accuracy_log_sampling_target" => (true, ACCURACY),
        "test05" | "test05_qsl_rng_seed" | "test05_sample_index_rng_seed" | "test05_schedule_rng_seed" => {
            (true, "the audit with other seeds: run the plan again with another `seed`")
        }
        "infer_token_latencies" | "token_latency_scaling_factor" => {
            (true, "token latencies are measured, not inferred from the whole response")
        }
        "coalesce_queries" => (false, "each request is sent at its scheduled time"),
        "target_duration" => (false, "LoadGen no longer reads this key: `min_duration` applies"),
        _ => return None,
    })
}
