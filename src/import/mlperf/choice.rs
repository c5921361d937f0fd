//! Chooses a model and scenarios from a file, because a plan has one objective, which belongs to one
//! model.

use super::conf::Setting;
use super::known::{BENCHMARKS, Benchmark, SCENARIOS, named, of_path, other_of_path, sends};
use crate::import::error::ImportError;
use crate::import::input::Wishes;
use crate::import::text::one_line;

/// Maximum number of names listed in a message.
const MOST_NAMES: usize = 40;

/// The chosen model and scenarios.
pub(super) struct Choice {
    /// The model's name in LoadGen, or `*`.
    pub(super) model: String,
    /// The model's benchmark, if it is a benchmark of language models.
    pub(super) benchmark: Option<&'static Benchmark>,
    /// The chosen scenarios.
    pub(super) scenarios: Vec<&'static str>,
    /// The model's name on the server, and the origin of the name.
    pub(super) id: (String, String),
    /// The origin of the choice.
    pub(super) origin: String,
}

impl Choice {
    /// Chooses by `--entry`, by the file, by its folder, or by `--model`, in this order.
    pub(super) fn of(settings: &[Setting], wishes: &Wishes) -> Result<Choice, ImportError> {
        let models = models(settings);
        let (model, asked, origin) = model(&models, wishes)?;
        if let Some(sends) = sends(&model) {
            let what = format!("{model} sends {sends}; sweepline measures servers of language models");
            return Err(wrong(wishes, &what, "choose a language model with --entry"));
        }
        let benchmark = named(&model);
        let scenarios = match asked.is_empty() {
            false => asked,
            true => scenarios(settings, &model),
        };
        if scenarios.is_empty() {
            let what = format!("no key names a scenario of {model} (Server, Offline, SingleStream, MultiStream)");
            return Err(wrong(wishes, &what, &format!("name it: --entry {}.Server", shown(&model, benchmark))));
        }
        let id = match (&wishes.model, benchmark) {
            (Some(id), _) => (id.clone(), "import --model".to_owned()),
            (None, Some(one)) => {
                (one.id.to_owned(), format!("the model of MLPerf's {}: --model selects another", one.name))
            }
            (None, None) => {
                let what = format!(
                    "{model} is the name of a benchmark; the file does not contain the model's name on the server"
                );
                return Err(wrong(wishes, &what, "add --model ID"));
            }
        };
        // In a file, `*` stands for whichever benchmark is run.
        let model = benchmark.map_or(model, |one| one.name.to_owned());
        Ok(Choice { model, benchmark, scenarios, id, origin })
    }

    /// Returns the model's name in the plan.
    pub(super) fn title(&self) -> &str {
        match self.model.as_str() {
            "*" => self.id.0.rsplit('/').next().unwrap_or("model"),
            model => model,
        }
    }
}

fn shown(model: &str, benchmark: Option<&Benchmark>) -> String {
    benchmark.map_or_else(
        || if model == "*" { "llama2-70b".to_owned() } else { model.to_owned() },
        |one| one.name.to_owned(),
    )
}

fn wrong(wishes: &Wishes, what: &str, remedy: &str) -> ImportError {
    ImportError::shape(wishes.name.clone(), one_line(what), remedy)
}

/// Returns the benchmarks of language models, as text.
fn benchmarks() -> String {
    BENCHMARKS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ")
}

/// Returns the models in a file.
fn models(settings: &[Setting]) -> Vec<&str> {
    let mut models: Vec<&str> = Vec::new();
    for setting in settings {
        if setting.model != "*" && !models.contains(&setting.model.as_str()) {
            models.push(&setting.model);
        }
    }
    models
}

/// Returns the scenarios in a model's keys; if there are none, returns the scenarios in the keys for all
/// models.
fn scenarios(settings: &[Setting], model: &str) -> Vec<&'static str> {
    let of = |model: &str| -> Vec<&'static str> {
        let names = |scenario: &&&str| settings.iter().any(|one| one.model == model && one.scenario == **scenario);
        SCENARIOS.iter().filter(names).copied().collect()
    };
    Some(of(model)).filter(|found| !found.is_empty()).unwrap_or_else(|| of("*"))
}

/// Returns the model, the requested scenarios, and the origin of the choice.
fn model(models: &[&str], wishes: &Wishes) -> Result<(String, Vec<&'static str>, String), ImportError> {
    if !wishes.entries.is_empty() {
        return asked(models, wishes);
    }
    let by_id = |id: &String| BENCHMARKS.iter().find(|one| one.id == id || one.name == id);
    match (models, of_path(&wishes.name), wishes.model.as_ref()) {
        ([one], ..) => Ok(((*one).to_owned(), Vec::new(), "the model of the file's keys".to_owned())),
        ([], Some(one), _) => {
            Ok((one.name.to_owned(), Vec::new(), "the folder's name: --entry selects another".to_owned()))
        }
        ([], None, None) if other_of_path(&wishes.name).is_some() => {
            let (name, sends) = other_of_path(&wishes.name).unwrap_or_default();
            let what = format!("{name} sends {sends}; sweepline measures servers of language models");
            Err(wrong(wishes, &what, "import the file of a language model"))
        }
        ([], None, Some(id)) => {
            let name = by_id(id).map_or("*", |one| one.name);
            Ok((name.to_owned(), Vec::new(), "import --model".to_owned()))
        }
        ([], None, None) => {
            let names = benchmarks();
            let what = "its keys apply to all models (`*`), so the model and its latencies are unknown";
            Err(wrong(
                wishes,
                what,
                &format!("name the benchmark with --entry ({names}), or the model with --model ID"),
            ))
        }
        (several, ..) => {
            let what = format!("it has settings of {} models ({})", several.len(), names(several));
            Err(wrong(wishes, &what, "choose one with --entry MODEL, or MODEL.Server"))
        }
    }
}

fn names(models: &[&str]) -> String {
    let more = if models.len() > MOST_NAMES { ", …" } else { "" };
    format!("{}{more}", models.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", "))
}

/// Returns the models and scenarios of `--entry MODEL` and `--entry MODEL.SCENARIO`.
fn asked(models: &[&str], wishes: &Wishes) -> Result<(String, Vec<&'static str>, String), ImportError> {
    let mut model: Option<String> = None;
    let mut scenarios: Vec<&'static str> = Vec::new();
    for entry in &wishes.entries {
        let split = entry.rsplit_once('.');
        let scenario = split.and_then(|(_, end)| SCENARIOS.iter().find(|one| one.eq_ignore_ascii_case(end)).copied());
        let name = if scenario.is_some() { split.map_or("", |(name, _)| name) } else { entry };
        if !models.contains(&name) && named(name).is_none() && sends(name).is_none() {
            let known = if models.is_empty() { benchmarks() } else { names(models) };
            let what = format!("--entry {} is neither in it nor a benchmark of MLPerf", one_line(name));
            return Err(wrong(wishes, &what, &format!("write one of {known}")));
        }
        if model.as_ref().is_some_and(|known| known != name) {
            let what = "a plan has one objective, and these entries have several";
            return Err(wrong(wishes, what, "import each model separately"));
        }
        model = Some(name.to_owned());
        scenarios.extend(scenario.filter(|one| !scenarios.contains(one)));
    }
    let origin = format!("--entry {}", wishes.entries.join(", "));
    Ok((model.unwrap_or_else(|| "*".to_owned()), scenarios, one_line(&origin)))
}
