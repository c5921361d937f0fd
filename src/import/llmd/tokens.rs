//! Placeholders that llm-d-benchmark fills when it renders a profile: `REPLACE_ENV_LLMDBENCH_…`.

use crate::import::error::ImportError;
use crate::import::importer::Context;

/// The prefix of every placeholder.
const PLACE: &str = "REPLACE_ENV_LLMDBENCH_";
/// The default address.
const URL: &str = "http://127.0.0.1:8000";

/// Whether a text has placeholders.
pub(super) fn has(text: &str) -> bool {
    text.contains(PLACE)
}

/// Fills in the model and the server. Other placeholders stay unchanged, as in llm-d-benchmark.
pub(super) fn filled(text: &str, context: &Context) -> Result<String, ImportError> {
    let wishes = context.wishes;
    let model = ["DEPLOY_CURRENT_MODEL", "DEPLOY_CURRENT_TOKENIZER"].map(|name| format!("{PLACE}{name}"));
    let asks = model.iter().any(|place| without_longer(text, place));
    let id = match &wishes.model {
        Some(id) => id.clone(),
        None if asks => {
            let what = "it has a placeholder for the model, and no model is set";
            return Err(ImportError::shape(wishes.name.clone(), what, "add --model ID"));
        }
        None => String::new(),
    };
    let url = match &wishes.url {
        Some(url) => url.trim_end_matches("/v1").to_owned(),
        None => URL.to_owned(),
    };
    let text = model.iter().fold(text.to_owned(), |text, place| replaced(&text, place, &id));
    Ok(replaced(&text, &format!("{PLACE}HARNESS_STACK_ENDPOINT_URL"), &url))
}

/// Whether the text has this placeholder rather than only a longer name that starts with it.
fn without_longer(text: &str, place: &str) -> bool {
    text.match_indices(place).any(|(at, _)| !continues(text, at + place.len()))
}

fn continues(text: &str, at: usize) -> bool {
    text[at..].starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
}

/// Replaces a name with a value, quoted if YAML would read it differently.
fn replaced(text: &str, place: &str, value: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(place) {
        let end = at + place.len();
        filled.push_str(&rest[..at]);
        match continues(rest, end) {
            true => filled.push_str(place),
            false => {
                let is_alone =
                    rest[..at].ends_with([' ', '\n']) && rest[end..].chars().next().is_none_or(char::is_whitespace);
                let quoted = serde_json::Value::from(value).to_string();
                let in_quotes = quoted.trim_matches('"');
                filled.push_str(if is_alone { &quoted } else { in_quotes });
            }
        }
        rest = &rest[end..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_others_stay() {
        let text = "model: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL\nlen: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL_LEN\n\
                    url: \"REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL/x\"\n";
        let filled = replaced(text, "REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL", "a/b");
        assert_eq!(filled, "model: \"a/b\"\nlen: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL_LEN\nurl: \"a/b/x\"\n");
    }
}
