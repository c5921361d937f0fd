//! The schema of matrices and of the rules over them, generated from the table of axes, for editors.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::plan::model::axis::{AXES, Kind};
use crate::plan::model::parameter_value::ParameterValue;
use crate::plan::model::take::SweepMetric;
use crate::plan::text::alias::ALIASES;
use crate::units::Decimal;

/// The schema of a matrix, so that an editor knows the axes.
pub(crate) fn matrix_schema(generator: &mut SchemaGenerator) -> Schema {
    let group = group(generator);
    let axes = by_axis(|kind, meaning| json!({ "description": meaning, "anyOf": axis(generator, kind) }));
    let mut axes = axes;
    let taken_when = condition_schema(generator).to_value();
    for metric in SweepMetric::ALL {
        let names = ALIASES.iter().filter(|(_, first)| *first == metric.axis()).map(|(alias, _)| *alias);
        for name in names.chain([metric.axis()]) {
            offer(&mut axes[name], &taken(metric, &taken_when));
        }
    }
    axes[SERVER] = server();
    let settings = json!({ SETTINGS: { "description": SETTING, "anyOf": axis(generator, Kind::Setting) } });
    json_schema!({
        "type": "object", "properties": axes, "patternProperties": settings, "additionalProperties": group,
    })
}

/// The schema of a load derived from an earlier sweep.
fn taken(metric: SweepMetric, when: &Value) -> Value {
    json!({
        "type": "object",
        "description": "A load derived from the result of an earlier sweep, for each cell with the same values \
                        on all common axes: { from: limit, take: max_qps_under_slo, times: 0.8 }.",
        "properties": {
            "from": { "type": "string", "description": "The earlier sweep.", "examples": ["limit"] },
            "take": {
                "enum": [metric.name()],
                "description": "The result to use: the highest load that meets the plan's `slo`.",
            },
            "value": {
                "enum": ["shown"],
                "description": "`shown`: the highest load that the search shows to meet the `slo` at 95 %. By default, the load that the search found.",
            },
            "over": {
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }],
                "description": "Axes of the earlier sweep to aggregate over, so that all values of these axes get the same load.",
                "examples": ["endpoint"],
            },
            "use": {
                "enum": ["min", "max"], "default": "min",
                "description": "Which of the values over the axes of `over` to use: the smallest or the largest.",
            },
            "times": {
                "type": "number", "exclusiveMinimum": 0, "default": 1, "examples": [0.8],
                "description": "The factor for the value; the result is rounded down, a rate to three \
                                significant digits.",
            },
            "when": described(when.clone(), "The cells to which this entry applies."),
        },
        "required": ["from", "take"], "additionalProperties": false,
    })
}

/// Allows one more form for the values of an axis, both alone and in a list.
fn offer(axis: &mut Value, form: &Value) {
    let Some(forms) = axis["anyOf"].as_array_mut() else { return };
    for list in forms.iter_mut().filter(|other| other["type"] == "array") {
        if let Some(items) = list["items"]["anyOf"].as_array_mut() {
            items.push(form.clone());
        }
    }
    let list = forms.iter().position(|other| other["type"] == "array").unwrap_or(forms.len());
    forms.insert(list, form.clone());
}

/// The name of the axis whose values are maps of flags. It is also the prefix of the axes that set a single
/// flag.
const SERVER: &str = "server";
const SETTINGS: &str = r"^server\.[A-Za-z][A-Za-z0-9_.-]*$";
/// The description of an axis for a single flag.
const SETTING: &str = "A flag that the server of an endpoint with `launch` is started with; none omits it.";

/// The schema of the `server` axis: maps of flags, each of which is one value of the axis.
fn server() -> Value {
    let flags = json!({
        "type": "object", "minProperties": 1, "additionalProperties": true,
        "examples": [{ "max_num_seqs": 64 }],
    });
    json!({
        "description": "Flags that the server of an endpoint with `launch` is started with: [{ max_num_seqs: 64 }, { max_num_seqs: 128 }].",
        "anyOf": [flags.clone(), { "type": "array", "items": flags, "minItems": 1 }],
    })
}

/// The schema of a condition: fields of the matrix, each with the values that match.
pub(crate) fn condition_schema(generator: &mut SchemaGenerator) -> Schema {
    let name = "Condition";
    if !generator.definitions().contains_key(name) {
        let fields = by_axis(|kind, meaning| json!({ "description": meaning, "anyOf": filter(kind) }));
        let schema = json!({
            "type": "object", "properties": fields, "patternProperties": { SETTINGS: { "anyOf": filter(Kind::Setting) } },
            "additionalProperties": false, "minProperties": 1,
            "description": "The cells that match: every given field must match.",
        });
        generator.definitions_mut().insert(name.to_owned(), schema);
    }
    json_schema!({ "$ref": "#/$defs/Condition" })
}

/// The schema of `exclude`.
pub(crate) fn excludes_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": condition_schema(generator) })
}

/// The schema of `extend`.
pub(crate) fn extends_schema(generator: &mut SchemaGenerator) -> Schema {
    let when = described(condition_schema(generator).to_value(), "The cells to extend.");
    let with = described(cell(generator), "The additional fields.");
    json_schema!({
        "type": "array",
        "items": {
            "type": "object", "properties": { "when": when, "with": with },
            "required": ["when", "with"], "additionalProperties": false,
        },
    })
}

/// The schema of `add`.
pub(crate) fn adds_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": cell(generator) })
}

/// The schema of one value of an axis, with a description.
fn one(kind: Kind, meaning: &str) -> Value {
    let mut schema = described(kind.schema(), meaning);
    if schema.get("enum").is_none() {
        schema["examples"] = json!([kind.sample()]);
    }
    schema
}

fn described(mut schema: Value, meaning: &str) -> Value {
    schema["description"] = meaning.into();
    schema
}

/// A map with the schema of each axis, under each of its names.
fn by_axis(mut schema: impl FnMut(Kind, &str) -> Value) -> Value {
    let mut axes = Map::new();
    for (name, kind, meaning) in AXES {
        let names = ALIASES.iter().filter(|(_, first)| *first == name).map(|(alias, _)| *alias).chain([name]);
        for name in names {
            axes.insert(name.to_owned(), schema(kind, meaning));
        }
    }
    Value::Object(axes)
}

/// The possible forms of one axis: a value, a range, conditional values, or a list of these.
fn axis(generator: &mut SchemaGenerator, kind: Kind) -> Vec<Value> {
    let mut one = vec![kind.schema()];
    let when = condition_schema(generator).to_value();
    let when = described(when, "The cells to which this entry applies.");
    let some = json!({
        "description": "The value, or a list of values, to which the condition applies.",
        "anyOf": [kind.schema(), { "type": "array", "items": kind.schema(), "minItems": 1 }],
        "examples": [kind.sample()],
    });
    one.push(json!({
        "type": "object", "properties": { "value": some, "when": when.clone() },
        "required": ["value"], "additionalProperties": false,
    }));
    one.extend(range(kind, Some(&when)));
    let many = json!({ "type": "array", "items": { "anyOf": one.clone() }, "minItems": 1 });
    one.push(many);
    one
}

/// The schema of a range of numbers; `None` for other kinds.
fn range(kind: Kind, when: Option<&Value>) -> Option<Value> {
    if !kind.is_number() {
        return None;
    }
    let mut fields = json!({
        "from": one(kind, "The first value."),
        "to": one(kind, "The end, included if a step lands on it."),
        "step": {
            "type": "number", "exclusiveMinimum": 0, "description": "The number to add each time.", "examples": [kind.sample()],
        },
        "times": {
            "type": "number", "exclusiveMinimum": 1, "description": "The factor for each step.", "examples": [2],
        },
    });
    if let Some(when) = when {
        fields["when"] = when.clone();
    }
    Some(json!({
        "type": "object", "properties": fields, "required": ["from", "to"], "additionalProperties": false,
        "oneOf": [{ "required": ["step"] }, { "required": ["times"] }],
    }))
}

/// The schema of several axes that vary together.
fn group(generator: &mut SchemaGenerator) -> Value {
    let when = described(condition_schema(generator).to_value(), "The cells to which this entry applies.");
    let lists = by_axis(|kind, meaning| {
        let one: Vec<Value> = [kind.schema()].into_iter().chain(range(kind, None)).collect();
        let many = json!({ "type": "array", "items": { "anyOf": one.clone() }, "minItems": 1 });
        json!({ "description": meaning, "anyOf": one.into_iter().chain([many]).collect::<Vec<_>>() })
    });
    let zip = json!({
        "type": "object",
        "properties": {
            "zip": {
                "type": "object", "properties": lists,
                "patternProperties": { SETTINGS: { "type": "array", "items": Kind::Setting.schema(), "minItems": 1 } },
                "additionalProperties": false, "minProperties": 1,
                "description": "Lists of equal length: values at the same position belong together.",
            },
            "when": when.clone(),
        },
        "required": ["zip"], "additionalProperties": false,
    });
    let mut fields = by_axis(one);
    fields["when"] = when;
    let point = json!({
        "type": "object", "properties": fields, "patternProperties": { SETTINGS: one(Kind::Setting, SETTING) },
        "additionalProperties": false, "minProperties": 1,
    });
    json!({
        "description": "Several axes that vary together, under a name of your choice: \
                        { zip: { prompt_tokens: [256, 2048], output_tokens: [1024, 128] } }, or \
                        [{ prompt_tokens: 256, output_tokens: 1024 }, …].",
        "anyOf": [zip, point.clone(), { "type": "array", "items": point, "minItems": 1 }],
    })
}

/// The schema of a whole cell: a value for each axis that it names.
fn cell(generator: &mut SchemaGenerator) -> Value {
    let name = "Cell";
    if !generator.definitions().contains_key(name) {
        let fields = by_axis(one);
        let schema = json!({
            "type": "object", "properties": fields, "patternProperties": { SETTINGS: one(Kind::Setting, SETTING) },
            "additionalProperties": false, "minProperties": 1,
        });
        generator.definitions_mut().insert(name.to_owned(), schema);
    }
    json!({ "$ref": "#/$defs/Cell" })
}

/// The possible values of a field in a condition: the values of the axis itself, bounds, or a list of
/// these.
fn filter(kind: Kind) -> Vec<Value> {
    let mut one = vec![kind.schema()];
    one.extend(kind.is_number().then(|| {
        let bound = |meaning: &str| json!({ "type": "number", "description": meaning, "examples": [kind.sample()] });
        let (from, to) = (bound("The smallest number that matches."), bound("The largest number that matches."));
        json!({
            "type": "object", "properties": { "from": from, "to": to },
            "additionalProperties": false, "minProperties": 1,
        })
    }));
    let many = json!({ "type": "array", "items": { "anyOf": one.clone() }, "minItems": 1 });
    one.push(many);
    one
}

impl Kind {
    /// The schema of a value, for editors.
    pub(crate) fn schema(self) -> Value {
        match self {
            Kind::Name(_) => json!({ "type": "string" }),
            Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::Rate(most) => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": most }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Parameter(low, high) => json!({ "anyOf": [
                { "type": "number", "minimum": Decimal::new(low, 2), "maximum": Decimal::new(high, 2) },
                { "const": ParameterValue::OMIT },
            ] }),
            Kind::Process => crate::plan::model::process::words_schema().to_value(),
            Kind::Choice(choices) => json!({ "enum": choices }),
            Kind::Time => json!({ "$ref": "#/$defs/Duration" }),
            Kind::Setting => json!({ "type": ["number", "string", "boolean"] }),
        }
    }

    /// An example value for editors.
    fn sample(self) -> Value {
        match self {
            Kind::Name("endpoints") => json!("vllm"),
            Kind::Name("models") => json!("llama-70b"),
            Kind::Name(_) => json!("B1"),
            Kind::Whole(least, _) => json!(least.max(8)),
            Kind::Rate(_) => json!(5),
            Kind::Flag => json!(true),
            Kind::Parameter(..) => json!(0.5),
            Kind::Process => json!("poisson"),
            Kind::Choice(choices) => json!(choices.first()),
            Kind::Time => json!("5s"),
            Kind::Setting => json!(256),
        }
    }
}
