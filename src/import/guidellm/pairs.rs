//! Parses values of guidellm's command line: `kind=poisson,rate=5,extras.body.top_k=20`, JSON or
//! YAML.

use serde_json::{Map, Value};

use crate::import::secrets::Secrets;
use crate::import::tree;

/// Maximum number of steps in a key path.
const DEEPEST: usize = 16;
/// Maximum number of items in a list.
const LONGEST: usize = 256;

/// Reads pairs, JSON or YAML; `None` if the text has no such form.
pub(super) fn read(text: &str, secrets: &Secrets) -> Option<Value> {
    let text = text.trim();
    let value = match text.starts_with(['{', '[']) {
        true => match serde_json::from_str(text) {
            Ok(value) => value,
            // A text in brackets that is not JSON is parsed as YAML in flow style.
            Err(_) => tree::parse("value.yaml", &format!("value: {text}")).ok().flatten()?.peek("value")?.json(),
        },
        false => pairs(text)?,
    };
    secrets.add_json(&value);
    Some(value)
}

fn pairs(text: &str) -> Option<Value> {
    let mut root = Value::Object(Map::new());
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (path, value) = pair.split_once('=')?;
        put(&mut root, path.trim(), one(value.trim()))?;
    }
    Some(root)
}

/// Returns the value of a pair: a number, a switch, null or a text.
pub(super) fn one(text: &str) -> Value {
    match text {
        "true" | "True" => true.into(),
        "false" | "False" => false.into(),
        "" | "null" | "None" | "~" => Value::Null,
        _ => match text.parse::<serde_json::Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => text.trim_matches(['"', '\'']).into(),
        },
    }
}

/// Puts a value at `a.b[0].c`; `None` if the path is invalid.
pub(super) fn put(root: &mut Value, path: &str, value: Value) -> Option<()> {
    let mut here = root;
    let steps: Vec<&str> = path.split('.').collect();
    if steps.len() > DEEPEST {
        return None;
    }
    for (depth, step) in steps.into_iter().enumerate() {
        let (key, index) = match step.split_once('[') {
            Some((key, rest)) => (key, Some(rest.strip_suffix(']')?.parse::<usize>().ok().filter(|at| *at < LONGEST)?)),
            None => (step, None),
        };
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        // The names of settings may have hyphens instead of underscores. Deeper names are unchanged, because
        // they may be headers.
        let key = if depth == 0 { key.replace('-', "_") } else { key.to_owned() };
        here = here.as_object_mut()?.entry(key).or_insert(Value::Null);
        if let Some(index) = index {
            if !here.is_array() {
                *here = Value::Array(Vec::new());
            }
            let list = here.as_array_mut()?;
            while list.len() <= index {
                list.push(Value::Null);
            }
            here = &mut list[index];
        }
    }
    *here = value;
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_are_tables() {
        let read = |text: &str| read(text, &Secrets::default());
        assert_eq!(read("kind=poisson,rate=5"), Some(json!({"kind": "poisson", "rate": 5})));
        assert_eq!(
            read("extras.body.ignore_eos=false, a[1].b=x"),
            Some(json!({"extras": {"body": {"ignore_eos": false}}, "a": [null, {"b": "x"}]}))
        );
        assert_eq!(read("{\"streams\": [1, 2]}"), Some(json!({"streams": [1, 2]})));
        assert_eq!(read("{kind: sweep, sweep_size: 5}"), Some(json!({"kind": "sweep", "sweep_size": 5})));
        assert_eq!(read("openai_http"), None);
        assert_eq!(read("a[99999999]=1"), None);
        let secrets = Secrets::default();
        super::read("kind=openai_http,api_key=verysecret1", &secrets);
        assert_eq!(secrets.hide("x verysecret1"), "x ***");
    }
}
