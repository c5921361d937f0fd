//! References to secrets.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::{DisplayFromStr, serde_as};

use crate::units::Forms;
use crate::units::text::is_variable;

/// Where to find a secret when it is needed. A plan never contains the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// The first line of a file under the plan's folder.
    File(String),
}

// The text is parsed during reading, so that an error in it is reported at its place.
/// Where to find a secret.
#[serde_as]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Secret")]
struct SecretLong {
    /// env:NAME for an environment variable, file:PATH for the first line of a file.
    #[schemars(with = "String")]
    #[schemars(regex(pattern = r"^(env|file):.+$"))]
    #[schemars(example = "env:VLLM_API_KEY")]
    #[schemars(example = "file:keys/vllm")]
    #[serde_as(as = "DisplayFromStr")]
    secret: SecretRef,
}

impl FromStr for SecretRef {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(SecretRef::Env(name.to_owned())),
            Some(("env", _)) => {
                Err("a secret reference must name an environment variable: write { secret: env:NAME } and put \
                     the secret itself into that variable"
                    .to_owned())
            }
            Some(("file", path)) if !path.is_empty() => Ok(SecretRef::File(path.to_owned())),
            _ if shell_variable(text).is_some() => Err(format!(
                "the variable of a secret is written without `$`: write {{ secret: env:{} }}",
                shell_variable(text).unwrap_or_default()
            )),
            // The text may be a key that was pasted in, so it is not repeated.
            _ => Err(
                "a secret is a reference, never the secret itself: write { secret: env:NAME } or { secret: file:PATH }"
                    .to_owned(),
            ),
        }
    }
}

/// The name in `$NAME` or `${NAME}`. It must be in capitals, as is usual for variables: no secret key looks like
/// this, so an error message may repeat it.
fn shell_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    (is_variable(name) && !name.contains(|c: char| c.is_ascii_lowercase())).then_some(name)
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SecretLong { secret: self.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a reference like { secret: env:NAME }")
            .text(|text| {
                let reference: SecretRef = text.parse()?;
                let why = format!("a secret reference must be a table: write {{ secret: {reference} }}");
                Err(why.into())
            })
            .table(|long: SecretLong| Ok(long.secret))
            .read(deserializer)
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "SecretReference".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SecretLong::json_schema(generator)
    }
}
