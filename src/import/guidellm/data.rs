//! Converts `data` to a scenario.
//!
//! Lengths with a deviation follow a normal distribution, reaching up to five deviations to each side unless
//! bounds are given; values beyond the bounds are clamped (`IntegerRangeSampler` of `utils/random.py`). If
//! only bounds are given, lengths are uniform.

use crate::import::body::Body;
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::files::{fits, named};
use crate::import::importer::Context;
use crate::import::job::Around;
use crate::import::said::Said;
use crate::import::spread::{Spread, lengths};
use crate::import::text::{scalar, seconds, text_value};
use crate::import::tree::At;
use crate::plan::Api;
use crate::units::Decimal;

/// Number of output tokens to request if the source does not set this number.
const UNSAID: u32 = 1024;

/// The content of the requests.
pub(super) struct Content {
    /// A hint for the scenario's name.
    pub(super) name: String,
    /// The fields of the scenario.
    pub(super) fields: Vec<Field>,
    /// Whether a trace sets the send times.
    pub(super) is_trace: bool,
}

/// Reads the data. If no plan can send it, lists the data and returns `None`.
pub(super) fn read(
    at: At,
    api: Api,
    mut body: Body,
    endpoint: &[Field],
    around: &Around,
    context: &Context,
    line: usize,
) -> Result<Option<Content>, ImportError> {
    let sources = at.get("data").map(At::list).unwrap_or_default();
    let Some(source) = sources.first().copied() else {
        let what = "`data` is missing";
        return Err(ImportError::shape(
            &context.wishes.name,
            what,
            "write --data kind=synthetic_text,prompt_tokens=256,output_tokens=128",
        ));
    };
    for more in sources.iter().skip(1) {
        more.missing("a scenario has one data set, here the first; a `mix` of scenarios sends several");
    }
    let kind = source.get("kind").and_then(At::text);
    let asked = body.output_tokens();
    let kind_name = kind.as_ref().map_or("synthetic_text", |kind| kind.value.as_str());
    let content = match kind_name {
        "synthetic_text" => {
            let (content, told) = synthetic(source, api, asked);
            told.tell(context, line);
            Some(content)
        }
        "trace_synthetic" | "trace_minimal" | "trace_mooncake" | "trace" => trace(source, around),
        "json_file" | "csv_file" | "text_file" | "parquet_file" | "file" => file(source, at, asked, around),
        _ => {
            let why = "this is skipped: nothing is downloaded, and no images, speech or third-party documents are \
                       sent; `data: { file: FILE }` of a scenario sends a data set from the plan's folder";
            source.missing(why);
            None
        }
    };
    loader(at, kind_name, content.is_some());
    let Some(mut content) = content else { return Ok(None) };
    if let (Some(kind), Some(base)) = (&kind, content.fields.first_mut()) {
        base.origin = format!("{}: {}", kind.origin, base.origin);
    }
    if api == Api::Embeddings {
        content.fields.retain(|field| !["output_tokens", "turns", "think"].contains(&field.key.as_str()));
    } else {
        body.add_default("ignore_eos", true.into(), "guidellm requests full-length responses if the length is given");
        body.add_default("temperature", serde_json::Value::Null, "not set: guidellm leaves it to the server");
    }
    let engine = endpoint.iter().find(|field| field.key == "engine").map_or("", |field| field.value.as_str());
    let known: Vec<String> = content.fields.iter().map(|field| field.key.clone()).collect();
    let more = body.fields(engine, context.notes, line);
    content.fields.extend(more.into_iter().filter(|field| !known.contains(&field.key)));
    Ok(Some(content))
}

/// Reads how data is loaded: the number of records and their order.
fn loader(at: At, kind: &str, is_sent: bool) {
    if let Some(loader) = at.get("data_loader") {
        let is_made = kind == "synthetic_text";
        for (key, value) in loader.entries() {
            match key {
                "samples" if is_made => value.needless("prompts are generated as needed"),
                "samples" if value.json().as_i64() == Some(-1) => value.needless("all records are sent"),
                "samples" => value.missing(
                    "all records of a file are sent repeatedly; `sweepline dataset sample` writes a smaller file",
                ),
                // This setting is read together with the file.
                "shuffle" if is_sent && !is_made => {}
                _ => value.needless("data sets are read when the plan is loaded"),
            }
        }
    }
    if kind == "synthetic_text" || !is_sent {
        for key in ["data_column_mapper", "data_args"] {
            if let Some(there) = at.get(key) {
                match is_sent {
                    true => there.needless("generated prompts have no columns"),
                    false => there.missing("its data set is skipped"),
                }
            }
        }
    }
}

/// Returns a length as guidellm draws it; `None` if it is not set.
fn spread(source: At, name: &str) -> Option<Said<Spread>> {
    let get = |end: &str| source.get(&format!("{name}{end}")).and_then(At::whole);
    let mean = get("")?;
    // `_variance` is an earlier name of the deviation.
    let sd = get("_stdev").or_else(|| get("_variance"));
    let (min, max) = (get("_min"), get("_max"));
    let origins: Vec<&str> = [Some(&mean), sd.as_ref(), min.as_ref(), max.as_ref()]
        .into_iter()
        .flatten()
        .map(|said| said.origin.as_str())
        .collect();
    let origin = origins.join(", ");
    let (low, high) = (min.map(|said| said.value), max.map(|said| said.value));
    let value = match sd.filter(|sd| sd.value > 0) {
        Some(sd) => {
            let far = sd.value.saturating_mul(5);
            let min = low.unwrap_or_else(|| mean.value.saturating_sub(far).max(1));
            let max = high.unwrap_or_else(|| mean.value.saturating_add(far));
            Spread::Normal { mean: mean.value, sd: sd.value, min, max }
        }
        None => match (low.unwrap_or(mean.value), high.unwrap_or(mean.value)) {
            (from, to) if from < to => {
                if let (Some(_), Some(_), Some(at)) = (low, high, source.get(name)) {
                    at.needless("with both bounds and no deviation, lengths are uniform");
                }
                Spread::Even(from, to)
            }
            (low, _) => Spread::One(low),
        },
    };
    Some(Said { value, origin })
}

/// The entries to list for generated prompts, each with the setting of the source and the reason.
#[derive(Default)]
struct Told {
    /// Single lengths that the plan changes.
    lost: Vec<(String, String)>,
    /// Distributions of lengths whose shortest values cannot be drawn.
    cut: Vec<(String, String)>,
    /// Values that are drawn in a different way.
    differs: Vec<(String, String)>,
}

impl Told {
    fn tell(&self, context: &Context, line: usize) {
        self.lost.iter().for_each(|(what, why)| context.notes.missing(what, why, line));
        self.cut.iter().for_each(|(what, why)| context.notes.needless(what, why, line));
        self.differs.iter().for_each(|(what, why)| context.notes.differs(what, why, line));
    }
}

fn synthetic(source: At, api: Api, asked: Option<Said<u32>>) -> (Content, Told) {
    let mut told = Told::default();
    let prompt = spread(source, "prompt_tokens")
        .unwrap_or_else(|| Said::default(Spread::One(256), "no prompt_tokens: set the prompt length"));
    let given = spread(source, "output_tokens");
    let output = match (given, asked) {
        (Some(given), asked) => {
            let why = "`data` determines the output length";
            told.differs.extend(asked.map(|asked| (asked.origin, why.to_owned())));
            Some(given)
        }
        (None, Some(asked)) => Some(asked.map(Spread::One)),
        (None, None) if api == Api::Embeddings => None,
        (None, None) => Some(Said::default(Spread::One(UNSAID), "no output_tokens: set the output length")),
    };
    let output = output.filter(|_| api != Api::Embeddings);
    let mean = |spread: &Spread| match spread {
        Spread::One(mean) | Spread::Normal { mean, .. } => *mean,
        Spread::Even(low, high) => low.midpoint(*high),
    };
    let mut name = format!("synthetic-{}", mean(&prompt.value));
    if let Some(output) = &output {
        name = format!("{name}-{}", mean(&output.value));
    }
    let mut fields = turns(source, &mut told);
    fields.extend(prefix(source, &mut told));
    let (of_lengths, changed) = lengths(prompt, output);
    let is_one = of_lengths.iter().all(|field| field.key != "lengths");
    if is_one {
        told.lost.extend(changed)
    } else {
        told.cut.extend(changed)
    }
    fields.extend(of_lengths);
    for (key, value) in source.entries() {
        let why = match key {
            "branches" => "a conversation has no branches: a `mix` of scenarios sends several kinds",
            "tools" | "tool_call_turns" | "server_tool_call_turns" => {
                "tools are never called; `extra: { tools: […] }` sends tool definitions"
            }
            _ if key.starts_with("tool_response") => "tools are never called",
            _ if key.starts_with("first_") => {
                "all turns of a conversation share one distribution of lengths: `lengths`"
            }
            "source" | "samples" | "random_seed" | "load_kwargs" => {
                value
                    .needless("sweepline generates as many prompts as needed from its own prose, by the plan's `seed`");
                continue;
            }
            _ => continue,
        };
        value.missing(why);
    }
    (Content { name, fields, is_trace: false }, told)
}

/// Returns the field `base`, and for conversations also `turns` and `think`.
fn turns(source: At, told: &mut Told) -> Vec<Field> {
    let turns = source.get("turns").and_then(At::whole).filter(|turns| turns.value > 1);
    let Some(turns) = turns else { return vec![Field::new("base", "B1", "prompts that differ")] };
    let mut fields =
        vec![Field::new("base", "D", &turns.origin), Field::new("turns", turns.value.to_string(), &turns.origin)];
    let get = |end: &str| source.get(&format!("delay{end}")).and_then(At::seconds);
    if let Some(mean) = get("").filter(|mean| mean.value > 0.0) {
        let (sd, min, max) = (get("_stdev"), get("_min"), get("_max"));
        let mut origin = mean.origin.clone();
        let far = sd.as_ref().map_or(0.0, |sd| 5.0 * sd.value);
        let low = min.map_or(mean.value - far, |min| min.value).max(0.0);
        let high = max.map_or(mean.value + far, |max| max.value);
        let value = match sd.filter(|sd| sd.value > 0.0 && low < mean.value && mean.value < high) {
            Some(sd) => {
                origin = format!("{origin}, {}", sd.origin);
                let why = "pauses follow a lognormal distribution here, with the same mean and deviation";
                told.differs.push((sd.origin.clone(), why.to_owned()));
                let [mean, sd, low, high] = [mean.value, sd.value, low, high].map(seconds);
                format!("{{ lognormal: {{ mean: {mean}, sd: {sd}, min: {low}, max: {high} }} }}")
            }
            None if low < high => format!("{{ uniform: {{ min: {}, max: {} }} }}", seconds(low), seconds(high)),
            None => seconds(mean.value),
        };
        fields.push(Field::new("think", value, origin));
    }
    fields
}

/// Returns `prefix`, which describes the texts that prompts share. If some of the buckets have no text, only
/// a share of the requests has a shared text.
fn prefix(source: At, told: &mut Told) -> Option<Field> {
    let buckets = source.get("prefix_buckets").map(At::list).unwrap_or_default();
    let number =
        |at: At, key: &str, otherwise: u32| at.get(key).and_then(At::whole).map_or(otherwise, |said| said.value);
    let read: Vec<(At, u32, u32)> = buckets
        .iter()
        .map(|one| (*one, number(*one, "prefix_tokens", 0), number(*one, "bucket_weight", 100)))
        .collect();
    let from = read.iter().find(|(_, tokens, _)| *tokens > 0).map_or(source, |(one, ..)| *one);
    for (other, tokens, _) in read.iter().filter(|(one, ..)| one.origin() != from.origin()) {
        match tokens {
            0 => drop(other.take()),
            _ => {
                other.missing("shared texts have one length, here the first bucket's; a `mix` of scenarios has several")
            }
        }
    }
    let tokens = from.get("prefix_tokens").and_then(At::whole).filter(|tokens| tokens.value > 0)?;
    let count = from.get("prefix_count").and_then(At::whole);
    let groups = count.as_ref().map_or(1, |count| count.value.clamp(1, 1_000_000));
    let all: u64 = read.iter().map(|(.., weight)| u64::from(*weight)).sum();
    let shared: u64 = read.iter().filter(|(_, tokens, _)| *tokens > 0).map(|(.., weight)| u64::from(*weight)).sum();
    let share = match all > shared && shared > 0 {
        true => {
            let why = "requests without a shared text start with as many unique tokens here, so that all have the \
                       same length";
            told.differs.push((source.origin(), why.to_owned()));
            format!("share: {}, ", Decimal::new(i64::try_from(shared * 1000 / all).unwrap_or(1000).max(1), 3))
        }
        false => String::new(),
    };
    let mut origin = count.map_or(tokens.origin.clone(), |count| format!("{}, {}", tokens.origin, count.origin));
    if !share.is_empty()
        && let Some(weight) = from.get("bucket_weight").and_then(At::text)
    {
        origin = format!("{origin}, {} of {all}", weight.origin);
    }
    let size = tokens.value.clamp(16, 4_000_000);
    Some(Field::new("prefix", format!("{{ {share}tokens: {size}, groups: {groups} }}"), origin))
}

/// Returns the source's file in the form in which the plan names it, and its origin.
fn path(source: At, around: &Around) -> Result<(String, String), String> {
    let said = source.any(&["path", "source", "file"]).and_then(At::text).ok_or("no file is named")?;
    Ok((scalar(&named(&around.folder, &said.value)?), said.origin))
}

fn trace(source: At, around: &Around) -> Option<Content> {
    let scale = source.get("time_scale").and_then(At::decimal);
    let columns = [
        ("timestamp_column", "time"),
        ("prompt_tokens_column", "input_tokens"),
        ("output_tokens_column", "output_tokens"),
    ];
    let map: Vec<String> = columns
        .iter()
        .filter_map(|(column, field)| Some(format!("{field}: {}", scalar(&source.get(column)?.text()?.value))))
        .collect();
    let found = path(source, around).and_then(|(file, origin)| {
        let mut more =
            if map.is_empty() { String::new() } else { format!(", as: columns, map: {{ {} }}", map.join(", ")) };
        if let Some(scale) = scale.filter(|scale| scale.value.is_positive()) {
            more.push_str(&format!(", speed: {:.3}", 1.0 / scale.value.to_f64()));
        }
        let value = format!("{{ file: {file}{more} }}");
        fits(&around.folder, "", &format!(", trace: {value}"))?;
        Ok(Field::new("trace", value, origin))
    });
    match found {
        Ok(field) => Some(Content { name: "trace".to_owned(), fields: vec![field], is_trace: true }),
        Err(why) => {
            let why = format!(
                "this is skipped: {why}; `trace: {{ file: FILE }}` of a scenario replays a trace in the \
                 plan's folder"
            );
            source.missing(&why);
            None
        }
    }
}

fn file(source: At, at: At, asked: Option<Said<u32>>, around: &Around) -> Option<Content> {
    let mapper = at.get("data_column_mapper");
    let mapped = mapper.map(|mapper| mapper.get("column_mappings").unwrap_or(mapper));
    let column = |name: &str| mapped.and_then(|mapped| mapped.get(name)).and_then(At::text);
    let prompt = column("text_column");
    let length = column("output_tokens_count_column");
    let map: Vec<String> = prompt
        .iter()
        .map(|said| format!("prompt: {}", text_value(&said.value)))
        .chain(length.iter().map(|said| format!("output_tokens: {}", text_value(&said.value))))
        .collect();
    let map = if map.is_empty() { String::new() } else { format!(", as: columns, map: {{ {} }}", map.join(", ")) };
    if let Some(kind) = mapper.and_then(|mapper| mapper.get("kind")) {
        kind.needless("`map` of the data set assigns the columns");
    }
    let shuffle = at.get("data_loader").and_then(|loader| loader.get("shuffle")).and_then(At::flag);
    let order = if shuffle.is_some_and(|said| said.value) { "" } else { ", order: file" };
    let found = path(source, around).and_then(|(file, origin)| {
        let value = format!("{{ file: {file}{map}, on_bad: skip{order} }}");
        fits(&around.folder, "", &format!(", data: {value}, output_tokens: 1"))?;
        Ok(Field::new("data", value, origin))
    });
    match found {
        Ok(field) => {
            let why = "text shared by the recorded prompts stays shared; nothing is shared with other runs";
            let mut fields = vec![Field::new("base", "B1", "texts of a file"), field, Field::new("nonce", "run", why)];
            let output = asked.unwrap_or_else(|| Said::default(UNSAID, "set the output length"));
            if length.is_none() {
                fields.push(Field::new("output_tokens", output.value.to_string(), output.origin));
            }
            Some(Content { name: "file".to_owned(), fields, is_trace: false })
        }
        Err(why) => {
            let why = format!(
                "this is skipped: {why}; `data: {{ file: FILE }}` of a scenario sends a data set in the \
                 plan's folder"
            );
            source.missing(&why);
            None
        }
    }
}
