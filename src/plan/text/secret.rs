//! References to secrets.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::text::token_command::TokenCommand;
use crate::units::Forms;
use crate::units::text::is_variable;

/// The folders into which container platforms mount secrets. A plan may refer to files in them.
pub const MOUNTED: [&str; 2] = ["/run/secrets", "/var/run/secrets"];

/// Where to find a secret when it is needed. A plan never contains the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// The first line of a file in the plan's folder, or of a mounted secret.
    File(String),
    /// The output of a command, for tokens that expire.
    Command(TokenCommand),
}

impl SecretRef {
    /// The command that prints the secret; `None` for other references.
    pub fn command(&self) -> Option<&TokenCommand> {
        match self {
            SecretRef::Env(_) | SecretRef::File(_) => None,
            SecretRef::Command(command) => Some(command),
        }
    }

    /// The reference as it is part of a run's identity. How long a token is valid does not affect a run, so
    /// it is not included.
    pub fn identity(&self) -> String {
        let json = match self {
            SecretRef::Env(_) | SecretRef::File(_) => serde_json::to_value(self).unwrap_or_default(),
            SecretRef::Command(TokenCommand { command, valid: _ }) => {
                serde_json::json!({ "secret": { "command": command } })
            }
        };
        json.to_string()
    }
}

/// The folder of [`MOUNTED`] in which a file is; `None` for other files. A path with `..` is in neither.
pub fn mount_of(file: &str) -> Option<&'static str> {
    let path = Path::new(file);
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    MOUNTED.into_iter().find(|folder| path.starts_with(folder) && path != Path::new(folder))
}

/// Where to find a secret.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Secret")]
struct SecretLong {
    /// env:NAME for an environment variable, file:PATH for the first line of a file, or a command that prints a
    /// token.
    secret: Source,
}

/// Where the value of a secret comes from.
struct Source(SecretRef);

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            SecretRef::Command(command) => command.serialize(serializer),
            reference => serializer.collect_str(reference),
        }
    }
}

// The text is parsed during reading, so that an error in it is reported at its place.
impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a reference like env:NAME, or a table like { command: [PROGRAM], valid: 50m }")
            .text(|text| Ok(Source(text.parse()?)))
            .table(|command| Ok(Source(SecretRef::Command(command))))
            .read(deserializer)
    }
}

impl JsonSchema for Source {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "SecretSource".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": "^(env|file):.+$" },
                generator.subschema_for::<TokenCommand>(),
            ],
            "examples": [
                "env:VLLM_API_KEY",
                "file:keys/vllm",
                { "command": ["gcloud", "auth", "print-access-token"], "valid": "50m" },
            ],
        })
    }
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
            SecretRef::Command(command) => write!(f, "{command}"),
        }
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SecretLong { secret: Source(self.clone()) }.serialize(serializer)
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
            .table(|long: SecretLong| Ok(long.secret.0))
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
