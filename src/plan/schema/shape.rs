//! Converts the schema of the types to the form that editors display best: one description per field,
//! choices as one list, and errors about the field rather than about a branch.

use serde_json::{Map, Value, json};

use crate::plan::model::shorthand::Shorthand;

/// Converts a schema to the form that editors display best.
pub(crate) fn shape(schema: &mut Value) {
    each(schema, &mut without_null);
    each(schema, &mut unwrap_lines);
    each(schema, &mut choices);
    let defs = schema["$defs"].clone();
    each(schema, &mut |fields| either(fields, &defs));
    let defs = schema["$defs"].clone();
    each(schema, &mut |fields| one_of_types(fields, &defs));
    // Merged definitions may contain parts that have not been merged yet.
    let defs = schema["$defs"].clone();
    each(schema, &mut |fields| one_of_types(fields, &defs));
    drop_unused(schema);
}

/// Calls `change` on every object of a schema, the innermost first.
fn each(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| each(field, change));
            change(fields);
        }
        _ => {}
    }
}

/// Removes null from the types, because an optional field may be omitted, but a key without a value is
/// an error.
fn without_null(fields: &mut Map<String, Value>) {
    if fields.get("default") == Some(&Value::Null) {
        fields.shift_remove("default");
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|one| *one != json!("null"));
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|one| *one != json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            fields.shift_remove("anyOf");
            fields.extend(only);
        }
    }
}

/// Allows both forms of a table that may be written as the value of one of its fields.
fn either(fields: &mut Map<String, Value>, defs: &Value) {
    let table = fields.get("$ref").and_then(|reference| reference.as_str()?.strip_prefix("#/$defs/"));
    let Some(shorthand) = table.and_then(Shorthand::of) else { return };
    let mut short = defs[shorthand.table]["properties"][shorthand.field].clone();
    if let Some(short) = short.as_object_mut() {
        short.retain(|key, _| key != "description" && key != "default");
    }
    let long = fields.shift_remove("$ref").map(|reference| json!({ "$ref": reference }));
    fields.insert("anyOf".to_owned(), json!([short, long]));
}

/// Joins the lines of a description into one paragraph, because doc comments contain the line breaks of the
/// source.
fn unwrap_lines(fields: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// Merges constants with descriptions into one list of choices. Editors then show all choices below the
/// field's own description.
fn choices(fields: &mut Map<String, Value>) {
    let Some(Value::Array(constants)) = fields.get("oneOf") else { return };
    let Some(values) = constants.iter().map(|one| one.get("const").cloned()).collect::<Option<Vec<_>>>() else {
        return;
    };
    let meanings: Vec<Value> = constants.iter().map(|one| one["description"].clone()).collect();
    fields.shift_remove("oneOf");
    fields.insert("enum".to_owned(), values.into());
    fields.insert("enumDescriptions".to_owned(), meanings.into());
}

/// Keywords that apply to values of any type. A branch with such a keyword cannot be merged with
/// another branch.
const OF_ANY_TYPE: [&str; 8] = ["enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref"];

/// Keywords for readers. The field's own values of these keywords take precedence over those of a branch.
const FOR_READERS: [&str; 4] = ["description", "title", "examples", "default"];

/// Merges alternatives of different types into one schema with several types. Every other keyword
/// applies only to values of its own type, so the two forms are equivalent, and errors are then about
/// the value rather than about a branch.
fn one_of_types(fields: &mut Map<String, Value>, defs: &Value) {
    let Some(Value::Array(branches)) = fields.get("anyOf") else { return };
    let resolve = |branch: &Value| {
        let name = branch["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
        name.map_or(branch, |name| &defs[name]).as_object().cloned()
    };
    let Some(branches) = branches.iter().map(resolve).collect::<Option<Vec<_>>>() else { return };
    let mut types: Vec<Value> = Vec::new();
    for branch in &branches {
        if OF_ANY_TYPE.iter().any(|key| branch.contains_key(*key)) {
            return;
        }
        match branch.get("type") {
            Some(Value::Array(several)) => types.extend(several.iter().cloned()),
            Some(one) => types.push(one.clone()),
            None => return,
        }
    }
    let names: std::collections::BTreeSet<&str> = types.iter().filter_map(Value::as_str).collect();
    if names.len() < types.len() || (names.contains("integer") && names.contains("number")) {
        return;
    }
    fields.shift_remove("anyOf");
    fields.insert("type".to_owned(), types.into());
    for mut branch in branches {
        // The content of a table or list stays in a separate branch, because an editor that completes the key
        // would otherwise insert the long form.
        let long = branch.get("type").is_some_and(|one| *one == json!("object") || *one == json!("array"));
        branch.retain(|key, _| key != "type" && (key == "examples" || !FOR_READERS.contains(&key.as_str())));
        if let Some(examples) = branch.shift_remove("examples").filter(|_| !fields.contains_key("default")) {
            fields.entry("examples").or_insert(examples);
        }
        if !long {
            fields.extend(branch);
        } else if let Some(all) = fields.entry("allOf").or_insert(json!([])).as_array_mut() {
            all.push(branch.into());
        }
    }
}

/// Removes definitions that are no longer referenced.
fn drop_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(Value::Object(defs)) = schema.get_mut("$defs") else { return };
        let before = defs.len();
        defs.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if defs.len() == before {
            return;
        }
    }
}
