//! Converts the commands of a script or a command line to a plan, which contains the benchmarks and the
//! servers that are started for them.

use super::bench;
use super::draft::{Draft, Field};
use super::error::ImportError;
use super::formats::{FORMATS, VLLM};
use super::importer::{Asked, CommandReader, Context, Importer};
use super::job::{Around, Job};
use super::params;
use super::program::{Program, program};
use super::serve;
use super::shell::{self, Command, Runs};
use super::startup;
use super::tables;
use super::text::{name_of, one_line, text_value};
use super::write;

/// Returns the plan of these commands and the name of their tool. `only` is the requested format.
pub(super) fn draft(
    commands: &[Command],
    only: Option<&'static Importer>,
    context: &Context,
) -> Result<(Draft, &'static str), ImportError> {
    let (notes, name) = (context.notes, &context.wishes.name);
    if commands.is_empty() {
        let what = "it is empty: no command and no setting";
        return Err(ImportError::shape(
            name,
            what,
            "specify the file that contains the benchmark's commands or settings",
        ));
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
        let why = write::reasons(&notes.listed.borrow());
        return Err(ImportError::nothing(name, notes.secrets.hide(&one_line(&why))));
    }
    one_server(&jobs, context)?;
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

/// Fails if a benchmark uses the address at which the plan starts a server for another benchmark.
fn one_server(jobs: &[Job], context: &Context) -> Result<(), ImportError> {
    let field =
        |job: &Job, key: &str| job.endpoint.1.iter().find(|field| field.key == key).map(|field| field.value.clone());
    let launched = |url: &Option<String>| {
        jobs.iter().find(|job| field(job, "launch").is_some() && url.is_some() && field(job, "url") == *url)
    };
    for job in jobs.iter().filter(|job| field(job, "launch").is_none()) {
        let url = field(job, "url");
        let Some(other) = launched(&url) else { continue };
        let what = format!(
            "this benchmark sends requests to {}, but the plan only starts the server for the benchmark of line {}",
            url.unwrap_or_default(),
            other.line
        );
        let remedy = "put the command that starts the server before both, or import each separately";
        return Err(ImportError::shape(context.place_of(job.line), what, remedy));
    }
    Ok(())
}

/// The results of the commands read so far.
struct Taken<'a> {
    context: &'a Context<'a>,
    only: Option<&'static Importer>,
    around: Around,
    jobs: Vec<Job>,
    tool: Option<&'static str>,
    title: Option<String>,
    /// Programs that are not benchmarks.
    others: Vec<String>,
    /// The line of the server that no benchmark has used yet.
    unmeasured: Option<usize>,
    /// The line of a benchmark that still runs in the background (`&`) while the script continues.
    behind: Option<usize>,
}

impl<'a> Taken<'a> {
    fn new(context: &'a Context<'a>, only: Option<&'static Importer>) -> Taken<'a> {
        let (jobs, tool, title, others, unmeasured, behind) = Default::default();
        Taken { context, only, around: context.around(), jobs, tool, title, others, unmeasured, behind }
    }

    /// Whether the script executes a command. A benchmark or a start of a server that is not executed is
    /// listed.
    fn does_run(&self, command: &Command) -> Result<bool, ImportError> {
        let known = FORMATS.iter().filter_map(|one| one.command.as_ref());
        let mut measures = known.map(|reader| (reader.arguments)(&command.words).is_some());
        if command.runs == Runs::Surely || !(measures.any(|is| is) || program(&command.words) != Program::Other) {
            return Ok(true);
        }
        let notes = self.context.notes;
        let shown =
            one_line(&notes.secrets.hide(&shell::shown(&command.words[..command.words.len().min(3)].join(" "))));
        match command.runs {
            Runs::Surely => {}
            Runs::Not => {
                let why = "it does not run: its condition is false, or the script ends before it";
                notes.needless(&shown, why, command.line);
            }
            Runs::NotUnset(line) => {
                let why = format!(
                    "it only runs if a variable in the condition of line {line} is set, and that variable has no \
                     value here: set it before that line"
                );
                notes.missing(&shown, &why, command.line);
            }
            Runs::Unsure(line) => {
                let what = format!(
                    "whether the condition here holds, and so whether `{shown}` of line {} runs, is only known when \
                     the script runs",
                    command.line
                );
                let remedy = "set the variables of the condition before it, or import only the commands that count";
                return Err(ImportError::shape(self.context.place_of(line), what, remedy));
            }
        }
        Ok(false)
    }

    fn command(&mut self, command: &Command) -> Result<(), ImportError> {
        if !self.does_run(command)? {
            return Ok(());
        }
        let jobs = self.jobs.len();
        self.measure(command)?;
        if self.jobs.len() > jobs {
            self.beside(command);
        }
        if command.words.first().is_some_and(|word| word == "wait") {
            self.behind = None;
        }
        Ok(())
    }

    /// Lists a benchmark that runs in parallel with another one.
    fn beside(&mut self, command: &Command) {
        if let Some(other) = self.behind {
            let why = format!(
                "the script runs it in parallel with the command of line {other} (`&`); the plan runs them one after \
                 the other: `mix` sends several kinds of requests together"
            );
            let what = command.words.iter().take(3).map(|word| shell::shown(word)).collect::<Vec<_>>().join(" ");
            self.context.notes.differs(&what, &why, command.line);
        }
        if command.is_behind {
            self.behind = Some(command.line);
        }
    }

    fn measure(&mut self, command: &Command) -> Result<(), ImportError> {
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
            Program::Offline(name) if self.is_vllm() => {
                self.tool.get_or_insert("vllm bench");
                let why = "this command is skipped: it sends no requests to a server, and a plan measures servers";
                notes.missing(name, why, command.line);
            }
            _ => self.others.extend(command.words.first().cloned()),
        }
        Ok(())
    }

    /// Lists the words before a benchmark that run it elsewhere, such as on another host, in a container or on
    /// certain cores.
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

    /// Reads a command that starts a server.
    fn server(&mut self, command: &Command, words: &[String]) {
        let notes = self.context.notes;
        if let Some(line) = self.unmeasured.replace(command.line) {
            let why = "another server is started for the same benchmark: the plan starts only the last one";
            notes.missing("vllm serve", why, line);
        }
        let origin = serve::origin(&command.words, command.line);
        let found = bench::facts(words, origin.clone(), notes.secrets);
        let before = self.context.around();
        // With `import --url`, the server is already running.
        let serve = match &before.url {
            None => Some(serve::serve(command, &[], &origin, notes)),
            Some(_) => {
                let why = "`import --url` names a running server: the plan starts none";
                notes.needless(&origin, why, command.line);
                None
            }
        };
        let (model, url) = (before.model.or(found.model), before.url.or(found.url));
        self.around = Around { model, url, serve, folder: before.folder, ..found };
    }
}
