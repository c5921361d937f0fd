//! Converts AIPerf's files and public data sets to `data` and `trace` of a scenario, if the file is in the
//! plan's folder.

use super::dataset::{Around, Content, both};
use super::extra::Extra;
use super::leaves::At;
use super::lengths::Length;
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::files::{fits, named};
use crate::import::said::Said;
use crate::import::text::{name_of, scalar};

/// Mean lengths of ShareGPT's prompts and responses in the vLLM paper (arXiv:2309.06180), in tokens; used if
/// the texts are unavailable.
const STAND_IN: (f64, f64) = (161.0, 338.0);
/// File name of ShareGPT at its source.
const SHAREGPT: &str = "ShareGPT_V3_unfiltered_cleaned_split.json";

/// Returns sweepline's name for AIPerf's format of a trace; `None` if the format is not a trace
/// format.
fn trace_format(format: &str) -> Option<&'static str> {
    match format {
        "mooncake_trace" => Some("mooncake"),
        "burst_gpt_trace" => Some("burstgpt"),
        _ => None,
    }
}

/// Returns the scenario of a file.
pub(super) fn of_file(dataset: At, extra: &Extra, around: &Around) -> Result<Content, ImportError> {
    told(dataset);
    let format = dataset.get("format").text();
    let default = if around.is_schedule { "mooncake_trace" } else { "single_turn" };
    let format = format.unwrap_or_else(|| Said::default(default.to_owned(), "default of AIPerf"));
    let path = dataset.get("path").text();
    let Some(path) = path else {
        dataset
            .get("records")
            .missing("texts must be in a file: write them to a file, and name it with `data: { file: FILE }`");
        return Ok(stand_in("records", dataset, extra, "its texts are in the configuration"));
    };
    match trace_format(&format.value) {
        Some(known) => trace(dataset, &path, known, extra, around),
        None => Ok(texts(dataset, &path, &format, extra, around)),
    }
}

fn told(dataset: At) {
    dataset.get("entries").needless("a run has a duration, and records repeat once all were sent");
    dataset.get("random_seed").needless("the plan's `seed` determines all random draws");
    dataset.get("block_size").needless("blocks of a trace have 512 tokens");
}

/// Returns the replay speed of a trace as a fragment of the field `trace`, and its origin. Both are empty if
/// no speed is set.
fn speed(dataset: At) -> (String, String) {
    let synthesis = dataset.get("synthesis");
    let mut said = None;
    for at in [synthesis.get("speedup_ratio"), dataset.get("replay_speedup")] {
        said = said.or_else(|| at.number().filter(|said| said.value.is_positive()));
    }
    for (key, at) in synthesis.entries() {
        let is_one = at.float().is_some_and(|said| said.value == 1.0);
        match key {
            "speedup_ratio" => {}
            _ if is_one => at.needless("it changes nothing"),
            "max_isl" | "max_osl" => at.missing("a trace's requests are not filtered: sample the file first"),
            _ => at.missing("a trace is replayed as recorded"),
        }
    }
    said.map_or_else(Default::default, |said| (format!(", speed: {}", said.value), format!(", {}", said.origin)))
}

fn trace(
    dataset: At,
    path: &Said<String>,
    known: &str,
    extra: &Extra,
    around: &Around,
) -> Result<Content, ImportError> {
    let (speed, more) = speed(dataset);
    dataset.get("sampling").needless("a trace is replayed in its order");
    let read = named(around.folder, &path.value).and_then(|file| {
        let file = scalar(&file);
        let value = match around.is_schedule {
            true => format!("trace: {{ file: {file}, as: {known}{speed} }}"),
            false => format!("lengths: {{ data: {{ file: {file}, as: {known} }} }}"),
        };
        let load = if around.is_schedule { "" } else { ", batch_size: [1]" };
        check(around, &value, load).map(|()| value)
    });
    let hint = name_of(&stem(&path.value), "trace");
    match read {
        Ok(value) => {
            let (key, value) = value.split_once(": ").unwrap_or_default();
            let base = Field::new("base", "B1", "a recorded trace");
            let fields = vec![base, Field::new(key, value, format!("{}{more}", path.origin))];
            Ok(Content { hint, fields, turns: 1.0, is_trace: key == "trace" })
        }
        Err(why) if around.is_schedule => {
            let what = format!("{}: {why}", path.origin);
            let remedy =
                "put the trace into the plan's folder (that of --output, or else the current one) and import again";
            Err(ImportError::shape(dataset.get("path").place(around.file), what, remedy))
        }
        Err(why) => {
            dataset.get("path").missing(&why);
            Ok(stand_in(&hint, dataset, extra, "its lengths are in a missing file"))
        }
    }
}

/// Checks that a plan accepts this field, unless `load` is empty, as for a replayed trace.
fn check(around: &Around, field: &str, load: &str) -> Result<(), String> {
    match load {
        "" => Ok(()),
        _ => fits(around.folder, "", &format!(", {field}")),
    }
}

fn stem(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split('.').next().unwrap_or_default().to_owned()
}

fn texts(dataset: At, path: &Said<String>, format: &Said<String>, extra: &Extra, around: &Around) -> Content {
    let hint = name_of(&stem(&path.value), "data");
    let map = match format.value.as_str() {
        "single_turn" | "random_pool" => "map: { prompt: text }",
        other => {
            let why = format!(
                "cannot read the format {}; `data: {{ file: FILE, as: columns, map: {{ … }} }}` reads tables",
                crate::import::text::one_line(other)
            );
            dataset.get("format").missing(&why);
            dataset.get("path").missing(&why);
            return stand_in(&hint, dataset, extra, &why);
        }
    };
    let asked = answer(dataset, extra);
    let order = order(dataset);
    let read = named(around.folder, &path.value).and_then(|file| {
        let value = format!("{{ file: {}, as: columns, {map}, on_bad: skip{order} }}", scalar(&file));
        fits(around.folder, "", &format!(", data: {value}, output_tokens: 1")).map(|()| value)
    });
    match read {
        Ok(value) => {
            let why = "text shared by the recorded prompts stays shared; nothing is shared with other runs";
            let fields = vec![
                Field::new("base", "B1", "texts of a file"),
                Field::new("data", value, &path.origin),
                Field::new("nonce", "run", why),
                Field::new("output_tokens", asked.value, asked.origin),
            ];
            Content { hint, fields, turns: 1.0, is_trace: false }
        }
        Err(why) => {
            dataset.get("path").missing(&why);
            stand_in(&hint, dataset, extra, "its file cannot be read")
        }
    }
}

fn order(dataset: At) -> &'static str {
    match dataset.get("sampling").text().map(|said| said.value).as_deref() {
        Some("sequential") => ", order: file",
        Some("random") => {
            dataset.get("sampling").differs("every record is sent once before any is repeated");
            ""
        }
        _ => "",
    }
}

fn answer(dataset: At, extra: &Extra) -> Length {
    let own = dataset.get("osl");
    let said = if own.is_there() { super::lengths::length(own, 1).filter(|length| length.is_fixed) } else { None };
    if let Some(Said { value, origin }) = &extra.output {
        return Length::fixed(*value, 1, origin.clone());
    }
    said.unwrap_or_else(|| {
        Length::fixed(256.0, 1, "not set: AIPerf leaves it to the model; default of sweepline".to_owned())
    })
}

fn stand_in(hint: &str, dataset: At, extra: &Extra, why: &str) -> Content {
    let (prompt, output) = STAND_IN;
    let origin = "placeholder: mean of ShareGPT in the vLLM paper (arXiv:2309.06180)";
    let prompt = Length::fixed(prompt, 16, origin.to_owned());
    let own = extra.output.is_some() || dataset.get("osl").is_there();
    let output = if own { answer(dataset, extra) } else { Length::fixed(output, 1, origin.to_owned()) };
    let why = format!("{why}: the plan sends its own prompts of {} tokens and requests {}", prompt.value, output.value);
    dataset.notes().differs(&format!("data set {}", crate::import::text::one_line(hint)), &why, 0);
    let mut fields = vec![Field::new("base", "B1", "prompts that differ")];
    fields.extend(both(prompt, output));
    Content { hint: name_of(hint, "data"), fields, turns: 1.0, is_trace: false }
}

/// Returns the scenario of a public data set.
pub(super) fn public(dataset: At, extra: &Extra, around: &Around) -> Content {
    told(dataset);
    let said = dataset.get("dataset").text();
    let word = said.as_ref().map_or_else(|| "public".to_owned(), |said| said.value.clone());
    if word == "sharegpt"
        && let Ok(file) = named(around.folder, SHAREGPT)
    {
        let order = order(dataset);
        let value = format!("{{ file: {}, as: sharegpt, on_bad: skip{order} }}", scalar(&file));
        if fits(around.folder, "", &format!(", data: {value}")).is_ok() {
            let origin = said.map(|said| said.origin).unwrap_or_default();
            let why = "text shared by the recorded prompts stays shared; nothing is shared with other runs";
            let fields = vec![
                Field::new("base", "B1", "texts of a file"),
                Field::new("data", value, format!("{origin}: its file is in the plan's folder")),
                Field::new("nonce", "run", why),
            ];
            return Content { hint: word, fields, turns: 1.0, is_trace: false };
        }
    }
    dataset.get("sampling").needless("every request has its own prompt");
    let why = "nothing is downloaded: fetch it (docs/DATASETS.md) and write `data: { file: FILE }` in the scenario";
    dataset.get("dataset").missing(why);
    stand_in(&word, dataset, extra, "the data set is missing")
}
