//! Reads typed values from a cell's axes.

use std::sync::Arc;

use crate::plan::model::lengths::{Preset, WrittenLengths};
use crate::plan::model::sampling::PARAMETERS;
use crate::plan::{
    Arrivals, Cache, Connections, ContextCut, History, NonceMode, ParameterValue, Process, Scalar, Scenario, Sessions,
    Think, is_axis,
};
use crate::units::Decimal;

use super::{Cell, Mistake};

/// Returns the cell's value on an axis of names. A name such as `7` or `true` is parsed as a number or a
/// boolean, but is still a name.
pub(super) fn text(cell: &Cell, axis: &str) -> Option<Arc<str>> {
    cell.entry(axis).map(|entry| Arc::clone(&entry.text))
}

/// Returns the cell's value on the axis, converted by `read`. If `read` rejects the value, the error names
/// the `expected` values.
fn value<T>(
    cell: &Cell,
    axis: &str,
    expected: &'static str,
    read: impl FnOnce(&Scalar) -> Option<T>,
) -> Result<Option<T>, Mistake> {
    let Some(value) = cell.get(axis) else { return Ok(None) };
    let wrong = || Mistake::WrongType { axis: axis.to_owned(), value: value.clone(), expected };
    read(value).map(Some).ok_or_else(wrong)
}

/// Returns the cell's value on an axis whose values are texts, converted by `read`.
fn word<T>(
    cell: &Cell,
    axis: &str,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Mistake> {
    value(cell, axis, expected, |value| match value {
        Scalar::Text(text) => read(text),
        Scalar::Bool(_) | Scalar::Number(_) => None,
    })
}

/// Reads the cell's value on the axis as a number.
pub(super) fn number(cell: &Cell, axis: &str) -> Result<Option<Decimal>, Mistake> {
    value(cell, axis, "a number", |value| match value {
        Scalar::Number(number) => Some(*number),
        Scalar::Bool(_) | Scalar::Text(_) => None,
    })
}

/// Reads the cell's value on the axis as a whole number of at least 0.
pub(super) fn whole(cell: &Cell, axis: &str) -> Result<Option<u32>, Mistake> {
    value(cell, axis, "a whole number", |value| match value {
        Scalar::Number(number) => match number.parts() {
            (mantissa, 0) => u32::try_from(mantissa).ok(),
            _ => None,
        },
        Scalar::Bool(_) | Scalar::Text(_) => None,
    })
}

/// Reads the cell's value on the axis as a sampling parameter.
fn sampling(cell: &Cell, axis: &str) -> Result<Option<ParameterValue>, Mistake> {
    value(cell, axis, "a number, or omit", |value| match value {
        Scalar::Number(number) => Some(ParameterValue::Number(*number)),
        Scalar::Text(word) if word == ParameterValue::OMIT => Some(ParameterValue::Omit),
        Scalar::Bool(_) | Scalar::Text(_) => None,
    })
}

/// Reads the cell's value on the axis as true or false.
fn truth(cell: &Cell, axis: &str) -> Result<Option<bool>, Mistake> {
    value(cell, axis, "true or false", |value| match value {
        Scalar::Bool(truth) => Some(*truth),
        Scalar::Number(_) | Scalar::Text(_) => None,
    })
}

/// Returns the spacing of an open loop's arrivals, if an axis sets it.
pub(super) fn arrivals(cell: &Cell) -> Result<Option<Arrivals>, Mistake> {
    let expected = "poisson or constant, or gamma cv 2";
    word(cell, "arrivals", expected, |text| text.parse::<Process>().ok().map(Arrivals::from))
}

/// Returns the way in which requests get their connections, if an axis sets it.
pub(super) fn connections(cell: &Cell) -> Result<Option<Connections>, Mistake> {
    choice(cell, "connections", (&Connections::ALL, Connections::name), "warm, cold or per_request")
}

/// Reads the cell's value on the axis as one of several named choices.
fn choice<T: Copy>(
    cell: &Cell,
    axis: &str,
    (all, name): (&[T], fn(T) -> &'static str),
    expected: &'static str,
) -> Result<Option<T>, Mistake> {
    word(cell, axis, expected, |text| all.iter().copied().find(|one| name(*one) == text))
}

/// Returns the request fields that axes set, as an additional layer over the scenario.
pub(super) fn request_fields(cell: &Cell) -> Result<Scenario, Mistake> {
    if let Some((axis, _)) = cell.iter().find(|(axis, _)| !is_axis(axis)) {
        return Err(Mistake::UnknownAxis(axis.to_owned()));
    }
    let mut scenario = Scenario {
        prompt_tokens: whole(cell, "prompt_tokens")?,
        output_tokens: whole(cell, "output_tokens")?,
        max_completion_tokens: whole(cell, "max_completion_tokens")?,
        lengths: word(cell, "lengths", "the name of a preset", Preset::of_name)?.map(of_preset),
        system_tokens: whole(cell, "system_tokens")?,
        turns: whole(cell, "turns")?,
        think: word(cell, "think", "a duration like 5s", |text| text.parse().ok())?.map(Think::Constant),
        history: choice(cell, "history", (History::ALL, History::name), "real or scripted")?,
        sessions: choice(cell, "sessions", (Sessions::ALL, Sessions::name), "pooled or open")?,
        context_limit: whole(cell, "context_limit")?,
        context_cut: choice(cell, "context_cut", (ContextCut::ALL, ContextCut::name), "oldest_turns or end")?,
        trace: None,
        prefix: None,
        cache: choice(cell, "cache", (&[Cache::Warm, Cache::Cold], Cache::name), "warm or cold")?,
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

fn of_preset(preset: Preset) -> WrittenLengths {
    WrittenLengths { preset: Some(preset), ..WrittenLengths::default() }
}
