//! Applies a treatment's values, such as `load.stages.0.rate: 5`, on top of a profile.

use serde_json::{Map, Value};

/// Sets a value in a profile. Returns `false` if the path crosses something that is neither a table nor a
/// list.
pub(super) fn lay(profile: &mut Value, path: &str, value: &Value) -> bool {
    // A key of the profile may itself contain dots.
    if let Value::Object(table) = profile
        && table.contains_key(path)
    {
        table.insert(path.to_owned(), value.clone());
        return true;
    }
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let below = match profile {
        Value::Array(list) => match first.parse::<usize>() {
            Ok(at) => list.get_mut(at),
            Err(_) => None,
        },
        Value::Object(table) => match rest {
            None => {
                table.insert(first.to_owned(), value.clone());
                return true;
            }
            Some(_) => Some(table.entry(first).or_insert_with(|| Value::Object(Map::new()))),
        },
        _ => None,
    };
    match (below, rest) {
        (Some(below), Some(rest)) => lay(below, rest, value),
        (Some(below), None) => {
            *below = value.clone();
            true
        }
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::lay;
    use serde_json::json;

    #[test]
    fn paths_lead_through_tables_and_lists() {
        let mut profile = json!({ "load": { "stages": [{ "rate": 1 }] }, "max-concurrency": 1 });
        assert!(lay(&mut profile, "load.stages.0.rate", &json!(5)));
        assert!(lay(&mut profile, "max-concurrency", &json!(8)));
        assert!(lay(&mut profile, "data.shared_prefix.output_len", &json!(9)));
        assert!(
            !lay(&mut profile, "load.stages.3.rate", &json!(5)) && !lay(&mut profile, "max-concurrency.x", &json!(5))
        );
        let wanted = json!({
            "load": { "stages": [{ "rate": 5 }] }, "max-concurrency": 8, "data": { "shared_prefix": { "output_len": 9 } }
        });
        assert_eq!(profile, wanted);
    }
}
