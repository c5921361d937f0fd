//! Converts each deployment that an experiment compares to an endpoint. A plan does not deploy anything.
//! Until you set the addresses of the endpoints, these are invalid, so that nothing is measured under a wrong
//! name.

use crate::import::draft::{Draft, Field};
use crate::import::importer::Context;
use crate::import::text::{cell_text, list, name_of, scalar, table, text_value};
use crate::import::tree::At;
use crate::units::Decimal;

/// Creates the endpoints.
pub(super) fn endpoints(setup: At, draft: &mut Draft, context: &Context) {
    let treatments: Vec<At> = setup.get("treatments").map(At::list).unwrap_or_default();
    let is_plain =
        !treatments.is_empty() && treatments.iter().all(|at| at.is_table()) && draft.endpoints.all.len() == 1;
    if context.wishes.url.is_some() || !is_plain {
        let why =
            "each of these is a deployment on Kubernetes: deploy it with llmdbenchmark and run this plan against it";
        return setup.refused(why);
    }
    let common: Vec<(&str, At)> = setup.get("constants").map(At::entries).unwrap_or_default();
    let usual = draft.endpoints.all.remove(0);
    let mut names = Vec::new();
    for (number, at) in treatments.iter().enumerate() {
        let said = at.get("name").and_then(At::text);
        let name = said.map_or_else(|| format!("setup-{number}"), |said| said.value);
        let own = at.entries().into_iter().filter(|(key, _)| *key != "name").collect::<Vec<_>>();
        let common = common.iter().filter(|(key, _)| own.iter().all(|(other, _)| other != key)).copied();
        let flags: Vec<(String, String)> =
            common.chain(own.iter().copied()).filter_map(|(key, at)| fact(key, at)).collect();
        let mut fields = usual.fields.clone();
        let host = host(&name);
        for field in fields.iter_mut().filter(|field| field.key == "url") {
            field.value = moved(&field.value, &host);
            field.origin = "set this to the address of the deployment's gateway".to_owned();
        }
        fields.retain(|field| field.key != "server");
        if !flags.is_empty() {
            let flags = table(flags.iter().map(|(key, value)| (key, value)));
            fields.push(Field::new("server", format!("{{ flags: {flags} }}"), at.origin()));
        }
        let name = draft.endpoints.add(&name, fields);
        match names.contains(&name) {
            true => at.needless("the same deployment is already listed"),
            false => names.push(name),
        }
    }
    for axis in draft.sweeps.iter_mut().flat_map(|sweep| &mut sweep.matrix).filter(|axis| axis.key == "endpoint") {
        axis.value = list(&names);
    }
    let why = "each is a deployment on Kubernetes: deploy it with llmdbenchmark and replace `….invalid` by the \
               address of its gateway";
    context.notes.differs("setup.treatments", why, setup.line());
}

/// Returns a deployment's value as a fact of its server; values that are tables or lists are listed
/// instead.
fn fact(key: &str, at: At) -> Option<(String, String)> {
    let value = match at.peek().json() {
        value @ serde_json::Value::Bool(_) => value.to_string(),
        // A number that a plan cannot represent is kept as text.
        serde_json::Value::Number(number) => match number.to_string() {
            text if text.parse::<Decimal>().is_ok() => text,
            text => scalar(&text),
        },
        serde_json::Value::String(text) => scalar(&cell_text(&text)),
        _ => {
            at.missing("a fact of a server is a single value: write it under `server` of the endpoint");
            return None;
        }
    };
    at.take();
    let name: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' }).collect();
    Some((scalar(&name).trim_matches('"').to_owned(), value))
}

/// Returns a nonexistent host with that name.
fn host(name: &str) -> String {
    let name = name_of(name, "setup").to_ascii_lowercase().replace(['_', '.'], "-");
    format!("{name}.invalid")
}

/// Returns the address with another host.
fn moved(url: &str, host: &str) -> String {
    let plain = url.trim_matches('"');
    let (scheme, rest) = plain.split_once("://").unwrap_or(("http", plain));
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    text_value(&format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_move_and_keep_their_path() {
        assert_eq!(moved("http://127.0.0.1:8000/v1", &host("ms-d1xTP8_p.8")), "http://ms-d1xtp8-p-8.invalid/v1");
    }
}
