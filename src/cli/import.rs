//! `sweepline import FILE|-- COMMAND…` creates a plan from the configuration or command line of
//! another tool.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::cli::failure::{Exit, Failure};
use crate::cli::{output, stderr};
use crate::import::{self, Counts, Imported, MOST_BYTES, Wishes};
use crate::units::regular_file;

/// The arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A configuration file of another tool, or a shell script or list of command lines; - for standard input
    #[arg(value_name = "FILE", required_unless_present = "command")]
    file: Option<PathBuf>,
    /// A benchmark command of another tool; if FILE is a parameter file of `vllm bench sweep`, the command
    /// that its parameters apply to
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the plan to this file instead of stdout
    #[arg(short, long, value_name = "PLAN")]
    output: Option<PathBuf>,
    /// Overwrite the --output file
    #[arg(long, requires = "output")]
    force: bool,
    /// Format of FILE; `auto` detects it from the contents
    #[arg(long, value_parser = PossibleValuesParser::new(import::formats()), default_value = "auto")]
    format: String,
    /// Fail without writing a plan if a setting has no counterpart in sweepline
    #[arg(long)]
    strict: bool,
    /// Add short phases for a first look of 2 minutes in addition to the full phases, and a variable that
    /// selects between them
    #[arg(long)]
    quick: bool,
    /// The model, overriding the one in FILE
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// The server's base address, overriding the one in FILE; /v1 is appended if the address has no path
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Entry to import, if FILE has several: the name of an entry in an InferenceX master file (`*` matches
    /// any part of a name), or a model in an MLPerf configuration, as MODEL or MODEL.SCENARIO; may be given
    /// several times
    #[arg(long, value_name = "NAME")]
    entry: Vec<String>,
}

/// Writes the plan, and reports on stderr the settings that it does not contain.
pub(super) fn run(args: ImportArgs) -> Result<Exit, Failure> {
    let text = args.file.as_deref().map(text).transpose().map_err(Failure::Usage)?;
    let name = args.file.as_ref().map_or_else(|| "the command line".to_owned(), |file| shown(file));
    let read = |path: &str| beside(args.file.as_deref(), path);
    let wishes = Wishes {
        name,
        text,
        command: args.command,
        format: args.format,
        quick: args.quick,
        model: args.model,
        url: args.url,
        entries: args.entry,
        folder: args.output.as_deref().and_then(Path::parent).map(Path::to_owned).unwrap_or_default(),
        read: &read,
    };
    let made = import::import(&wishes).map_err(|error| Failure::Usage(error.to_string()))?;
    if args.strict && made.counts.missing > 0 {
        return Err(Failure::Usage(strict(&made)));
    }
    match &args.output {
        Some(path) => save(path, &made.plan, args.force)?,
        None => output::print(&made.plan)?,
    }
    tell(&made);
    if let Some(path) = &args.output {
        stderr::complain(&format!("wrote {}; next: sweepline preview {}", path.display(), path.display()));
    }
    Ok(Exit::Done)
}

/// Reports how many settings the plan contains, which ones are missing, and which ones have a different
/// meaning in the plan.
fn tell(made: &Imported) {
    stderr::complain(&summary(made.counts, made.missing.len()));
    made.look.iter().for_each(|look| stderr::complain(look));
    let sentences = |all: &[String]| all.iter().for_each(|sentence| stderr::complain(&format!("- {sentence}")));
    sentences(&made.missing);
    if !made.differs.is_empty() {
        stderr::complain("in the plan, with a different meaning:");
        sentences(&made.differs);
    }
    if !made.needless.is_empty() {
        stderr::complain(&format!(
            "not needed, or done differently: {}, listed at the top of the plan",
            made.needless.len()
        ));
    }
}

fn summary(Counts { mapped, missing }: Counts, lines: usize) -> String {
    let settings = if mapped == 1 { "setting" } else { "settings" };
    match missing {
        0 => format!("import: {mapped} {settings} mapped, all of them"),
        missing if missing == lines => format!("import: {mapped} {settings} mapped, {missing} not (listed below)"),
        // The numbers of settings and of lines may differ, because several settings with the same reason
        // share a line, and several parts of one option may be missing.
        missing => {
            let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            format!("import: {mapped} {settings} mapped, {missing} not ({lines} below)")
        }
    }
}

/// Returns why no plan is written with `--strict`.
fn strict(made: &Imported) -> String {
    let listed = made.missing.iter().map(|sentence| format!("\n- {sentence}")).collect::<String>();
    let remedy = "remove what is listed from the source, or import without --strict";
    let have = match made.counts.missing {
        1 => "1 setting has".to_owned(),
        missing => format!("{missing} settings have"),
    };
    format!("--strict: {have} no counterpart, so no plan is written; {remedy}:{listed}")
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// Returns a file's text, reading only up to the size limit of imports.
fn text(path: &Path) -> Result<String, String> {
    let wrong =
        |error: std::io::Error| format!("{} cannot be read: {error}; {}", shown(path), regular_file::remedy(&error));
    let mut bytes = Vec::new();
    let most = MOST_BYTES as u64 + 1;
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => regular_file::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(wrong)?;
    if bytes.len() > MOST_BYTES {
        let (name, most) = (shown(path), MOST_BYTES);
        return Err(format!("{name} is larger than {most} bytes; import only the part that names the benchmarks"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}: this line is not UTF-8 text; save the file as UTF-8", shown(path))
    })
}

/// Returns the text of a file that another file names. The path is relative to the folder of that other
/// file or, if nothing exists there, to the current folder.
fn beside(file: Option<&Path>, path: &str) -> Result<String, String> {
    let folder = file.and_then(Path::parent).map(|folder| folder.join(path));
    let path = folder.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(path));
    text(&path)
}

/// Writes a plan; an existing file is kept unless it may be overwritten.
pub(super) fn save(path: &Path, text: &str, overwrite: bool) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!overwrite);
    let written = options.open(path).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{} already exists; choose another name, or add --force", path.display()))
        }
        _ => {
            Failure::Usage(format!("{} cannot be written: {error}; check the path and its permissions", path.display()))
        }
    })
}
