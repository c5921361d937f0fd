//! Converts configurations and command lines of other tools to a plan, with a comment after every value that
//! gives its origin, and a list of the settings without a counterpart. The input is only read, never
//! executed. The plan is checked like any other before it is returned, and contains no secret.
//!
//! A file becomes a tree (`tree`) or commands (`shell`). `formats` determines the tool, whose folder
//! converts the input to `Job`s, one for each load of each server, model and scenario. `tables` merges jobs
//! into sweeps, which form a `Draft`, and `write` writes the plan. Each tool has its own file or folder and
//! one entry in `formats`.
//!
//! No setting is lost silently: every option (`arguments`) and every value of a tree counts as a setting.
//! Settings that no reader used are listed at the end, so that a reader cannot forget them. Reading a value
//! marks it as used; a reader must list the values that it does not put into the plan: as `missing` (no
//! counterpart, with the nearest setting of the plan), `differs` (in the plan with a different meaning) or
//! `needless` (sweepline does it anyway). The tests change every field of every fixture and verify that the
//! plan or the list changes.

mod address;
mod aiperf;
mod arguments;
mod bench;
mod body;
mod clean;
mod closed_loop;
mod commands;
mod crossed;
mod draft;
mod endpoint;
mod error;
mod files;
mod formats;
mod fresh;
mod genai_bench;
mod guidellm;
mod header;
mod importer;
mod inference_perf;
mod inferencex;
mod input;
mod job;
mod json;
mod launch;
mod llmd;
mod llmperf;
mod loads;
mod masking;
mod mlperf;
mod notes;
mod options;
mod params;
mod program;
mod quick;
mod request;
mod said;
mod secrets;
mod serve;
mod settings;
mod sglang;
mod shell;
mod spread;
mod startup;
mod suite;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod write;

use std::path::Path;

use crate::plan::{self, Format as PlanFormat};

pub(crate) use address::api_base;
pub(crate) use error::ImportError;
pub(crate) use formats::names as formats;
pub use fresh::fresh;
pub(crate) use fresh::{Fresh, FreshLoad, FreshSearch, FreshServer};
pub(crate) use input::{MOST_BYTES, Wishes};
pub use notes::Counts;

use draft::{Draft, Field, Kind};
use formats::FORMATS;
use importer::{Context, FileReader, Importer, Input};
use notes::Notes;
use secrets::Secrets;
use text::{name_of, one_line, text_value};

/// An imported plan.
#[derive(Debug)]
pub struct Imported {
    /// The plan, in YAML.
    pub plan: String,
    /// The number of settings of the source that are in the plan, and the number that are not.
    pub counts: Counts,
    /// With `--quick`, a sentence with the duration of the first look if it takes more than 2 minutes;
    /// otherwise `None`.
    pub look: Option<String>,
    /// The settings without a counterpart, which are not in the plan, as whole sentences.
    pub missing: Vec<String>,
    /// The settings in the plan that have a different meaning.
    pub differs: Vec<String>,
    /// The settings that need no counterpart.
    pub needless: Vec<String>,
}

/// Imports a plan.
pub fn import(wishes: &Wishes) -> Result<Imported, ImportError> {
    let secrets = Secrets::default();
    secrets.add_text(wishes.url.as_deref().unwrap_or_default());
    let made = made(wishes, &secrets);
    made.map_err(|error| {
        error.with_known(formats::takes()).changed(|text| secrets.hide_quoted(text), |text| secrets.hide(text))
    })
}

fn made(wishes: &Wishes, secrets: &Secrets) -> Result<Imported, ImportError> {
    let notes = Notes::new(secrets);
    let url = wishes.url.as_deref().map(|url| given_address(url, &notes)).transpose()?;
    let wishes = &Wishes { url, ..wishes.clone() };
    let name = &wishes.name;
    let context = Context { wishes, notes: &notes, name: title(wishes), formats: FORMATS };
    if wishes.url.as_deref().is_some_and(|url| address::address(url).is_ok_and(|read| read.had_secret)) {
        clean::credentials(&notes, 0);
    }
    let (mut draft, tool) = match &wishes.text {
        Some(text) if text.len() > MOST_BYTES => {
            return Err(ImportError::TooLarge { name: name.clone(), bytes: text.len(), most: MOST_BYTES });
        }
        Some(text) => of_text(text, &context)?,
        None => {
            has_entries("", wishes)?;
            commands::draft(&[shell::command(&wishes.command, secrets)], None, &context)?
        }
    };
    let from = match &wishes.text {
        Some(_) => format!("{} ({tool})", secrets.hide(name)),
        None => format!("a command line ({tool})"),
    };
    let place = |line| context.place_of(line);
    if let Some(error) = notes.first_unset(place).or_else(|| notes.first_wrong(place)) {
        return Err(error);
    }
    clean::draft(&mut draft, name, &notes)?;
    draft.listed.append(&mut notes.listed.borrow_mut());
    draft.listed.sort_by_key(|one| one.lines.first().copied());
    if draft.sweeps.is_empty() {
        return Err(ImportError::nothing(name, secrets.hide_known(&one_line(&write::reasons(&draft.listed)))));
    }
    named(&mut draft);
    let look = if wishes.quick { quick::quick(&mut draft) } else { None };
    if tool == aiperf::GENAI_PERF.title {
        // AIPerf's reader also reads the settings of this tool, so its comments name AIPerf instead of this
        // tool.
        draft.change_comments(|text| text.replace(aiperf::IMPORTER.title, tool));
    }
    // This happens before any text is truncated to the line length, because truncation could leave an
    // unrecognizable part of a secret.
    draft.change_comments(|text| secrets.hide_quoted(text));
    let plan = write::text(&draft, &from);
    if secrets.hide_known(&plan) != plan {
        let what = "the same secret occurs where a plan takes no reference";
        return Err(ImportError::shape(name, what, "remove the secret there and import again"));
    }
    plan::parse(&wishes.folder.join("the imported plan"), &plan, PlanFormat::Yaml)
        .map_err(|errors| ImportError::Plan { name: name.clone(), errors: Box::new(errors) })?;
    let listed = draft::merged(&draft.listed);
    let sentences = |kind: Kind| {
        listed.iter().filter(|one| one.kind == kind).map(|one| secrets.hide_known(&write::sentence(one))).collect()
    };
    Ok(Imported {
        counts: notes.counts(),
        look,
        missing: sentences(Kind::Missing),
        differs: sentences(Kind::Differs),
        needless: sentences(Kind::Needless),
        plan,
    })
}

/// Returns the base address of `--url`, without credentials and with `/v1` if it has no path.
fn given_address(url: &str, notes: &Notes) -> Result<String, ImportError> {
    let (base, had_secret) = address::api_base(url).map_err(|reason| {
        let what = format!("`{}` is not a server's URL: {reason}", notes.secrets.hide(url));
        ImportError::shape("--url", what, "write http://HOST:PORT")
    })?;
    if had_secret {
        let why = "a plan contains no secret: add api_key: { secret: env:NAME } to the endpoint";
        notes.missing("user name, password or query of --url", why, 0);
    }
    Ok(base)
}

fn of_text(text: &str, context: &Context) -> Result<(Draft, &'static str), ImportError> {
    let Context { wishes, notes, .. } = context;
    let asked = formats::named(&wishes.format);
    let tree = match asked.filter(|importer| importer.file.is_none()) {
        // If `--format` selects a tool that has only commands, the input is read as a script.
        Some(_) => None,
        None => tree::parse(&wishes.name, text)?,
    };
    let input = Input { name: &wishes.name, text, tree };
    let reader = |importer: &'static Importer| Some((importer, importer.file.as_ref()?));
    let found = match asked.and_then(reader) {
        Some(found) => Some(found),
        None if asked.is_none() => FORMATS.iter().filter_map(|one| reader(one)).find(|(_, file)| (file.is)(&input)),
        None => None,
    };
    let name = found.map_or("", |(importer, _)| importer.name);
    if !wishes.command.is_empty() && !formats::takes_command(name) {
        let what = "this file cannot be combined with a command after `--`";
        return Err(ImportError::shape(&wishes.name, what, "import one of the two"));
    }
    has_entries(name, wishes)?;
    if let Some((importer, file)) = found {
        return Ok((of_file(&input, file, context)?, importer.title));
    }
    match &input.tree {
        Some(tree) => Err(ImportError::unknown(&wishes.name, one_line(&seen(tree)))),
        None => {
            let script = shell::read(&wishes.name, text, notes.secrets)?;
            notes.extend(script.listed);
            notes.branched.replace(script.branched);
            commands::draft(&script.commands, asked, context)
        }
    }
}

/// Fails if `--entry` is given for input without entries.
fn has_entries(format: &str, wishes: &Wishes) -> Result<(), ImportError> {
    if wishes.entries.is_empty() || formats::takes_entries(format) {
        return Ok(());
    }
    let what = format!("--entry {}: this source has no entries to choose from", one_line(&wishes.entries.join(", ")));
    Err(ImportError::shape(&wishes.name, what, "remove --entry"))
}

/// Returns the plan of a file, and lists all settings that its reader did not use.
fn of_file(input: &Input, file: &FileReader, context: &Context) -> Result<Draft, ImportError> {
    if let Some(tree) = &input.tree {
        tree.enter(context.notes);
    }
    let draft = (file.read)(input, context)?;
    if let Some(tree) = &input.tree {
        tree.list_rest(file.known, context.notes);
    }
    Ok(draft)
}

/// Describes an unknown file.
fn seen(tree: &tree::Item) -> String {
    let keys = tree.keys();
    match tree.is_table() {
        true => format!("a table with the keys {}", keys.into_iter().take(8).collect::<Vec<_>>().join(", ")),
        false => "a list of other values".to_owned(),
    }
}

/// File names that do not describe their content.
const SAY_NOTHING: [&str; 16] = [
    "bench",
    "benchmark",
    "cmd",
    "command",
    "commands",
    "config",
    "example",
    "job",
    "main",
    "readme",
    "run",
    "script",
    "standard input",
    "start",
    "test",
    "user",
];

/// If the source does not name the plan, names it after its model and its scenario.
fn named(draft: &mut Draft) {
    let of = |entries: &draft::Entries| match entries.all.as_slice() {
        [one] => Some(one.name.clone()),
        _ => None,
    };
    let count = draft.models.all.len();
    let model = of(&draft.models).unwrap_or_else(|| format!("{count}-models"));
    let parts: Vec<String> = [Some(model), of(&draft.scenarios)].into_iter().flatten().collect();
    if let Some(name) = draft.head.iter_mut().find(|field| field.key == "name" && field.origin.is_empty()) {
        *name = Field::new("name", text_value(&name_of(&parts.join("-"), "imported")), "named after its measurement");
    }
}

/// Returns the plan's name: the name of the file without its extension, if it is descriptive.
fn title(wishes: &Wishes) -> Field {
    let stem = wishes.text.as_ref().and_then(|_| Path::new(&wishes.name).file_stem()).and_then(|stem| stem.to_str());
    let says = |stem: &&str| {
        let word = stem.trim_start_matches(|c: char| c.is_ascii_digit() || "_-. ".contains(c)).to_ascii_lowercase();
        !word.is_empty() && !SAY_NOTHING.contains(&word.as_str())
    };
    match stem.filter(says) {
        Some(stem) => Field::new("name", text_value(&name_of(stem, "imported")), "the file's name"),
        None => Field::new("name", "imported", ""),
    }
}
