//! Files that both a command and a plan can name: data sets and tokenizers. Whether a plan can read
//! such a file is tested in the same way as in `check`.

use std::path::Path;

use super::arguments::Arguments;
use super::draft::Field;
use super::said::Said;
use super::text::scalar;
use crate::plan;

/// Returns the path of a file, given relative to the current folder or to `folder`, in the form in which a
/// plan in `folder` names it; the error gives the reason why it cannot be named.
pub(super) fn named(folder: &Path, file: &str) -> Result<String, String> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let found = std::fs::canonicalize(file).or_else(|_| std::fs::canonicalize(here.join(file)));
    let found = found.map_err(|_| format!("file `{file}` not found here"))?;
    let home = std::fs::canonicalize(here).map_err(|error| error.to_string())?;
    let inside = found.strip_prefix(&home).ok().and_then(Path::to_str);
    // The folder itself can also be named.
    let inside = inside.map(|inside| if inside.is_empty() { "." } else { inside });
    inside.map(str::to_owned).ok_or_else(|| format!("`{file}` is not in the plan's folder"))
}

/// Whether a plan in `folder` loads with one model and one scenario that have these fields; the error is the
/// first one found.
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

/// Engines whose servers count tokens on request.
const COUNTING: [&str; 3] = ["vllm", "sglang", "llamacpp"];

/// Returns the tokenizer that an option names. This is a folder or file that the plan can name, or else the
/// server itself, which counts with its own tokenizer. The error gives the reason why there is no tokenizer.
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

/// Like [`counted_by`], for an option of a command. If there is no tokenizer, the reason is listed.
pub(super) fn tokenizer_of(option: &str, arguments: &Arguments, folder: &Path, engine: &str) -> Option<Field> {
    let said = arguments.text(option)?;
    counted_by(&said, folder, engine).map_err(|why| arguments.missing(&said.origin, &why)).ok()
}

/// Returns the tokenizer of the model if `--tokenizer` is a folder or file that the plan can name; otherwise
/// lists the reason.
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
