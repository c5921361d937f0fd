//! The launched server of an endpoint in a cell: its flags, its command, its hardware and its facts.
//!
//! The flags of a cell are the declared ones (`server: { flags: … }`), overridden by its `server.FLAG` axes.
//! They are treated like declared facts, so that comparisons of facts include them.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::model::axis::server_flag;
use crate::plan::template::cell::{CellMistake, CellNames, CellValue, asked, fill, is_args};
use crate::plan::{Endpoint, Engine, Fact, Hardware, Http, HttpVersion, Launch, PerCell, Scalar, Table, TextOrSecret};
use crate::units::{Decimal, Nanos};

use super::spec::LaunchSpec;
use super::{Cell, EndpointSpec, Http2, Mistake, RunSpec};

/// The key in an endpoint's `server` table whose entries are flags of the server.
pub const FLAGS_OF_SERVER: &str = "flags";
/// The prefix of the names of facts that are flags.
const FLAGS: &str = "flags.";
/// The axis value that stands for "the flag is not passed".
pub const NOT_GIVEN: &str = "none";

/// Returns the server that a cell needs, with all values that depend on the cell, except for hooks.
pub(super) fn endpoint_spec(
    name: &str,
    endpoint: &Endpoint,
    model: (&str, &str),
    cell: &Cell,
) -> Result<EndpointSpec, Mistake> {
    let mut facts = flatten(&endpoint.server)?;
    for (axis, value) in cell.iter() {
        let Some(flag) = server_flag(axis) else { continue };
        if endpoint.launch.is_none() {
            return Err(Mistake::NoLaunch { axis: axis.into(), endpoint: name.into() });
        }
        facts.insert(format!("{FLAGS}{flag}"), value.clone());
    }
    facts.retain(|fact, value| !fact.starts_with(FLAGS) || *value != Scalar::Text(NOT_GIVEN.to_owned()));
    let names = names((name, endpoint.engine), model, &facts);
    let wrong = |field: String| {
        move |mistake: CellMistake| Mistake::OfCell {
            endpoint: name.into(),
            field: field.into(),
            mistake: mistake.into(),
        }
    };
    for (fact, value) in &mut facts {
        if let Scalar::Text(text) = value {
            *value = scalar(fill(text, &names).map_err(wrong(format!("server.{fact}")))?);
        }
    }
    let hardware =
        hardware(endpoint, &names).map_err(|(field, mistake)| wrong(format!("hardware.{field}"))(mistake))?;
    let launch = match &endpoint.launch {
        Some(launch) => Some(LaunchSpec {
            command: command(&launch.command, launch, &names).map_err(wrong("launch.command".to_owned()))?,
            env: variables(&launch.env, &names).map_err(wrong("launch.env".to_owned()))?,
        }),
        None => None,
    };
    Ok(EndpointSpec {
        name: name.to_owned(),
        engine: endpoint.engine,
        api: endpoint.api,
        gpu: hardware.gpu.clone(),
        gpus: hardware.gpus(),
        http: http2(endpoint),
        server: facts,
        mock: endpoint.is_embedded().then(|| endpoint.mock.clone().unwrap_or_default()),
        launch,
        reset: endpoint.reset,
        hooks: BTreeMap::new(),
    })
}

/// HTTP/2 settings, if the endpoint uses HTTP/2.
fn http2(endpoint: &Endpoint) -> Option<Http2> {
    let Http { streams, .. } = endpoint.http.filter(|http| http.version == HttpVersion::Two)?;
    Some(Http2 { streams: streams.unwrap_or(Http::STREAMS) })
}

/// Returns the values of the names that an endpoint's expressions may use.
pub(super) fn names(endpoint: (&str, Engine), model: (&str, &str), facts: &BTreeMap<String, Scalar>) -> CellNames {
    let text = |text: &str| CellValue::Text(text.to_owned());
    let table =
        |pairs: [(&str, &str); 2]| pairs.into_iter().map(|(key, value)| (key.to_owned(), text(value))).collect();
    let flags = facts.iter().filter_map(|(fact, value)| Some((fact.strip_prefix(FLAGS)?, value)));
    let others = facts.iter().filter(|(fact, _)| !fact.starts_with(FLAGS)).map(|(fact, value)| (fact.as_str(), value));
    // Values that are expressions are omitted, because an expression cannot refer to another one.
    let is_plain = |value: &Scalar| !matches!(value, Scalar::Text(text) if text.contains("{{"));
    let plain = |(name, value): (&str, &Scalar)| is_plain(value).then(|| (name.to_owned(), cell_value(value)));
    CellNames {
        model: table([("name", model.0), ("id", model.1)]),
        endpoint: table([("name", endpoint.0), ("engine", endpoint.1.name())]),
        flags: flags.filter_map(plain).collect(),
        facts: others.filter_map(plain).collect(),
        port: None,
    }
}

/// Returns the program and the arguments of a command. `server.args` is replaced by all flags that `launch`
/// does not name itself.
fn command(written: &[String], launch: &Launch, names: &CellNames) -> Result<Vec<String>, CellMistake> {
    let mut made = Vec::with_capacity(written.len());
    for text in written {
        match is_args(text) {
            true => made.extend(arguments(launch, names)?),
            false => made.push(fill(text, names)?.to_string()),
        }
    }
    Ok(made)
}

/// Returns the flags as arguments, sorted by name: `max_num_seqs: 64` → `--max-num-seqs 64`, true → `--flag`,
/// false → `--no-flag`. A single-letter name gets one dash.
fn arguments(launch: &Launch, names: &CellNames) -> Result<Vec<String>, CellMistake> {
    let mut named = BTreeSet::new();
    for (_, text) in launch.texts() {
        named.extend(asked(text)?.into_iter().filter_map(|asked| Some(asked.name.strip_prefix("server.")?.to_owned())));
    }
    let mut arguments = Vec::new();
    for (flag, value) in names.flags.iter().filter(|(flag, _)| !named.contains(*flag)) {
        match value {
            CellValue::Bool(is_on) => arguments.push(switch(flag, *is_on)),
            other => arguments.extend([switch(flag, true), other.to_string()]),
        }
    }
    Ok(arguments)
}

/// Returns a flag as an argument that turns it on (`--flag`) or off (`--no-flag`).
pub fn switch(flag: &str, is_on: bool) -> String {
    // Keys inside an option's value stay unchanged: `--compilation-config.use_inductor`.
    let (option, inner) = flag.split_at(flag.find('.').unwrap_or(flag.len()));
    let dashed = format!("{}{inner}", option.replace('_', "-"));
    match is_on {
        true if flag.len() == 1 => format!("-{dashed}"),
        true => format!("--{dashed}"),
        false => format!("--no-{dashed}"),
    }
}

fn variables(written: &Table<TextOrSecret>, names: &CellNames) -> Result<BTreeMap<String, TextOrSecret>, CellMistake> {
    let made = written.iter().map(|(name, value)| {
        let value = match value {
            TextOrSecret::Text(text) => TextOrSecret::Text(fill(text, names)?.to_string()),
            TextOrSecret::Secret(reference) => TextOrSecret::Secret(reference.clone()),
        };
        Ok((name.clone(), value))
    });
    made.collect()
}

/// Evaluates the hardware for a cell; an error names the field that cannot be computed.
fn hardware(endpoint: &Endpoint, names: &CellNames) -> Result<Hardware, (&'static str, CellMistake)> {
    let mut hardware = endpoint.hardware.clone().unwrap_or_default();
    let wanted = |field, text: &str| {
        let message = format!("`{text}` is not a number above 0");
        (field, CellMistake { message, remedy: "make it return one in every cell".to_owned() })
    };
    let number = |field, text: &str| match fill(text, names).map_err(|mistake| (field, mistake))? {
        CellValue::Int(value) => value.to_string().parse::<Decimal>().map_err(|_| wanted(field, text)),
        CellValue::Float(value) => value.to_string().parse::<Decimal>().map_err(|_| wanted(field, text)),
        CellValue::Bool(_) | CellValue::Text(_) => Err(wanted(field, text)),
    };
    if let Some(PerCell::Expression(text)) = &hardware.gpus {
        let gpus = number("gpus", text)?.to_string().parse().ok().filter(|gpus| *gpus > 0);
        hardware.gpus = Some(PerCell::Same(gpus.ok_or_else(|| wanted("gpus", text))?));
    }
    if let Some(PerCell::Expression(text)) = &hardware.price_per_hour {
        hardware.price_per_hour = Some(PerCell::Same(number("price_per_hour", text)?));
    }
    if let Some(PerCell::Expression(text)) = &hardware.watts {
        hardware.watts = Some(PerCell::Same(number("watts", text)?));
    }
    Ok(hardware)
}

/// The declared properties of the server, evaluated for some cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The server's hardware.
    pub hardware: Hardware,
    /// The server's facts, flattened to one level of names, including flags.
    pub facts: BTreeMap<String, Scalar>,
}

/// Returns the declared properties of the server for cells with the values `axes`. Facts whose expressions
/// need other values are omitted.
pub fn declared<'a>(endpoint: &Endpoint, axes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Declared {
    let mut facts = flatten(&endpoint.server).unwrap_or_default();
    for (axis, value) in axes {
        let Some(flag) = server_flag(axis) else { continue };
        match value {
            NOT_GIVEN => drop(facts.remove(&format!("{FLAGS}{flag}"))),
            value => drop(facts.insert(format!("{FLAGS}{flag}"), of_label(value))),
        }
    }
    let names = names(("", endpoint.engine), ("", ""), &facts);
    let hardware = hardware(endpoint, &names).unwrap_or_else(|_| endpoint.hardware.clone().unwrap_or_default());
    facts.retain(|_, value| match value {
        Scalar::Text(text) => fill(text, &names).map(|filled| *value = scalar(filled)).is_ok(),
        Scalar::Bool(_) | Scalar::Number(_) => true,
    });
    Declared { hardware, facts }
}

/// Parses the value of an axis from its label.
fn of_label(label: &str) -> Scalar {
    match (label, label.parse()) {
        ("true", _) => Scalar::Bool(true),
        ("false", _) => Scalar::Bool(false),
        (_, Ok(number)) => Scalar::Number(number),
        (text, Err(_)) => Scalar::Text(text.to_owned()),
    }
}

pub(super) fn names_of(spec: &RunSpec) -> CellNames {
    let EndpointSpec { name, engine, server, .. } = &*spec.endpoint;
    names((name, *engine), (&spec.labels.model, &spec.model.id), server)
}

/// A server in the form in which it is started on this host.
#[derive(Debug, Clone, PartialEq)]
pub struct Concrete {
    /// Program and arguments, with the port inserted.
    pub command: Vec<String>,
    /// Environment variables, including those of `host_env`.
    pub env: BTreeMap<String, TextOrSecret>,
    /// Working directory, relative to the plan's folder.
    pub folder: Option<String>,
    /// The command that stops the server, if there is one.
    pub stop: Option<Vec<String>>,
    /// The time within which the server must exit when it is stopped.
    pub stop_within: Nanos,
}

/// The server of a run like `spec`, listening on `port`.
pub fn concrete(endpoint: &Endpoint, spec: &RunSpec, port: u16) -> Result<Concrete, CellMistake> {
    let Some(launch) = &endpoint.launch else {
        let message = format!("endpoint `{}` has no `launch`", spec.endpoint.name);
        return Err(CellMistake { message, remedy: "add it to the plan".to_owned() });
    };
    let names = CellNames { port: Some(port), ..names_of(spec) };
    let mut env = variables(&launch.host_env, &names)?;
    env.extend(variables(&launch.env, &names)?);
    let stop = launch.stop.as_ref().and_then(|stop| stop.command.as_deref());
    Ok(Concrete {
        command: command(&launch.command, launch, &names)?,
        env,
        folder: launch.folder.clone(),
        stop: stop.map(|stop| command(stop, launch, &names)).transpose()?,
        stop_within: launch.stop_within(),
    })
}

fn cell_value(value: &Scalar) -> CellValue {
    match value {
        Scalar::Bool(value) => CellValue::Bool(*value),
        Scalar::Text(text) => CellValue::Text(text.clone()),
        Scalar::Number(number) => match number.parts() {
            (mantissa, 0) => CellValue::Int(mantissa.into()),
            _ => CellValue::Float(number.to_f64()),
        },
    }
}

fn scalar(value: CellValue) -> Scalar {
    let number = |text: String| text.parse().map_or_else(|_| Scalar::Text(text.clone()), Scalar::Number);
    match value {
        CellValue::Bool(value) => Scalar::Bool(value),
        CellValue::Int(value) => number(value.to_string()),
        CellValue::Float(value) => number(value.to_string()),
        CellValue::Text(text) => Scalar::Text(text),
    }
}

/// Flattens server facts to one level of names: `flags: { max_num_seqs: 256 }` becomes
/// `flags.max_num_seqs`.
fn flatten(facts: &Table<Fact>) -> Result<BTreeMap<String, Scalar>, Mistake> {
    let mut flat = BTreeMap::new();
    let mut put = |name: String, value: &Scalar| match flat.insert(name.clone(), value.clone()) {
        None => Ok(()),
        Some(_) => Err(Mistake::SameFact(name)),
    };
    for (name, fact) in facts {
        match fact {
            Fact::One(value) => put(name.clone(), value)?,
            Fact::Many(table) => table.iter().try_for_each(|(key, value)| put(format!("{name}.{key}"), value))?,
        }
    }
    Ok(flat)
}
