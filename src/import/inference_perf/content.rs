//! Converts `data` of inference-perf to a scenario.

use std::path::Path;

use super::load::Stages;
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::files::{fits, named};
use crate::import::request::Body;
use crate::import::said::Said;
use crate::import::text::{name_of, one_line, scalar};
use crate::import::tree::At;

/// The length of a scenario's shortest prompt, in tokens.
const SHORTEST: f64 = 16.0;
/// A scenario's maximum length, in tokens.
const LONGEST: f64 = 4_000_000.0;
/// File name of ShareGPT at its source.
const SHAREGPT: &str = "ShareGPT_V3_unfiltered_cleaned_split.json";
/// Mean lengths of ShareGPT from the vLLM paper (arXiv:2309.06180), used if the texts are unavailable.
const STAND_IN: (f64, f64) = (161.0, 338.0);

/// The length of prompts or of outputs: a value of `lengths`, and its origin.
struct Length {
    value: String,
    is_fixed: bool,
    origin: String,
}

/// Returns the scenario: a hint for its name, and its fields.
pub(super) fn scenario(
    file: &str,
    root: At,
    folder: &Path,
    load: &Stages,
    body: Body,
) -> Result<(String, Vec<Field>), ImportError> {
    let data = root.get("data");
    let kind = data.and_then(|at| at.get("type")).and_then(At::text);
    let word = kind.as_ref().map_or("mock", |said| said.value.as_str());
    let (hint, mut fields) = match (word, data) {
        ("shareGPT" | "cnn_dailymail" | "infinity_instruct" | "billsum_conversations", Some(data)) => {
            let api = root.path(&["api", "type"]).and_then(|at| at.peek().word());
            texts(word, data, folder, api.is_none_or(|api| api == "completion"))
        }
        ("synthetic" | "random", Some(data)) => synthetic(file, data, folder, load)?,
        ("shared_prefix", Some(data)) => shared(data, load),
        ("mock", _) => {
            let origin = kind.map_or_else(|| "default of inference-perf".to_owned(), |said| said.origin);
            let base = Field::new("base", "B1", format!("{origin}: prompts that differ"));
            ("mock".to_owned(), vec![base])
        }
        (other, data) => {
            let what = format!("unsupported data type `{}`", one_line(other));
            let remedy = "`data` of conversations, or `trace` of arrivals and lengths, comes closest";
            let error = data.map(|at| at.wrong(file, &what, remedy));
            return Err(error.unwrap_or_else(|| ImportError::shape(file, what, remedy)));
        }
    };
    if load.is_trace && !fields.iter().any(|field| field.key == "trace") {
        let what = "`load.type: trace_replay` needs a trace in `data`";
        let remedy = "name it in `data` too: { type: random, trace: { file: trace.csv, format: AzurePublicDataset } }";
        return Err(ImportError::shape(file, what, remedy));
    }
    if let Some(corpus) = data.and_then(|at| at.get("corpus_file_path")) {
        corpus.differs("prompts are sweepline's own prose, truncated to their length");
    }
    fields.push(ignore_eos(root));
    fields.push(Field::new("temperature", "omit", "inference-perf leaves it to the server"));
    fields.push(stream(root));
    fields.extend(body.fields);
    fields.extend(body.extra);
    Ok((hint, fields))
}

fn ignore_eos(root: At) -> Field {
    let said = root.path(&["server", "ignore_eos"]).and_then(At::flag);
    let said = said.unwrap_or_else(|| Said::default(true, "default of inference-perf"));
    Field::new("ignore_eos", said.value.to_string(), said.origin)
}

fn stream(root: At) -> Field {
    let said = root.path(&["api", "streaming"]).and_then(At::flag);
    let said = said.unwrap_or_else(|| Said::default(false, "default of inference-perf; TTFT and ITL need true"));
    Field::new("stream", said.value.to_string(), said.origin)
}

/// Converts a data set that is a file.
fn texts(word: &str, data: At, folder: &Path, of_completions: bool) -> (String, Vec<Field>) {
    let path = data.get("path").and_then(At::text);
    let (name, origin) = match &path {
        Some(said) => (said.value.clone(), said.origin.clone()),
        None => (SHAREGPT.to_owned(), data.get("type").map(At::origin).unwrap_or_default()),
    };
    let form = if word == "shareGPT" { "as: sharegpt, " } else { "" };
    let filter = if word == "shareGPT" && of_completions { kept(data) } else { Vec::new() };
    let chosen: Vec<String> = filter.iter().map(|(key, range, _)| format!("{key}: {range}")).collect();
    let chosen = if chosen.is_empty() { String::new() } else { format!(", filter: {{ {} }}", chosen.join(", ")) };
    let read = match (word, &path) {
        ("shareGPT", _) | (_, Some(_)) => named(folder, &name).and_then(|file| {
            let value = format!("{{ file: {}, {form}on_bad: skip{chosen} }}", scalar(&file));
            fits(folder, "", &format!(", data: {value}")).map(|()| value)
        }),
        _ => Err("nothing is downloaded".to_owned()),
    };
    let base = Field::new("base", "B1", "texts of a data set");
    let is_there = read.is_ok();
    for key in ["input_distribution", "output_distribution"] {
        let Some(at) = data.get(key) else { continue };
        match filter.iter().any(|(_, _, of)| *of == key) {
            true if is_there => {
                at.differs(
                    "texts outside min and max are skipped, as in inference-perf; the filter counts four characters \
                     as a \
                     token",
                );
            }
            true => at.differs(
                "it bounds the data set's lengths, as `filter` of `data` does; until then, all prompts have one \
                 length",
            ),
            false if word == "shareGPT" => {
                at.needless("inference-perf sends whole conversations: it filters only completions")
            }
            false => at.needless("inference-perf ignores it with a data set of this kind"),
        }
    }
    match read {
        Ok(value) => {
            let why = "recorded texts still share what they share in the file; nothing is shared with another run";
            let fields = vec![base, Field::new("data", value, origin), Field::new("nonce", "run", why)];
            (name_of(word, "data"), fields)
        }
        Err(why) => {
            let (prompt, output) = STAND_IN;
            let why = format!(
                "{why}: fetch it (docs/DATASETS.md), and `data: {{ file: FILE }}` of the scenario sends it; until \
                 then, the plan sends its own prompts of {prompt} tokens and requests {output}"
            );
            if let Some(at) = data.get("path").or_else(|| data.get("type")) {
                at.missing(&why);
            }
            let from = "placeholder: mean of ShareGPT in the vLLM paper (arXiv:2309.06180)";
            let fields = vec![
                base,
                Field::new("prompt_tokens", prompt.to_string(), from),
                Field::new("output_tokens", output.to_string(), from),
            ];
            (name_of(word, "data"), fields)
        }
    }
}

/// Returns the filter for ShareGPT's texts: key, range, and the table that sets it. The table's other fields
/// have no effect (`inference_perf/datagen/dataset/hf_sharegpt_datagen.py`; 10 and 1024 are its defaults).
fn kept<'k>(data: At) -> Vec<(&'k str, String, &'k str)> {
    let sides = [("prompt_tokens", "input_distribution"), ("output_tokens", "output_distribution")];
    let range = |(key, of): (&'k str, &'k str)| {
        let at = data.get(of).filter(|at| at.is_table())?;
        let bound = |name: &str, default: u32| at.get(name).and_then(At::whole).map_or(default, |said| said.value);
        Some((key, format!("{{ min: {}, max: {} }}", bound("min", 10), bound("max", 1024)), of))
    };
    sides.into_iter().filter_map(range).collect()
}

/// Converts prompts with random lengths, or the prompts of a trace.
fn synthetic(file: &str, data: At, folder: &Path, load: &Stages) -> Result<(String, Vec<Field>), ImportError> {
    if let Some(at) = data.get("type") {
        if data.get("use_chat_template").and_then(At::flag).is_some_and(|said| said.value)
            && let Some(template) = data.get("use_chat_template")
        {
            template.differs("`api: chat` lets the server apply its template, and prompt lengths include it");
        }
        at.text();
    }
    if let Some(trace) = data.get("trace") {
        return of_trace(file, data, trace, folder, load);
    }
    let side = |key: &str, least: f64| data.get(key).map_or_else(|| Ok(default(least)), |at| length(at, least));
    let prompt = side("input_distribution", SHORTEST)?;
    let output = side("output_distribution", 1.0)?;
    let origin = data.get("type").map(At::origin).unwrap_or_default();
    let hint = format!("{}-{}", middle(&prompt.value), middle(&output.value));
    let mut fields = vec![Field::new("base", "B1", format!("{origin}: prompts that differ"))];
    fields.extend(both(prompt, output));
    Ok((format!("synthetic-{hint}"), fields))
}

/// Default lengths.
fn default(least: f64) -> Length {
    let value = format!("{{ normal: {{ mean: 512, sd: 200, min: {}, max: 1024 }} }}", least.max(10.0));
    Length { value, is_fixed: false, origin: "default of inference-perf".to_owned() }
}

fn both(prompt: Length, output: Length) -> Vec<Field> {
    if prompt.is_fixed && output.is_fixed {
        let prompt = Field::new("prompt_tokens", prompt.value, prompt.origin);
        return vec![prompt, Field::new("output_tokens", output.value, output.origin)];
    }
    let value = format!("{{ prompt: {}, output: {} }}", prompt.value, output.value);
    vec![Field::new("lengths", value, format!("{}; {}", prompt.origin, output.origin))]
}

/// Returns the mean of a value of `lengths`, for use in a name.
fn middle(value: &str) -> String {
    match value.split_once("mean: ") {
        Some((_, rest)) => rest.split([',', ' ']).next().unwrap_or_default().to_owned(),
        None if value.starts_with('{') => "mixed".to_owned(),
        None => value.to_owned(),
    }
}

/// Converts a distribution or a number.
fn length(at: At, least: f64) -> Result<Length, ImportError> {
    if !at.is_table() {
        let said = at.whole();
        let tokens = said.as_ref().map_or(50.0, |said| f64::from(said.value));
        bounded(at, tokens, least);
        let origin = said.map(|said| said.origin).unwrap_or_default();
        return Ok(Length { value: tokens.clamp(least, LONGEST).to_string(), is_fixed: true, origin });
    }
    let number = |key: &str, default: f64| {
        let said = at.get(key).and_then(At::decimal).map(|said| said.value.to_f64());
        said.filter(|value| value.is_finite() && *value >= 0.0).unwrap_or(default)
    };
    let kind = at.get("type").and_then(At::text).map_or_else(|| "normal".to_owned(), |said| said.value);
    if let Some(count) = at.get("total_count") {
        count.needless("each request has its own prompt, as many as the window needs");
    }
    let (low, high, mean) = (number("min", 10.0), number("max", 1024.0), number("mean", 512.0));
    let variance = at.get("variance").map(|_| number("variance", 0.0).sqrt());
    let sd = variance.unwrap_or_else(|| number("std_dev", 200.0)).min(LONGEST);
    let skew = number("skew", 0.0);
    let is_read = |key: &&str| ["type", "min", "max", "mean", "std_dev", "variance", "skew"].contains(key);
    let keys: Vec<&str> = at.entries().into_iter().map(|(key, _)| key).filter(is_read).collect();
    let origin = format!("{}: {}", at.origin(), keys.join(", "));
    if low < least
        && let Some(at) = at.get("min")
    {
        at.differs(&format!("a length must be at least {least} tokens"));
    }
    let (min, max) = (low.round().clamp(least, LONGEST), high.round().clamp(least, LONGEST));
    let inside = mean.clamp(min, max.max(min));
    if inside != mean
        && kind != "uniform"
        && let Some(at) = at.get("mean")
    {
        at.differs("the mean must be between the bounds: the plan uses the nearer bound");
    }
    let fixed = |value: f64| Length { value: value.round().to_string(), is_fixed: true, origin: origin.clone() };
    if min >= max {
        return Ok(fixed(min));
    }
    let beside: &[&str] = match kind.as_str() {
        "fixed" => &["min", "max", "std_dev", "variance", "skew"],
        "uniform" => &["mean", "std_dev", "variance", "skew"],
        "poisson" => &["std_dev", "variance", "skew"],
        "skew_normal" => &[],
        _ => &["skew"],
    };
    beside.iter().for_each(|key| told_needless(at, key, "this distribution does not use it"));
    let value = match kind.as_str() {
        "fixed" => return Ok(fixed(inside)),
        "uniform" => format!("{{ uniform: {{ min: {min}, max: {max} }} }}"),
        _ if sd < 0.5 && kind != "poisson" => return Ok(fixed(inside)),
        "lognormal" => {
            format!("{{ lognormal: {{ mean: {}, sd: {}, min: {min}, max: {max} }} }}", short(inside), short(sd))
        }
        "poisson" => {
            told(at, "type", "drawn as a normal distribution with the same mean and deviation");
            format!("{{ normal: {{ mean: {}, sd: {}, min: {min}, max: {max} }} }}", short(inside), short(inside.sqrt()))
        }
        "skew_normal" => {
            told(
                at,
                "skew",
                &format!(
                    "a skew of {skew} is not supported: the lengths are lognormal with the same mean and deviation"
                ),
            );
            format!("{{ lognormal: {{ mean: {}, sd: {}, min: {min}, max: {max} }} }}", short(inside), short(sd))
        }
        _ => {
            if kind != "normal" {
                told(at, "type", "unknown distribution: drawn as normal with the same mean and deviation");
            }
            format!("{{ normal: {{ mean: {}, sd: {}, min: {min}, max: {max} }} }}", short(inside), short(sd))
        }
    };
    told(at, "max", "inference-perf clamps values beyond min and max to the bounds; here, they never occur");
    Ok(Length { value, is_fixed: false, origin })
}

fn told(at: At, key: &str, why: &str) {
    if let Some(at) = at.get(key) {
        at.differs(why);
    }
}

fn bounded(at: At, tokens: f64, least: f64) {
    if tokens < least || tokens > LONGEST {
        at.differs(&format!("a length must be from {least} to {LONGEST} tokens: the plan uses the nearest"));
    }
}

fn short(value: f64) -> String {
    ((value * 10_000.0).round() / 10_000.0).to_string()
}

fn of_trace(
    file: &str,
    data: At,
    trace: At,
    folder: &Path,
    load: &Stages,
) -> Result<(String, Vec<Field>), ImportError> {
    let path = trace.get("file").and_then(At::text);
    let form = trace.get("format").and_then(At::text);
    let form = form.unwrap_or_else(|| Said::default("AzurePublicDataset".to_owned(), "default of inference-perf"));
    let Said { value: form, origin: form_origin } = form;
    if form != "AzurePublicDataset" {
        let what = format!("unknown trace format `{}`", one_line(&form));
        return Err(trace.wrong(
            file,
            &what,
            "use AzurePublicDataset; `sweepline dataset inspect FILE` detects a file's format",
        ));
    }
    let path = path.ok_or_else(|| trace.wrong(file, "no file is named", "write `file:`"))?;
    let read = named(folder, &path.value).and_then(|name| {
        let name = scalar(&name);
        fits(folder, "", &format!(", lengths: {{ data: {{ file: {name}, as: azure }} }}")).map(|()| name)
    });
    let name = read.map_err(|why| {
        trace.wrong(
            file,
            &why,
            "put the trace into the plan's folder (that of --output, or else the current one) and import again",
        )
    })?;
    for key in ["input_distribution", "output_distribution"] {
        told_needless(data, key, "the trace sets the lengths");
    }
    let origin = format!("{}, {form_origin}", path.origin);
    let field = match load.is_trace {
        true => Field::new("trace", format!("{{ file: {name}, as: azure }}"), origin),
        false => Field::new("lengths", format!("{{ data: {{ file: {name}, as: azure }} }}"), origin),
    };
    Ok(("trace".to_owned(), vec![Field::new("base", "B1", "a recorded trace"), field]))
}

fn told_needless(at: At, key: &str, why: &str) {
    if let Some(at) = at.get(key) {
        at.needless(why);
    }
}

/// Converts prompts of groups that share a system prompt.
fn shared(data: At, load: &Stages) -> (String, Vec<Field>) {
    let of = data.get("shared_prefix");
    let get = |keys: &[&str]| of.and_then(|at| at.any(keys));
    let whole = |keys: &[&str], default: u32| {
        let said = get(keys).and_then(At::whole).filter(|said| said.value > 0);
        said.unwrap_or_else(|| Said::default(default, "default of inference-perf"))
    };
    let groups = whole(&["num_unique_system_prompts", "num_groups"], 10);
    let each = whole(&["num_users_per_system_prompt", "num_prompts_per_group"], 10);
    let side = |keys: [&str; 3], least: f64, default: u32| {
        let at = keys.iter().find_map(|key| get(&[key]).filter(|at| at.is_table() || *key == keys[0]));
        match at.map(|at| length(at, least)) {
            Some(Ok(length)) => length,
            _ => Length { value: default.to_string(), is_fixed: true, origin: "default of inference-perf".to_owned() },
        }
    };
    let system = side(["system_prompt_len", "system_prompt_len", "system_prompt_len"], 1.0, 100);
    let prompt = side(["question_len", "question_distribution", "question_distribution"], SHORTEST, 50);
    let output = side(["output_len", "output_distribution", "output_distribution"], 1.0, 50);
    for (old, new) in [("question_distribution", "question_len"), ("output_distribution", "output_len")] {
        if let (Some(at), Some(_)) = (get(&[old]), get(&[new]).filter(|at| at.is_table())) {
            at.needless("the length itself defines its distribution");
        }
    }
    let tokens = if system.is_fixed { system.value.clone() } else { middle(&system.value) };
    if !system.is_fixed
        && let Some(at) = get(&["system_prompt_len"])
    {
        at.differs("all shared texts have one length, the mean");
    }
    let mut fields = Vec::new();
    let is_talk = get(&["enable_multi_turn_chat"]).and_then(At::flag).filter(|said| said.value);
    match &is_talk {
        Some(said) => fields.push(Field::new("base", "D", format!("{}: conversations", said.origin))),
        None => fields.push(Field::new("base", "B1", "questions that differ, after shared texts")),
    }
    let tokens = match tokens.parse::<f64>() {
        Ok(short) if short < SHORTEST => {
            if let Some(at) = get(&["system_prompt_len"]) {
                at.differs(&format!("a shared text has at least {SHORTEST} tokens"));
            }
            SHORTEST.to_string()
        }
        _ => tokens,
    };
    let value = format!("{{ tokens: {tokens}, groups: {} }}", groups.value.min(100_000));
    fields.push(Field::new("prefix", value, format!("{}, {}", system.origin, groups.origin)));
    let hint = format!("prefix-{tokens}-{}-{}", middle(&prompt.value), middle(&output.value));
    fields.extend(both(prompt, output));
    match is_talk {
        Some(_) => {
            let users = f64::from(groups.value) * f64::from(each.value);
            let turns = (load.longest / users).ceil().clamp(2.0, 1000.0);
            let origin = format!(
                "{} = {}, {} = {}: the requests per user of the longest stage",
                groups.origin, groups.value, each.origin, each.value
            );
            fields.push(Field::new("turns", turns.to_string(), origin));
            if let Some(at) = get(&["enable_multi_turn_chat"]) {
                at.differs(
                    "in inference-perf, a user's conversation lasts to the end of the stage; here, it ends and \
                     another one begins",
                );
            }
        }
        None => {
            if let Some(at) = get(&["num_users_per_system_prompt", "num_prompts_per_group"]) {
                at.differs(
                    "inference-perf sends this many questions per group repeatedly, so a prefix cache may hold \
                     them; here, every question is new",
                );
            }
        }
    }
    (hint, fields)
}
