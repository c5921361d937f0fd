//! `sweepline man` prints the manual. The manual has a page for the program and one for each command,
//! generated from the texts of `--help`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use strum::VariantArray;

use crate::cli::failure::{Exit, Failure};
use crate::cli::output;

/// The arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command whose man page is printed, like run or dataset-inspect; by default, the man page of
    /// sweepline itself
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Option<String>,
    /// Write every page into this folder, like ~/.local/share/man/man1
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Prints one page, or writes all of them to a folder.
pub(super) fn run(args: ManArgs, program: Command) -> Result<Exit, Failure> {
    let pages = pages(program).map_err(|error| Failure::Unexpected(error.into()))?;
    match &args.output {
        Some(folder) => write(folder, &pages).map_err(Failure::Unexpected)?,
        None => {
            let name = page_name(args.command.as_deref());
            let page = pages.iter().find(|page| page.name == name).ok_or_else(|| {
                let command = args.command.unwrap_or_default();
                Failure::Usage(format!("unknown command `{command}`; `sweepline --help` lists all commands"))
            })?;
            output::print(&page.text)?;
        }
    }
    Ok(Exit::Done)
}

/// One page of the manual.
struct Page {
    /// The name of the page, like `sweepline` or `sweepline-run`. Its file has this name with the extension
    /// `.1`.
    name: String,
    text: String,
}

fn page_name(command: Option<&str>) -> String {
    command.map_or_else(|| "sweepline".to_owned(), |command| format!("sweepline-{command}"))
}

fn pages(program: Command) -> std::io::Result<Vec<Page>> {
    // A page for `help` would only repeat the contents of the other pages.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = vec![page("sweepline", program.clone())?];
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = page_name(Some(command.get_name()));
        pages.push(page(&name, command.clone())?);
        for part in command.get_subcommands() {
            pages.push(page(&format!("{name}-{}", part.get_name()), part.clone())?);
        }
    }
    Ok(pages)
}

fn page(name: &str, command: Command) -> std::io::Result<Page> {
    let source = format!("sweepline {}", env!("CARGO_PKG_VERSION"));
    let has_commands = command.has_subcommands();
    let man = Man::new(command).title(name).source(source).manual("sweepline manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    exit_codes().to_writer(&mut text)?;
    Ok(Page { name: name.to_owned(), text: String::from_utf8_lossy(&text).into_owned() })
}

/// Returns the section on exit codes, which is the same on every page.
fn exit_codes() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for exit in Exit::VARIANTS {
        section.control("TP", []).text([bold(exit.code().to_string())]).text([roman(exit.meaning())]);
    }
    section
}

fn write(folder: &Path, pages: &[Page]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for page in pages {
        let file = folder.join(format!("{}.1", page.name));
        std::fs::write(&file, &page.text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
