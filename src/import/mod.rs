//! Configurations and command lines of other tools → a plan, with a comment behind every value that says where it came
//! from, and a list of what has no counterpart. What is read is never run. The text is checked as any plan before it is given
//! out, and holds no secret.

mod address;
mod bench;
mod closed_loop;
mod draft;
mod error;
mod fresh;
mod input;
mod json;
mod notes;
mod params;
mod secrets;
mod settings;
mod shell;
#[cfg(test)]
mod tests;
mod text;
mod write;

use std::path::Path;

use serde_json::Value;

use crate::plan::{self, Format as PlanFormat};

pub(crate) use draft::Listed;
pub(crate) use error::ImportError;
pub use fresh::fresh;
pub(crate) use fresh::{Fresh, FreshLoad, FreshSearch, FreshServer};
pub use input::Format;
pub(crate) use input::{MOST_BYTES, Wishes};

use bench::{Around, Job, Program};
use draft::{Draft, Field};
use json::json;
use notes::Notes;
use secrets::Secrets;
use shell::Command;
use text::{name_of, text_value};

/// A plan made of something else.
#[derive(Debug)]
pub struct Imported {
    /// The plan, YAML.
    pub plan: String,
    /// What is not in it, in whole sentences: what has no counterpart.
    pub missing: Vec<String>,
    /// What needs none.
    pub needless: Vec<String>,
}

/// Makes a plan.
pub fn import(wishes: &Wishes) -> Result<Imported, ImportError> {
    let secrets = Secrets::default();
    secrets.add_text(wishes.url.as_deref().unwrap_or_default());
    made(wishes, &secrets).map_err(|error| error.changed(|text| secrets.hide(text)))
}

fn made(wishes: &Wishes, secrets: &Secrets) -> Result<Imported, ImportError> {
    let name = &wishes.name;
    let (mut draft, tool) = match &wishes.text {
        Some(text) if text.len() > MOST_BYTES => {
            return Err(ImportError::TooLarge { name: name.clone(), bytes: text.len(), most: MOST_BYTES });
        }
        Some(text) => of_text(text, wishes, secrets)?,
        None => of_command(wishes, secrets)?,
    };
    let from = match &wishes.text {
        Some(_) => format!("{} ({tool})", secrets.hide(name)),
        None => format!("a command line ({tool})"),
    };
    // Before anything is cut to the length of a line, which would leave a part of a secret that nobody knows again.
    draft.change_comments(|text| secrets.hide(text));
    let plan = secrets.hide_in_plan(&write::text(&draft, &from));
    plan::parse(&wishes.folder.join("the imported plan"), &plan, PlanFormat::Yaml)
        .map_err(|errors| ImportError::Plan { name: name.clone(), errors: Box::new(errors) })?;
    let listed = draft::merged(&draft.listed);
    let sentences = |missing: bool| {
        listed.iter().filter(|one| one.is_missing == missing).map(|one| secrets.hide(&write::sentence(one))).collect()
    };
    Ok(Imported { missing: sentences(true), needless: sentences(false), plan })
}

fn of_text(text: &str, wishes: &Wishes, secrets: &Secrets) -> Result<(Draft, &'static str), ImportError> {
    let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    let format = match (wishes.format, is_json) {
        (Format::Auto, false) => Format::VllmBench,
        (Format::Auto, true) => match json(&wishes.name, text)? {
            Value::Object(object) if closed_loop::KEYS.iter().any(|key| object.contains_key(*key)) => {
                Format::ClosedLoop
            }
            Value::Object(object) if !object.is_empty() && object.values().all(Value::is_object) => {
                Format::VllmSweepParams
            }
            Value::Array(records) if !records.is_empty() && records.iter().all(Value::is_object) => {
                Format::VllmSweepParams
            }
            other => {
                let keys =
                    other.as_object().map(|object| object.keys().take(8).cloned().collect::<Vec<_>>().join(", "));
                let seen = keys
                    .map_or("a list of something else".to_owned(), |keys| format!("an object with the keys {keys}"));
                return Err(ImportError::Unknown { name: wishes.name.clone(), seen: text::one_line(&seen) });
            }
        },
        (format, _) => format,
    };
    match format {
        Format::ClosedLoop => {
            let Value::Object(object) = json(&wishes.name, text)? else {
                let seen = "JSON that is no object".to_owned();
                return Err(ImportError::Unknown { name: wishes.name.clone(), seen });
            };
            let draft = closed_loop::draft(&wishes.name, &object, title(wishes), wishes, secrets)?;
            Ok((draft, "closed-loop configuration"))
        }
        Format::VllmSweepParams => Ok((of_params(text, wishes, secrets)?, "vllm bench sweep parameters")),
        Format::Auto | Format::VllmBench => of_script(text, wishes, secrets),
    }
}

/// The plan's name: the file's, without its ending.
fn title(wishes: &Wishes) -> Field {
    let stem = wishes.text.as_ref().and_then(|_| Path::new(&wishes.name).file_stem()).and_then(|stem| stem.to_str());
    match stem {
        Some(stem) => Field::new("name", text_value(&name_of(stem, "imported")), "the file's name"),
        None => Field::new("name", "imported", ""),
    }
}

/// What is known before any command says more.
fn around(wishes: &Wishes) -> Around {
    let given = |value: &Option<String>, option: &str| value.clone().map(|value| (value, format!("import {option}")));
    // One that is no address is told so with the plan.
    let clean = |url: String| address::address(&url).map_or(url, |read| read.url);
    let url = given(&wishes.url, "--url").map(|(url, origin)| (clean(url), origin));
    Around { model: given(&wishes.model, "--model"), url, ..Around::default() }
}

fn of_script(text: &str, wishes: &Wishes, secrets: &Secrets) -> Result<(Draft, &'static str), ImportError> {
    let script = shell::read(&wishes.name, text, secrets)?;
    of_commands(&script.commands, script.listed, wishes, secrets)
}

fn of_command(wishes: &Wishes, secrets: &Secrets) -> Result<(Draft, &'static str), ImportError> {
    let command = shell::command(&wishes.command, secrets);
    of_commands(&[command], Vec::new(), wishes, secrets)
}

fn of_commands(
    commands: &[Command],
    listed: Vec<Listed>,
    wishes: &Wishes,
    secrets: &Secrets,
) -> Result<(Draft, &'static str), ImportError> {
    let mut taken = Taken::new(wishes, secrets, listed);
    for command in commands {
        taken.command(command)?;
    }
    let Taken { jobs, notes, tool, title: said, mut others, .. } = taken;
    let Some(tool) = tool else {
        let programs: Vec<&str> =
            commands.iter().filter_map(|one| one.words.first()).map(String::as_str).take(5).collect();
        let seen = format!("no benchmark among {} commands ({})", commands.len(), programs.join(", "));
        return Err(ImportError::Unknown { name: wishes.name.clone(), seen: text::one_line(&secrets.hide(&seen)) });
    };
    if jobs.is_empty() {
        let why = notes.listed.borrow().iter().map(write::sentence).collect::<Vec<_>>().join("; ");
        return Err(ImportError::Unknown { name: wishes.name.clone(), seen: secrets.hide(&text::one_line(&why)) });
    }
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let named = others.iter().take(12).map(|program| shell::shown(program)).collect::<Vec<_>>().join(", ");
        let why = "other commands of the script; `between: { cooldown: 10s }` pauses between runs";
        notes.needless(&text::one_line(&named), why, 0);
    }
    let name = said.map_or_else(
        || title(wishes),
        |name| Field::new("name", text_value(&name_of(&name, "imported")), "--experiment-name"),
    );
    Ok((bench::draft(jobs, name, notes.listed.into_inner()), tool))
}

/// What was taken from the commands so far.
struct Taken<'a> {
    wishes: &'a Wishes<'a>,
    around: Around,
    notes: Notes<'a>,
    jobs: Vec<Job>,
    tool: Option<&'static str>,
    title: Option<String>,
    /// Programs that are no benchmark.
    others: Vec<String>,
    /// The line of the server that no benchmark has measured yet.
    unmeasured: Option<usize>,
}

impl<'a> Taken<'a> {
    fn new(wishes: &'a Wishes<'a>, secrets: &'a Secrets, listed: Vec<Listed>) -> Taken<'a> {
        let notes = Notes { secrets, listed: listed.into() };
        let (jobs, tool, title, others, unmeasured) = Default::default();
        Taken { wishes, around: around(wishes), notes, jobs, tool, title, others, unmeasured }
    }

    fn command(&mut self, command: &Command) -> Result<(), ImportError> {
        let file = &self.wishes.name;
        match bench::program(&command.words) {
            Program::Other => self.others.extend(command.words.first().cloned()),
            Program::Serve(words) => {
                if let Some(line) = self.unmeasured.replace(command.line) {
                    let why =
                        "another server is started in front of the same benchmark: the plan starts the last one alone";
                    self.notes.missing("vllm serve", why, line);
                }
                let found = bench::facts(words, command.line, self.notes.secrets);
                let before = around(self.wishes);
                let origin = bench::serve_origin(command.line);
                // `--url` says where it runs already.
                let serve = match &before.url {
                    None => Some(bench::serve(command, &[], &origin, &self.notes)),
                    Some(_) => {
                        let why = "`import --url` names a server that runs: the plan starts none";
                        self.notes.needless(&origin, why, command.line);
                        None
                    }
                };
                self.around =
                    Around { model: before.model.or(found.model), url: before.url.or(found.url), serve, ..found };
            }
            Program::Measure(tool, words) => {
                self.tool.get_or_insert(tool.name());
                self.unmeasured = None;
                let around = Around { folder: self.wishes.folder.clone(), ..self.around.clone() };
                let job = bench::job(file, tool, command, words, &around, &self.notes)?;
                self.jobs.extend(job);
            }
            Program::Sweep(kind, words) => {
                self.tool.get_or_insert("vllm bench sweep");
                let made = params::sweep(file, kind, command, words, self.wishes.read, &self.notes)?;
                if let Some(made) = made {
                    self.title = made.name;
                    self.each(command, made.command, made.each)?;
                }
            }
        }
        Ok(())
    }

    /// One command with several combinations of parameters.
    fn each(&mut self, command: &Command, words: Vec<String>, each: Vec<Around>) -> Result<(), ImportError> {
        let (tool, words) = match bench::program(&words) {
            Program::Measure(tool, words) => (tool, words),
            _ => {
                let program = words.first().map(|word| self.notes.secrets.hide(word)).unwrap_or_default();
                let seen = format!("`{}` is no benchmark command", text::one_line(&program));
                return Err(ImportError::Unknown { name: self.wishes.name.clone(), seen });
            }
        };
        let before = around(self.wishes);
        for one in each {
            let (model, url) = (before.model.clone().or(one.model), before.url.clone().or(one.url));
            let one = Around { model, url, folder: self.wishes.folder.clone(), ..one };
            let job = bench::job(&self.wishes.name, tool, command, words, &one, &self.notes)?;
            self.jobs.extend(job);
        }
        Ok(())
    }
}

/// A parameter file alone, or for the command that was given with it.
fn of_params(text: &str, wishes: &Wishes, secrets: &Secrets) -> Result<Draft, ImportError> {
    let records = params::records(&wishes.name, text, secrets)?;
    let mut command = shell::command(&wishes.command, secrets);
    if command.words.is_empty() {
        command.words = ["vllm", "bench", "serve"].map(str::to_owned).to_vec();
    }
    let mut taken = Taken::new(wishes, secrets, Vec::new());
    let each = match params::are_of_server(&records) {
        true => params::servers(&secrets.hide(&wishes.name), &records, &taken.notes),
        false => params::over(&taken.around, records),
    };
    taken.each(&command, command.words.clone(), each)?;
    let (jobs, listed) = (taken.jobs, taken.notes.listed.into_inner());
    if jobs.is_empty() {
        let seen = listed.first().map_or("it has no combination".to_owned(), write::sentence);
        return Err(ImportError::Unknown { name: wishes.name.clone(), seen });
    }
    Ok(bench::draft(jobs, title(wishes), listed))
}
