//! Other fields of a request in the command, from separate options and from `--extra-body`.

use serde_json::Value;

use crate::import::arguments::Arguments;
use crate::import::request::BodyField;
use crate::import::said::Said;
use crate::units::Decimal;

/// The options, and the fields of a request that they set.
const OPTIONS: [(&str, &str); 3] =
    [("top-k", "top_k"), ("min-p", "min_p"), ("repetition-penalty", "repetition_penalty")];

/// Returns the fields of a request's body in the command, each with its origin; options first.
pub(super) fn fields(arguments: &Arguments) -> Vec<BodyField> {
    let mut fields = Vec::new();
    for (option, key) in OPTIONS {
        let Some(Said { value, origin }) = arguments.number::<Decimal>(option, "a number") else { continue };
        let number = serde_json::from_str(&value.to_string()).unwrap_or(Value::Null);
        fields.push((key.to_owned(), number, origin.split(' ').next().unwrap_or_default().to_owned()));
    }
    let object = |said: Said<String>| match serde_json::from_str(&said.value) {
        Ok(Value::Object(object)) => Some(object),
        _ => {
            arguments.missing(said.origin.split(' ').next().unwrap_or_default(), "this is not a JSON object");
            None
        }
    };
    if let Some(body) = arguments.text("extra-body").and_then(object) {
        arguments.secrets().add_json(&Value::Object(body.clone()));
        fields.extend(body.into_iter().map(|(key, value)| {
            let origin = format!("--extra-body {key}");
            (key, value, origin)
        }));
    }
    if let Some(table) = arguments.text("chat-template-kwargs").and_then(object) {
        fields.push(("chat_template_kwargs".to_owned(), Value::Object(table), "--chat-template-kwargs".to_owned()));
    }
    fields
}
