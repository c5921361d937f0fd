//! Reading typed values from a cell's axes.

use std::sync::Arc;

use crate::plan::model::lengths::{Preset, WrittenLengths};
use crate::plan::model::sampling::PARAMETERS;
use crate::plan::{
    Arrivals, Cache, Connections, ContextCut, History, NonceMode, ParameterValue, Process, Scalar, Scenario, Sessions,
    Think, is_axis,
};
use crate::units::{Decimal, Nanos};

use super::{Cell, Mistake};

/// The axis as a name; a name such as `7` or `true` reads as another scalar and is a name all the same.
pub(super) fn text(cell: &Cell, axis: &str) -> Option<Arc<str>> {
    cell.entry(axis).map(|entry| Arc::clone(&entry.text))
}

/// The axis as a number.
pub(super) fn number(cell: &Cell, axis: &str) -> Result<Option<Decimal>, Mistake> {
    match cell.get(axis) {
        None => Ok(None),
        Some(Scalar::Number(value)) => Ok(Some(*value)),
        Some(value) => Err(wrong(axis, value, "a number")),
    }
}

/// The axis as a whole number from 0.
pub(super) fn whole(cell: &Cell, axis: &str) -> Result<Option<u32>, Mistake> {
    let Some(value) = cell.get(axis) else { return Ok(None) };
    match value {
        Scalar::Number(number) => match number.parts() {
            (mantissa, 0) => u32::try_from(mantissa).ok(),
            _ => None,
        },
        _ => None,
    }
    .map(Some)
    .ok_or_else(|| wrong(axis, value, "a whole number"))
}

/// The axis as a sampling parameter.
fn sampling(cell: &Cell, axis: &str) -> Result<Option<ParameterValue>, Mistake> {
    match cell.get(axis) {
        None => Ok(None),
        Some(Scalar::Number(value)) => Ok(Some(ParameterValue::Number(*value))),
        Some(Scalar::Text(word)) if word == ParameterValue::OMIT => Ok(Some(ParameterValue::Omit)),
        Some(value) => Err(wrong(axis, value, "a number, or omit")),
    }
}

/// The axis as true or false.
fn truth(cell: &Cell, axis: &str) -> Result<Option<bool>, Mistake> {
    match cell.get(axis) {
        None => Ok(None),
        Some(Scalar::Bool(value)) => Ok(Some(*value)),
        Some(value) => Err(wrong(axis, value, "true or false")),
    }
}

/// How an open loop's arrivals are spaced, where an axis says so.
pub(super) fn arrivals(cell: &Cell) -> Result<Option<Arrivals>, Mistake> {
    let Some(value) = cell.get("arrivals") else { return Ok(None) };
    let process = match value {
        Scalar::Text(text) => text.parse::<Process>().ok(),
        Scalar::Bool(_) | Scalar::Number(_) => None,
    };
    process
        .map(|process| Some(process.into()))
        .ok_or_else(|| wrong("arrivals", value, "poisson or constant, or gamma cv 2"))
}

/// How requests get their connections, where an axis says so.
pub(super) fn connections(cell: &Cell) -> Result<Option<Connections>, Mistake> {
    let Some(value) = cell.get("connections") else { return Ok(None) };
    Connections::ALL
        .into_iter()
        .find(|connections| *value == Scalar::Text(connections.name().to_owned()))
        .map(Some)
        .ok_or_else(|| wrong("connections", value, "warm, cold or per_request"))
}

/// The axis as a duration.
fn duration(cell: &Cell, axis: &str) -> Result<Option<Nanos>, Mistake> {
    let Some(value) = cell.get(axis) else { return Ok(None) };
    let read = if let Scalar::Text(text) = value { text.parse().ok() } else { None };
    read.map(Some).ok_or_else(|| wrong(axis, value, "a duration like 5s"))
}

/// The axis as one of several choices, which are told with their names.
fn choice<T: Copy>(
    cell: &Cell,
    axis: &str,
    (all, name): (&[T], fn(T) -> &'static str),
    expected: &'static str,
) -> Result<Option<T>, Mistake> {
    let Some(value) = cell.get(axis) else { return Ok(None) };
    let found = all.iter().copied().find(|one| *value == Scalar::Text(name(*one).to_owned()));
    found.map(Some).ok_or_else(|| wrong(axis, value, expected))
}

/// Whether prompts share anything, where an axis says so.
fn cache(cell: &Cell) -> Result<Option<Cache>, Mistake> {
    let Some(value) = cell.get("cache") else { return Ok(None) };
    [Cache::Warm, Cache::Cold]
        .into_iter()
        .find(|cache| *value == Scalar::Text(cache.name().to_owned()))
        .map(Some)
        .ok_or_else(|| wrong("cache", value, "warm or cold"))
}

/// The fields of a request that axes set, as one more layer over the scenario.
pub(super) fn request_fields(cell: &Cell) -> Result<Scenario, Mistake> {
    if let Some((axis, _)) = cell.iter().find(|(axis, _)| !is_axis(axis)) {
        return Err(Mistake::UnknownAxis(axis.to_owned()));
    }
    let mut scenario = Scenario {
        prompt_tokens: whole(cell, "prompt_tokens")?,
        output_tokens: whole(cell, "output_tokens")?,
        max_completion_tokens: whole(cell, "max_completion_tokens")?,
        lengths: preset(cell)?,
        system_tokens: whole(cell, "system_tokens")?,
        turns: whole(cell, "turns")?,
        think: duration(cell, "think")?.map(Think::Constant),
        history: choice(cell, "history", (History::ALL, History::name), "real or scripted")?,
        sessions: choice(cell, "sessions", (Sessions::ALL, Sessions::name), "pooled or open")?,
        context_limit: whole(cell, "context_limit")?,
        context_cut: choice(cell, "context_cut", (ContextCut::ALL, ContextCut::name), "oldest_turns or end")?,
        trace: None,
        prefix: None,
        cache: cache(cell)?,
        nonce: choice(cell, "nonce", (NonceMode::ALL, NonceMode::name), "on, run or off")?,
        stream: truth(cell, "stream")?,
        ignore_eos: truth(cell, "ignore_eos")?,
        inputs: whole(cell, "inputs")?,
        documents: whole(cell, "documents")?,
        query_tokens: whole(cell, "query_tokens")?,
        ..Scenario::default()
    };
    for (parameter, said) in PARAMETERS.iter().zip(scenario.sampling_mut()) {
        *said = sampling(cell, parameter.name)?;
    }
    Ok(scenario)
}

/// The lengths of a preset, where an axis names one.
fn preset(cell: &Cell) -> Result<Option<WrittenLengths>, Mistake> {
    let Some(value) = cell.get("lengths") else { return Ok(None) };
    let preset = match value {
        Scalar::Text(name) => Preset::of_name(name),
        _ => None,
    };
    let preset = preset.ok_or_else(|| wrong("lengths", value, "the name of a preset"))?;
    Ok(Some(WrittenLengths { preset: Some(preset), ..WrittenLengths::default() }))
}

fn wrong(axis: &str, value: &Scalar, expected: &'static str) -> Mistake {
    Mistake::WrongType { axis: axis.to_owned(), value: value.clone(), expected }
}
