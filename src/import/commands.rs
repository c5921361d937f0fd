//! The commands of a script or a command line → a plan: those that benchmark, and the servers that they were started for.

use super::bench;
use super::draft::{Draft, Field};
use super::error::ImportError;
use super::formats::{FORMATS, VLLM};
use super::importer::{Asked, CommandReader, Context, Importer};
use super::job::{Around, Job};
use super::params;
use super::program::{Program, program};
use super::serve;
use super::shell::{self, Command};
use super::startup;
use super::tables;
use super::text::{name_of, one_line, text_value};
use super::write;

/// The plan of these commands, and the tool that they are of. `only` is the format that was asked for.
pub(super) fn draft(
    commands: &[Command],
    only: Option<&'static Importer>,
    context: &Context,
) -> Result<(Draft, &'static str), ImportError> {
    let (notes, name) = (context.notes, &context.wishes.name);
    if commands.is_empty() {
        let what = "it is empty: there is no command and no setting in it";
        return Err(ImportError::shape(name, what, "give the file that holds the benchmark's commands or settings"));
    }
    let mut taken = Taken::new(context, only);
    for command in commands {
        taken.command(command)?;
    }
    let Taken { jobs, tool, title: said, mut others, .. } = taken;
    let unknown = |seen: String| ImportError::unknown(name, notes.secrets.hide_known(&one_line(&seen)));
    let Some(tool) = tool else {
        let shown = |word: &String| notes.secrets.hide(word);
        let programs: Vec<String> = commands.iter().filter_map(|one| one.words.first()).map(shown).take(5).collect();
        return Err(unknown(format!("no benchmark among {} commands ({})", commands.len(), programs.join(", "))));
    };
    if jobs.is_empty() {
        return Err(unknown(notes.listed.borrow().iter().map(write::sentence).collect::<Vec<_>>().join("; ")));
    }
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let named = others.iter().take(12).map(|program| shell::shown(program)).collect::<Vec<_>>().join(", ");
        let why = "other commands of the script; `between: { cooldown: 10s }` pauses between runs";
        notes.needless(&one_line(&named), why, 0);
    }
    let said = said.filter(|name| !notes.secrets.are_in(name));
    let name = said.map_or_else(
        || context.name.clone(),
        |name| Field::new("name", text_value(&name_of(&name, "imported")), "--experiment-name"),
    );
    Ok((tables::draft(jobs, name, notes), tool))
}

/// What was taken from the commands so far.
struct Taken<'a> {
    context: &'a Context<'a>,
    only: Option<&'static Importer>,
    around: Around,
    jobs: Vec<Job>,
    tool: Option<&'static str>,
    title: Option<String>,
    /// Programs that are no benchmark.
    others: Vec<String>,
    /// The line of the server that no benchmark has measured yet.
    unmeasured: Option<usize>,
}

impl<'a> Taken<'a> {
    fn new(context: &'a Context<'a>, only: Option<&'static Importer>) -> Taken<'a> {
        let (jobs, tool, title, others, unmeasured) = Default::default();
        Taken { context, only, around: context.around(), jobs, tool, title, others, unmeasured }
    }

    fn command(&mut self, command: &Command) -> Result<(), ImportError> {
        let known = FORMATS.iter().filter(|one| self.only.is_none_or(|only| only.name == one.name));
        for (importer, reader) in known.filter_map(|one| Some((one, one.command.as_ref()?))) {
            if let Some(words) = (reader.arguments)(&command.words) {
                self.tool.get_or_insert(importer.title);
                self.wrappers(command, words);
                return self.of_tool(reader, command, words);
            }
        }
        let (notes, wishes) = (self.context.notes, self.context.wishes);
        let found = program(&command.words);
        if let Program::Measure(_, words) | Program::Startup(words) | Program::Sweep(_, words) = &found {
            self.wrappers(command, words);
        }
        match found {
            Program::Serve(words) => self.server(command, words),
            Program::Measure(tool, words) if self.is_vllm() => {
                self.tool.get_or_insert(tool.name());
                self.unmeasured = None;
                self.jobs.extend(bench::job(&wishes.name, tool, command, words, &self.around, notes)?);
            }
            Program::Startup(words) if self.is_vllm() => {
                self.tool.get_or_insert("vllm bench startup");
                self.jobs.extend(startup::job(command, words, self.context)?);
            }
            Program::Sweep("startup", words) if self.is_vllm() => {
                self.tool.get_or_insert("vllm bench sweep");
                let (jobs, name) = startup::sweep(command, &params::long_forms(words), self.context)?;
                self.title = name;
                self.jobs.extend(jobs);
            }
            Program::Sweep(kind, words) if self.is_vllm() => {
                self.tool.get_or_insert("vllm bench sweep");
                if let Some(made) = params::sweep(&wishes.name, kind, command, words, wishes.read, notes)? {
                    self.title = made.name;
                    self.jobs.extend(bench::each(command, &made.command, made.each, self.context)?);
                }
            }
            _ => self.others.extend(command.words.first().cloned()),
        }
        Ok(())
    }

    /// Lists what stands in front of a benchmark: another host, a container, cores.
    fn wrappers(&self, command: &Command, words: &[String]) {
        let before = &command.words[..command.words.len().saturating_sub(words.len())];
        let notes = self.context.notes;
        for (what, is_lost, why) in shell::wrappers(&[&command.behind, before].concat()) {
            match is_lost {
                true => notes.missing(&what, why, command.line),
                false => notes.needless(&what, why, command.line),
            }
        }
    }

    fn is_vllm(&self) -> bool {
        self.only.is_none_or(|only| only.name == VLLM.name)
    }

    fn of_tool(&mut self, reader: &CommandReader, command: &Command, words: &[String]) -> Result<(), ImportError> {
        self.unmeasured = None;
        let asked = Asked { place: self.context.place(command), command, words, around: &self.around };
        self.jobs.extend((reader.read)(&asked, self.context)?);
        Ok(())
    }

    /// A server that a command starts.
    fn server(&mut self, command: &Command, words: &[String]) {
        let notes = self.context.notes;
        if let Some(line) = self.unmeasured.replace(command.line) {
            let why = "another server is started in front of the same benchmark: the plan starts the last one alone";
            notes.missing("vllm serve", why, line);
        }
        let origin = serve::origin(&command.words, command.line);
        let found = bench::facts(words, origin.clone(), notes.secrets);
        let before = self.context.around();
        // `--url` says where it runs already.
        let serve = match &before.url {
            None => Some(serve::serve(command, &[], &origin, notes)),
            Some(_) => {
                let why = "`import --url` names a server that runs: the plan starts none";
                notes.needless(&origin, why, command.line);
                None
            }
        };
        let (model, url) = (before.model.or(found.model), before.url.or(found.url));
        self.around = Around { model, url, serve, folder: before.folder, ..found };
    }
}
