//! Converts a data set of AIPerf (`src/aiperf/config/dataset/`) to a scenario.

use super::dataset::{Around, Content, both};
use super::extra::Extra;
use super::file;
use super::leaves::At;
use super::lengths::{Length, length, short};
use crate::import::draft::Field;
use crate::import::error::ImportError;
use crate::import::said::Said;
use crate::protocol::Task;

/// Minimum length of a prompt in a scenario, in tokens.
const SHORTEST: u32 = 16;
/// AIPerf's default prompt length, in tokens.
const PROMPT: f64 = 550.0;
/// Default output length of a scenario, in tokens.
const OUTPUT: f64 = 256.0;

/// Returns the scenario of a data set.
pub(super) fn content(dataset: At, extra: &Extra, around: &Around) -> Result<Content, ImportError> {
    told(dataset);
    if around.task != Task::Generate {
        dataset.get("type").needless("texts of these lengths are generated");
    }
    let kind = dataset.get("type").text().map_or_else(|| "synthetic".to_owned(), |said| said.value);
    let mut made = match (kind.as_str(), around.task) {
        (_, Task::Embed) => embedded(dataset, "inputs"),
        (_, Task::Rank) => ranked(dataset),
        ("file", Task::Generate) => file::of_file(dataset, extra, around)?,
        ("public", Task::Generate) => file::public(dataset, extra, around),
        ("synthetic", Task::Generate) => {
            dataset.get("type").needless("prompts are generated unless a file is named");
            synthetic(dataset, extra)
        }
        (other, Task::Generate) => {
            let what = format!("unknown data set type `{}`", crate::import::text::one_line(other));
            return Err(ImportError::shape(dataset.place(around.file), what, "use synthetic, file or public"));
        }
    };
    if around.task == Task::Generate {
        made.fields.push(ignore_eos(extra));
        let is_said = extra.fields.iter().any(|field| field.key == "temperature");
        if !is_said {
            made.fields.push(Field::new("temperature", "omit", "not set: AIPerf leaves it to the server"));
        }
        made.fields.extend(extra.fields.iter().cloned());
    }
    made.fields.extend(extra.field());
    Ok(made)
}

/// For every kind of data set, lists the settings that the plan does not contain, or contains with
/// a different meaning.
fn told(dataset: At) {
    dataset.get("name").needless("a name, without effect on results");
    if dataset.get("type").text().is_none_or(|said| said.value != "file" && said.value != "public") {
        dataset.get("entries").differs(
            "AIPerf generates this many prompts and sends them repeatedly, so a prefix cache may hold them; here each \
             request has its own prompt",
        );
        dataset.get("sampling").needless("every request has its own prompt");
        dataset.get("random_seed").needless("the plan's `seed` determines all random draws");
    }
    for key in ["images", "audio", "video"] {
        dataset.get(key).missing("requests carry text only");
    }
    let prompts = dataset.get("prompts");
    prompts.get("corpus").differs("prompts are sweepline's own prose, truncated to their length");
    prompts.get("block_size").needless("blocks of a trace have 512 tokens");
    for at in [prompts.get("cache_bust"), dataset.get("cache_bust")] {
        at.needless("each prompt starts with its own nonce: `nonce`");
    }
}

fn ignore_eos(extra: &Extra) -> Field {
    match &extra.ignore_eos {
        Some(said) => Field::new("ignore_eos", said.value.to_string(), &said.origin),
        None => Field::new("ignore_eos", "false", "not set: AIPerf does not send it"),
    }
}

fn prompt(dataset: At) -> Length {
    let prompts = dataset.get("prompts");
    let said = [prompts.get("isl"), dataset.get("isl")].into_iter().find(|at| at.is_there());
    let read = said.and_then(|at| length(at, SHORTEST));
    read.unwrap_or_else(|| Length::fixed(PROMPT, SHORTEST, "default of AIPerf".to_owned()))
}

fn output(dataset: At, extra: &Extra) -> Length {
    let prompts = dataset.get("prompts");
    let said = [prompts.get("osl"), dataset.get("osl")].into_iter().find(|at| at.is_there());
    let own = said.and_then(|at| length(at, 1));
    if let Some(Said { value, origin }) = &extra.output {
        if let Some(at) = said {
            at.needless("the request's own field sets the output length");
        }
        return Length::fixed(*value, 1, origin.clone());
    }
    own.unwrap_or_else(|| {
        let why =
            "in AIPerf, the model decides when a response ends; a scenario requests a length, here at most 256 tokens";
        dataset.notes().differs("no output length", why, 0);
        Length::fixed(OUTPUT, 1, "not set: AIPerf leaves it to the model; default of sweepline".to_owned())
    })
}

fn synthetic(dataset: At, extra: &Extra) -> Content {
    let prompts = dataset.get("prompts");
    batch(prompts, "one request gets one response");
    dataset.get("rankings").needless("only rankings have documents");
    let turns = turns(dataset);
    let mut fields = Vec::new();
    match &turns {
        Some(_) => fields.push(Field::new("base", "D", "conversations with a growing history")),
        None => fields.push(Field::new("base", "B1", "synthetic prompts that differ")),
    }
    let prefix = dataset.get("prefix_prompts");
    fields.extend(shared(prefix));
    let context = prefix.get("user_context_length").whole();
    let mut hint = "synthetic".to_owned();
    if let Some(pairs) = pairs(prompts.get("sequence_distribution")) {
        let why = "`sequence_distribution` sets the lengths";
        [prompts.get("isl"), prompts.get("osl")].iter().for_each(|at| at.needless(why));
        prefix.get("user_context_length").missing("no tokens can be added to lengths that vary");
        fields.push(pairs);
    } else {
        let (mut asked, mut answer) = (prompt(dataset), output(dataset, extra));
        if let Some(ratio) = prompts.get("random_range_ratio").text() {
            (asked, answer) = ranged(prompts, &ratio, asked, answer);
        }
        if let Some(context) = &context {
            match asked.clone().plus(context) {
                Some(longer) => asked = longer,
                None => prefix.get("user_context_length").missing("no tokens can be added to lengths that vary"),
            }
            if turns.is_some() {
                prefix.get("user_context_length").differs("each turn has these tokens, not only the first one");
            }
        }
        hint = name(&asked, &answer);
        fields.extend(both(asked, answer));
    }
    let count = turns.as_ref().map_or(1.0, |said| said.value);
    if let Some(turns) = turns {
        fields.push(Field::new("turns", format!("{}", turns.value), turns.origin));
        fields.extend(think(dataset));
        hint = format!("turns-{hint}");
    } else {
        for key in ["turn_delay", "turn_delay_ratio"] {
            dataset.get(key).needless("each conversation has one turn");
        }
    }
    Content { hint, fields, turns: count, is_trace: false }
}

/// Returns a name for the scenario, such as `synthetic-512-128`, from the lengths of prompts and responses.
/// If lengths vary, their mean or median is used.
fn name(prompt: &Length, output: &Length) -> String {
    let word = |length: &Length| if length.is_fixed { length.value.clone() } else { middle(&length.value) };
    format!("synthetic-{}-{}", word(prompt), word(output))
}

/// Returns the mean or median of a distribution, given as a value of `lengths`; `mixed` if the value has
/// neither.
fn middle(value: &str) -> String {
    let after = ["mean: ", "median: "].iter().find_map(|key| value.split_once(key)).map(|(_, rest)| rest);
    let number = after.map(|rest| rest.split([',', ' ']).next().unwrap_or_default().to_owned());
    number.unwrap_or_else(|| "mixed".to_owned())
}

/// Converts pairs of a prompt length and an output length, each with a probability.
fn pairs(at: At) -> Option<Field> {
    if !at.is_there() {
        return None;
    }
    let mut rows = Vec::new();
    for row in at.each() {
        let side = |key: &str, least: u32| {
            let at = row.get(key);
            let spread = at.first(&["stddev", "std_dev"]).float().filter(|said| said.value > 0.0);
            if spread.is_some() {
                at.first(&["stddev", "std_dev"]).missing("each pair has fixed lengths");
            }
            let said = if at.is_map() { at.first(&["mean", "value"]).float() } else { at.float() };
            Some(said?.value.ceil().clamp(f64::from(least), 4_000_000.0))
        };
        let weight = row.get("probability").float().map(|said| said.value.min(1e9)).filter(|weight| *weight >= 0.001);
        if let (Some(prompt), Some(output), Some(weight)) = (side("isl", SHORTEST), side("osl", 1), weight) {
            rows.push(format!("[{prompt}, {output}, {}]", short(weight)));
        }
    }
    if rows.is_empty() || rows.len() > 1000 {
        at.missing("no usable pair; write `lengths: { pairs: [[256, 128, 60]] }`");
        return None;
    }
    let origin = at.json().map(|said| said.origin).unwrap_or_default();
    Some(Field::new("lengths", format!("{{ pairs: [{}] }}", rows.join(", ")), origin))
}

/// Converts the requested lengths to ranges, because AIPerf draws lengths uniformly from a range around or
/// below the requested length.
fn ranged(prompts: At, ratio: &Said<String>, prompt: Length, output: Length) -> (Length, Length) {
    let json: Option<serde_json::Value> = serde_json::from_str(&ratio.value).ok();
    let each = json.as_ref().and_then(|json| match json.as_f64() {
        Some(both) => Some((both, both)),
        None => Some((json.get("input")?.as_f64()?, json.get("output")?.as_f64()?)),
    });
    let is_below = prompts.get("random_range_ratio_mode").text().is_some_and(|said| said.value == "sglang");
    let Some((input, answer)) = each.filter(|(a, b)| [a, b].iter().all(|r| (0.0..=1.0).contains(*r))) else {
        prompts.get("random_range_ratio").missing("expected a number from 0 to 1, or one each for input and output");
        return (prompt, output);
    };
    let side = |length: Length, ratio: f64, least: f64| {
        let Some(tokens) = length.value.parse::<f64>().ok().filter(|_| length.is_fixed) else { return length };
        let (low, high) = match is_below {
            true => ((tokens * ratio).floor(), tokens),
            false => ((tokens * (1.0 - ratio)).floor(), (tokens * (1.0 + ratio)).ceil()),
        };
        let (low, high) = (low.max(least), high.max(least));
        if low >= high {
            return length;
        }
        let value = format!("{{ uniform: {{ min: {low}, max: {high} }} }}");
        Length { value, is_fixed: false, origin: format!("{}, {}", length.origin, ratio_origin(prompts)) }
    };
    (side(prompt, input, f64::from(SHORTEST)), side(output, answer, 1.0))
}

fn ratio_origin(prompts: At) -> String {
    prompts.get("random_range_ratio").text().map(|said| said.origin).unwrap_or_default()
}

/// Converts the settings of texts that several prompts share.
fn shared(prefix: At) -> Vec<Field> {
    let bounded = |tokens: u64| tokens.clamp(1, 4_000_000);
    if let Some(system) = prefix.get("shared_system_length").whole().filter(|said| said.value > 0) {
        return vec![Field::new("system_tokens", bounded(system.value).to_string(), system.origin)];
    }
    let (size, length) = (prefix.get("pool_size").whole(), prefix.get("length").whole());
    match (size, length) {
        (Some(size), Some(length)) if size.value > 0 && length.value > 0 => {
            if length.value < u64::from(SHORTEST) {
                prefix.get("length").differs(&format!("a shared text has at least {SHORTEST} tokens"));
            }
            let tokens = length.value.clamp(u64::from(SHORTEST), 4_000_000);
            let value = format!("{{ tokens: {tokens}, groups: {} }}", size.value.clamp(1, 100_000));
            vec![Field::new("prefix", value, format!("{}, {}", size.origin, length.origin))]
        }
        _ => {
            let why = "shared texts need both a count and a length; nothing is shared";
            for key in ["pool_size", "length"] {
                prefix.get(key).missing(why);
            }
            Vec::new()
        }
    }
}

fn turns(dataset: At) -> Option<Said<f64>> {
    let at = dataset.get("turns");
    let mean = if at.is_map() { at.first(&["mean", "value"]).float() } else { at.float() };
    if at.get("stddev").float().is_some_and(|said| said.value > 0.0) {
        at.get("stddev")
            .differs("every conversation has the mean number of turns; `data` of conversations lets it vary");
    }
    Some(mean?.map(|turns| turns.round().clamp(1.0, 1000.0))).filter(|said| said.value > 1.0)
}

/// Converts the pause between turns.
fn think(dataset: At) -> Option<Field> {
    let at = dataset.get("turn_delay");
    let ratio = dataset.get("turn_delay_ratio").float();
    let factor = ratio.as_ref().map_or(1.0, |said| said.value);
    let mean = if at.is_map() { at.first(&["mean", "value"]).float() } else { at.float() }?;
    let origin = ratio.map_or_else(|| mean.origin.clone(), |ratio| format!("{}, {}", mean.origin, ratio.origin));
    let millis = |value: f64| format!("{}ms", (value * factor).round().clamp(1.0, 86_400_000.0));
    if mean.value * factor < 1.0 {
        return None;
    }
    let sd = at.get("stddev").float().filter(|said| said.value * factor >= 1.0);
    let value = match &sd {
        None => millis(mean.value),
        Some(sd) => {
            at.get("stddev").differs(
                "pauses are lognormal with this mean and deviation; in AIPerf, they are normal and never below 0",
            );
            format!("{{ lognormal: {{ mean: {}, sd: {} }} }}", millis(mean.value), millis(sd.value))
        }
    };
    Some(Field::new("think", value, origin))
}

/// Lists the number of texts per request as unneeded, because the API accepts only one.
fn batch(prompts: At, why: &str) {
    if prompts.get("batch_size").whole().is_some() {
        prompts.get("batch_size").needless(why);
    }
}

fn embedded(dataset: At, texts: &str) -> Content {
    let length = prompt(dataset);
    let prompts = dataset.get("prompts");
    for at in [prompts.get("osl"), dataset.get("osl"), dataset.get("turns"), dataset.get("turn_delay")] {
        at.needless("embeddings have no output tokens");
    }
    let count = prompts.get("batch_size").whole().map(|said| said.map(|count| count.clamp(1, 10_000)));
    let count = count.unwrap_or_else(|| Said::default(1, "default of AIPerf"));
    let hint = format!("texts-{}", if length.is_fixed { length.value.clone() } else { middle(&length.value) });
    let mut fields = vec![Field::new("base", "B1", "synthetic texts that differ")];
    fields.push(one(length));
    fields.push(Field::new(texts, count.value.to_string(), count.origin));
    Content { hint, fields, turns: 1.0, is_trace: false }
}

/// Returns the field for the prompt lengths of requests without output.
fn one(length: Length) -> Field {
    match length.is_fixed {
        true => Field::new("prompt_tokens", length.value, length.origin),
        false => Field::new("lengths", format!("{{ prompt: {}, output: 1 }}", length.value), length.origin),
    }
}

fn ranked(dataset: At) -> Content {
    let rankings = dataset.get("rankings");
    let side = |key: &str, least: u32| {
        let at = rankings.get(key);
        let read = at.is_there().then(|| length(at, least)).flatten();
        if read.as_ref().is_some_and(|length| !length.is_fixed) {
            at.differs("every request has the mean number or length");
        }
        read.map(|length| match length.is_fixed {
            true => length,
            false => Length { value: middle(&length.value), is_fixed: true, origin: length.origin },
        })
    };
    let own = |key: &str, least: u32, default: f64| {
        side(key, least).unwrap_or_else(|| Length::fixed(default, least, "default of AIPerf".to_owned()))
    };
    let documents = side("passages", 1).or_else(|| {
        let said = dataset.get("prompts").get("batch_size").whole()?;
        Some(Length::fixed(said.value as f64, 1, said.origin))
    });
    let documents = documents.unwrap_or_else(|| Length::fixed(1.0, 1, "default of AIPerf".to_owned()));
    let passage = side("passage_tokens", SHORTEST).unwrap_or_else(|| match prompt(dataset) {
        length if length.is_fixed => length,
        length => Length { value: middle(&length.value), is_fixed: true, origin: length.origin },
    });
    let query = own("query_tokens", 1, PROMPT);
    let fields = vec![
        Field::new("base", "B1", "synthetic texts that differ"),
        Field::new("prompt_tokens", &passage.value, passage.origin),
        Field::new("documents", &documents.value, documents.origin),
        Field::new("query_tokens", query.value, query.origin),
    ];
    Content { hint: format!("passages-{}", passage.value), fields, turns: 1.0, is_trace: false }
}
