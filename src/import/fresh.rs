//! A first plan for a newcomer: what flags and the server itself said, every part explained.

use std::fmt::Write as _;
use std::path::Path;

use super::error::ImportError;
use super::text::{name_of, one_line, scalar, text_value};
use crate::plan::{self, Api, Engine, Format as PlanFormat};
use crate::protocol::Task;
use crate::units::Decimal;

/// What a first plan is about.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// The plan's name.
    pub name: String,
    /// The server; none for the embedded mock.
    pub server: Option<FreshServer>,
    /// The model's id.
    pub model: String,
    /// The most tokens of prompt and answer together, where the server said so.
    pub longest: Option<u64>,
    /// What is varied.
    pub load: FreshLoad,
}

/// A running server.
#[derive(Debug, Clone)]
pub struct FreshServer {
    /// Base address of its API.
    pub url: String,
    /// The engine, and why it is taken for that one.
    pub engine: (Engine, String),
    /// Which API is called.
    pub api: Api,
    /// The environment variable that holds its key.
    pub(crate) api_key_env: Option<String>,
    /// Its version, as it says.
    pub version: Option<String>,
}

/// The loads of a first plan.
#[derive(Debug, Clone)]
pub enum FreshLoad {
    /// Batch sizes: closed loops.
    Closed(Vec<u32>),
    /// Requests per second: open loops.
    Open(Vec<Decimal>),
}

/// The text of a first plan; an error means that a flag's value makes no plan.
pub fn fresh(wish: &Fresh) -> Result<String, ImportError> {
    let mut text = String::new();
    head(&mut text, wish);
    endpoints(&mut text, wish);
    models(&mut text, wish);
    scenarios(&mut text, wish);
    phases(&mut text, wish);
    sweeps(&mut text, wish);
    plan::parse(Path::new("the new plan"), &text, PlanFormat::Yaml)
        .map_err(|errors| ImportError::Plan { name: "the command line".to_owned(), errors: Box::new(errors) })?;
    Ok(text)
}

fn head(text: &mut String, wish: &Fresh) {
    text.push_str(
        "# A plan for sweepline: which servers and models are asked what, under which load.\n\
         #\n\
         #   sweepline check PLAN      is it a plan? every mistake is shown at its place\n\
         #   sweepline preview PLAN    what would run, how long it would take; sends nothing\n\
         #   sweepline run PLAN        measure; typed again, it measures only what is missing or was changed\n\
         #   sweepline export PLAN     the results as a table\n\n\
         sweepline: 1\n",
    );
    let _ = writeln!(text, "name: {}", text_value(&one_line(&wish.name)));
    text.push_str(
        "# Arrival times, prompts and the order of runs follow from it: the same seed, the same requests.\nseed: 1\n",
    );
}

fn endpoints(text: &mut String, wish: &Fresh) {
    text.push_str("\n# The servers under test. The name is yours; it stands in tables.\nendpoints:\n");
    let Some(server) = &wish.server else {
        text.push_str(
            "  # The embedded mock: a small server that sweepline starts itself. For a real one write instead\n\
             \x20 # { url: http://127.0.0.1:8000/v1, engine: vllm }, or make the plan with `sweepline new --url URL`.\n\
             \x20 demo:\n\
             \x20   engine: mock\n\
             \x20   mock: { ttft: 20ms, itl: 4ms, slots: 8 }   # time to first token, between tokens, streams at once\n",
        );
        return;
    };
    let (engine, why) = &server.engine;
    let _ = writeln!(text, "  {}:\n    url: {}", engine.name(), text_value(&server.url));
    let _ = writeln!(
        text,
        "    engine: {}   # {}; one of vllm, sglang, nim, tgi, llamacpp, openai",
        engine.name(),
        one_line(why)
    );
    let _ = writeln!(text, "    api: {}   # what is called: {}", server.api.name(), server.api.protocol().path());
    if let Some(name) = &server.api_key_env {
        let reference = scalar(&format!("env:{name}"));
        let _ = writeln!(
            text,
            "    api_key: {{ secret: {reference} }}   # the variable's name; the key itself never stands in a plan"
        );
    }
    if let Some(version) = &server.version {
        let _ = writeln!(
            text,
            "    server: {{ version: {} }}   # as it said; add tensor_parallel, flags, …",
            scalar(&one_line(version))
        );
    }
    text.push_str(
        "    # What it runs on decides the numbers, so readers need it. For example:\n\
         \x20   # hardware: { gpu: H100-SXM-80GB, gpus: 8, price_per_hour: 31.20 }\n",
    );
}

fn models(text: &mut String, wish: &Fresh) {
    let last = wish.model.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let _ = writeln!(
        text,
        "\n# The models, each with the id that the server knows it by.\nmodels:\n  {}:",
        scalar(&name_of(last, "model"))
    );
    let _ = writeln!(text, "    id: {}", text_value(&wish.model));
    if let Some(longest) = wish.longest {
        let _ = writeln!(text, "    # The server takes at most {longest} tokens, prompt and answer together.");
    }
}

/// Tokens asked for, so that prompt and answer fit the model.
fn output(wish: &Fresh) -> u64 {
    wish.longest.map_or(256, |longest| (longest / 2).clamp(1, 256))
}

fn scenarios(text: &mut String, wish: &Fresh) {
    text.push_str(
        "\n# What is sent. Built in are A1, A2 (the same prompt every time, short and long), B1, B2 (prompts that differ, short\n\
         # and long), C (one long system prompt, short questions) and D (conversations); yours start from one of them.\n\
         scenarios:\n\
         \x20 short:\n\
         \x20   base: B1\n\
         \x20   prompt_tokens: 50\n",
    );
    let task = wish.server.as_ref().map_or(Task::Generate, |server| server.api.protocol().task());
    let line = match task {
        Task::Generate => {
            let tokens = if wish.server.is_some() { output(wish) } else { 32 };
            format!("output_tokens: {tokens}   # asked for with max_tokens")
        }
        Task::Embed => "inputs: 1   # texts of one request, each with prompt_tokens".to_owned(),
        Task::Rank => "documents: 10   # of one request, each with prompt_tokens".to_owned(),
    };
    let _ = writeln!(text, "    {line}");
}

fn phases(text: &mut String, wish: &Fresh) {
    text.push_str(
        "\n# One run: load rises (fill), settles (stabilize), is measured, and is kept up until every measured request has\n\
         # ended (drain).\n",
    );
    text.push_str(match wish.server {
        Some(_) => {
            "phases:\n\
             \x20 fill: 30s\n\
             \x20 stabilize: 60s\n\
             \x20 measure: 120s   # a p99 needs 368 requests: longer where few fit\n\
             \x20 drain: 30s\n"
        }
        None => {
            "phases:\n\
             \x20 fill: 300ms\n\
             \x20 stabilize: 400ms\n\
             \x20 measure: 3s   # for a first look; leave `phases` out to get 120s, long enough for numbers to act on\n\
             \x20 drain: 5s\n"
        }
    });
}

fn sweeps(text: &mut String, wish: &Fresh) {
    text.push_str(
        "\n# What is varied. Axes multiply: every endpoint with every model, scenario and load. An axis that is not here has one\n\
         # value: the only endpoint, the only model.\n\
         sweeps:\n",
    );
    let list = |values: Vec<String>| values.join(", ");
    match &wish.load {
        FreshLoad::Closed(sizes) => {
            let sizes = list(sizes.iter().map(u32::to_string).collect());
            let _ = write!(
                text,
                "  # Closed loop: a fixed number of requests in flight. How much can it do at once?\n  batches:\n    matrix:\n      \
                 scenario: [short]\n      batch_size: [{sizes}]\n"
            );
        }
        FreshLoad::Open(rates) => {
            let rates = list(rates.iter().map(Decimal::to_string).collect());
            let _ = write!(
                text,
                "  # Open loop: requests arrive at a rate, however long the answers take. What do users wait for?\n  rates:\n    \
                 matrix:\n      scenario: [short]\n      qps: [{rates}]\n"
            );
        }
    }
    text.push_str("    repeats: 1   # 3 or more tell an effect from chance\n");
}
