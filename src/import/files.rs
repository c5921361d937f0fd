//! Files that a command names and that a plan names too: data sets and tokenizers. Whether a plan can read one is found
//! out as `check` finds it.

use std::path::Path;

use super::arguments::Arguments;
use super::draft::Field;
use super::said::Said;
use super::text::scalar;
use crate::plan;

/// A file, seen from here or from `folder`, as a plan in `folder` names it; an error says why it cannot.
pub(super) fn named(folder: &Path, file: &str) -> Result<String, String> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let found = std::fs::canonicalize(file).or_else(|_| std::fs::canonicalize(here.join(file)));
    let found = found.map_err(|_| format!("file `{file}` not found here"))?;
    let home = std::fs::canonicalize(here).map_err(|error| error.to_string())?;
    let inside = found.strip_prefix(&home).ok().and_then(Path::to_str);
    // The folder itself.
    let inside = inside.map(|inside| if inside.is_empty() { "." } else { inside });
    inside.map(str::to_owned).ok_or_else(|| format!("`{file}` is not in the plan's folder"))
}

/// Whether a plan in `folder` can be loaded whose one model and one scenario have these fields; an error is the first
/// mistake.
pub(super) fn fits(folder: &Path, model: &str, scenario: &str) -> Result<(), String> {
    let text = format!(
        "sweepline: 1\nname: a\nendpoints: {{ e: {{ engine: mock }} }}\nmodels: {{ m: {{ id: m{model} }} }}\nscenarios: \
         {{ s: {{ base: B1{scenario} }} }}\nsweeps: {{ s: {{ matrix: {{ scenario: [s], batch_size: [1] }} }} }}\n"
    );
    let first = |errors: plan::PlanErrors| errors.diagnostics.first().map(|mistake| mistake.message.clone());
    plan::parse(&folder.join("the imported plan"), &text, plan::Format::Yaml)
        .map(drop)
        .map_err(|errors| first(errors).unwrap_or_default())
}

/// Engines whose servers count tokens when they are asked to.
const COUNTING: [&str; 3] = ["vllm", "sglang", "llamacpp"];

/// The tokenizer that an option names: a folder or file that the plan can name, else the server itself, which counts with the one
/// that it uses. An error says why there is none.
pub(super) fn counted_by(said: &Said<String>, folder: &Path, engine: &str) -> Result<Field, String> {
    let read = named(folder, &said.value).and_then(|path| {
        let path = scalar(&path);
        fits(folder, &format!(", tokenizer: {path}"), "").map(|()| path)
    });
    match read {
        Ok(path) => Ok(Field::new("tokenizer", path, &said.origin)),
        Err(_) if COUNTING.contains(&engine) => {
            Ok(Field::new("tokenizer", "server", format!("{}: the server counts with its own tokenizer", said.origin)))
        }
        Err(why) => Err(format!(
            "{why}; `tokenizer: FOLDER` of the model counts with its `tokenizer.json`; without it prompt tokens are \
             estimated at four characters each"
        )),
    }
}

/// The same for an option of a command.
pub(super) fn tokenizer_of(option: &str, arguments: &Arguments, folder: &Path, engine: &str) -> Option<Field> {
    let said = arguments.text(option)?;
    counted_by(&said, folder, engine).map_err(|why| arguments.missing(&said.origin, &why)).ok()
}

/// The tokenizer of the model, where `--tokenizer` is a folder or file that the plan can name.
pub(super) fn tokenizer(arguments: &Arguments, folder: &Path) -> Option<Field> {
    let Said { value, origin } = arguments.text("tokenizer")?;
    let read = named(folder, &value).and_then(|path| {
        let path = scalar(&path);
        fits(folder, &format!(", tokenizer: {path}"), "").map(|()| path)
    });
    match read {
        Ok(path) => Some(Field::new("tokenizer", path, origin)),
        Err(why) => {
            let why = format!(
                "{why}; `tokenizer: FOLDER` of the model counts with its `tokenizer.json`, `tokenizer: server` counts \
                 with the server; without either prompt tokens are estimated at four characters each"
            );
            arguments.missing(&origin, &why);
            None
        }
    }
}
