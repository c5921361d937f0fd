//! Converts `user.conf` and `mlperf.conf` of MLPerf Inference's LoadGen. Each scenario of one model becomes a
//! sweep. Server is an open loop with latency limits, Offline keeps the samples of its single query in
//! flight, and SingleStream is sequential. Source: github.com/mlcommons/inference at b66003e1 (August 2026).

mod choice;
mod conf;
mod known;
mod scenario;
mod settings;

use super::draft::{Draft, Field, Section};
use super::error::ImportError;
use super::importer::{Context, FileReader, Importer, Input};
use super::text::{list, name_of, text_value};
use choice::Choice;
use settings::Settings;

/// The importer for configurations of LoadGen.
pub(super) const IMPORTER: Importer = Importer {
    name: "mlperf",
    title: "MLPerf LoadGen configuration",
    takes: "`user.conf` and `mlperf.conf` of MLPerf Inference",
    file: Some(FileReader { is: |input| conf::is_conf(input.text), known: &[], read }),
    command: None,
};

/// Number of prompt tokens until the user specifies the data set, taken from the built-in scenario.
const PROMPT: u32 = 50;

/// Returns the plan of a configuration.
fn read(input: &Input, context: &Context) -> Result<Draft, ImportError> {
    let conf = conf::read(input.name, input.text, context.notes)?;
    let choice = Choice::of(&conf, context.wishes)?;
    let settings = Settings::new(conf, &choice.model, choice.benchmark, context.notes);
    let mut draft = Draft::default();
    head(&mut draft, &choice);
    seed(&mut draft, &settings, &choice);
    let endpoint = endpoint(&mut draft, context)?;
    let model = model(&mut draft, &choice);
    phases(&mut draft);
    for scenario in &choice.scenarios {
        let content = content(&mut draft, &settings, &choice, scenario, context);
        let is_interactive = *scenario == "Server" && choice.model.ends_with("-interactive");
        let mut made =
            scenario::made(&settings, scenario, if is_interactive { "interactive" } else { named(scenario) });
        let names = [("endpoint", &endpoint), ("model", &model), ("scenario", &content)];
        let own = names.map(|(key, name)| Field::new(key, list(std::slice::from_ref(name)), ""));
        made.sweep.matrix = own.into_iter().chain(made.sweep.matrix).collect();
        draft.sweeps.push(made.sweep);
        draft.sections.extend(made.slo);
    }
    settings.list_rest(&choice.scenarios);
    Ok(draft)
}

/// Returns the name of the sweep for a LoadGen scenario.
fn named(scenario: &str) -> &'static str {
    match scenario {
        "Server" => "server",
        "Offline" => "offline",
        "SingleStream" => "single-stream",
        _ => "multi-stream",
    }
}

fn head(draft: &mut Draft, choice: &Choice) {
    let name = format!("mlperf-{}", name_of(choice.title(), "benchmark"));
    draft.head.push(Field::new("name", text_value(&name), choice.origin.clone()));
    let data = choice.benchmark.map_or_else(|| "its data set".to_owned(), |one| one.data.to_owned());
    let notes = format!(
        "LoadGen's file names no data set ({data}). Until a scenario sends it (data: {{ file: … }}), all prompts \
         have one length, and this plan's results compare only with each other."
    );
    draft.head.push(Field::new("notes", text_value(&notes), "missing from LoadGen's file"));
}

/// Adds the seed of arrivals to the plan.
fn seed(draft: &mut Draft, settings: &Settings, choice: &Choice) {
    let scenario = choice.scenarios.first().copied().unwrap_or("Server");
    let said = settings.said(scenario, "schedule_rng_seed");
    let Some(said) = said else { return };
    match said.text.parse::<u64>() {
        Ok(seed) => draft.head.push(Field::new("seed", seed.to_string(), said.origin)),
        Err(_) => settings.missing(&said, "a seed must be a whole number of at most 64 bits"),
    }
}

fn endpoint(draft: &mut Draft, context: &Context) -> Result<String, ImportError> {
    let (url, origin) = match &context.wishes.url {
        None => ("http://127.0.0.1:8000/v1", "LoadGen's file names no server: --url names yours"),
        Some(url) => (url.as_str(), "import --url"),
    };
    let fields = vec![
        Field::new("url", text_value(url), origin),
        Field::new("engine", "openai", "not set: any server; write the actual engine, so that ignore_eos is sent"),
        Field::new("api", "completions", "not set: the reference implementations send rendered prompts"),
    ];
    Ok(draft.endpoints.add("server", fields))
}

fn model(draft: &mut Draft, choice: &Choice) -> String {
    let (id, origin) = &choice.id;
    draft.models.add(choice.title(), vec![Field::new("id", text_value(id), origin.clone())])
}

/// Adds a scenario with the content of a LoadGen scenario to the plan, and returns the name of the
/// added scenario.
fn content(draft: &mut Draft, settings: &Settings, choice: &Choice, scenario: &str, context: &Context) -> String {
    let same = settings.said(scenario, "performance_issue_same").filter(|said| {
        let is_same = said.value != 0.0;
        if !is_same {
            settings.needless(said, "prompts are never repeated here either");
        }
        is_same
    });
    let (base, origin) = match &same {
        Some(said) => ("A1", format!("{}: the same prompt every time", said.origin)),
        None => ("B1", "prompts that differ, of one length: LoadGen's file names no data set".to_owned()),
    };
    let data = choice.benchmark.map_or("its data set", |one| one.data);
    context.notes.differs(
        &format!("prompts of {scenario}"),
        &format!(
            "LoadGen's file does not contain {data}: prompts of {PROMPT} tokens are placeholders until `data: {{ \
                  file: … }}` of the scenario sends it"
        ),
        0,
    );
    let stands_in = "placeholder: LoadGen's file has no length; `data: { file: … }` sends the data set instead";
    let mut fields = vec![Field::new("base", base, origin), Field::new("prompt_tokens", PROMPT.to_string(), stands_in)];
    if let Some(output) = choice.benchmark.and_then(|one| one.output) {
        let origin = "tokens per sample expected by MLPerf's rules";
        fields.push(Field::new("output_tokens", output.to_string(), origin));
    }
    draft.scenarios.add(if same.is_some() { "same-prompt" } else { "prompts" }, fields)
}

fn phases(draft: &mut Draft) {
    let note = "LoadGen measures from its first query to its last response. Here, the load first rises (fill) and \
                settles (stabilize), and it is kept up while the measured requests end (drain). These are \
                sweepline's defaults.";
    let fields = [("fill", "30s"), ("stabilize", "60s"), ("drain", "30s")];
    let fields = fields.map(|(key, value)| Field::new(key, value, "default of sweepline")).to_vec();
    draft.sections.push(Section { key: "phases", notes: vec![note.to_owned()], fields, ..Section::default() });
}
