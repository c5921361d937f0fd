//! Reads a server's description beyond its list of models: engine, version, served model, context length and
//! flags. Each request is a GET with a short time limit, and the server need not support any of them. No
//! response can do harm: responses that are too long, not JSON or of an unexpected form are ignored, and
//! secrets are removed from values that are displayed.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::probe::{MOST_MODELS, Question, body, client, send};
use super::self_description::{ListedModel, SelfDescription};
use crate::network::{Client, Request, Response};
use crate::plan::model::dialect::Page;
use crate::plan::{DIALECTS, Dialect, Engine};
use crate::units::Nanos;

/// The time limit of each request.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Identifies a server with only GET requests. `declared` is the engine in the plan. Returns `None` if the
/// server does not respond or does not accept the API key.
pub fn look(question: &Question, declared: Engine) -> Option<SelfDescription> {
    let question = short(question);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let client = client(&question).ok()?;
        let response = send(&client, Request::get(question.models_path()), &question).await.ok()?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return None;
        }
        let header = server_header(&response);
        let list = if response.status().is_success() { body(response, &question).await.ok()? } else { Value::Null };
        Some(read(&client, &question, declared, (&list, &header)).await)
    })
}

/// Requests the version twice more, on separate connections, to detect a load balancer in front of servers
/// of different versions. Returns the first version that differs from `before`; `None` if the server
/// reports the same version each time, or no version.
pub fn other_version(question: &Question, before: &SelfDescription) -> Option<String> {
    let (known, page) = (before.version.as_ref()?, before.page?);
    let question = short(question);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let client = client(&question).ok()?;
        for _ in 0..2 {
            let (_, version) = ask(&client, &question, page).await.ok()??;
            if !crate::rows::same_release(known, &version) {
                return Some(version);
            }
        }
        None
    })
}

/// Returns the request settings with the shorter time limits that apply to identifying a server.
fn short(question: &Question) -> Question {
    let longest = Nanos::from(LONGEST_LOOK);
    Question { connect: question.connect.min(longest), within: question.within.min(longest), ..question.clone() }
}

/// Returns the value of the `Server` header.
pub(super) fn server_header(response: &Response) -> String {
    response.header("server").unwrap_or_default().to_owned()
}

/// Evaluates the list of models, and requests the pages that may contain a version until one of them does. If
/// a page times out, no further page is requested.
pub(super) async fn read(
    client: &Client,
    question: &Question,
    declared: Engine,
    (list, header): (&Value, &str),
) -> SelfDescription {
    let first = &list["data"][0];
    let owner = first["owned_by"].as_str().unwrap_or_default();
    let shown = Dialect::said_by(owner, header);
    let by = |dialect: &Dialect| match dialect.owner.is_some_and(|name| owner.to_ascii_lowercase().contains(name)) {
        true => format!("its models are owned by {}", question.presentable(owner)),
        false => format!("its Server header is {}", question.presentable(header)),
    };
    let mut said = SelfDescription {
        engine: shown.map(|dialect| (dialect.engine, by(dialect))),
        listed: listed(list, question, shown.map_or(declared, |dialect| dialect.engine)),
        ..SelfDescription::default()
    };
    for (dialect, page) in pages(declared, shown) {
        let Ok(answer) = ask(client, question, page).await else { break };
        let Some((page_says, version)) = answer else { continue };
        let has_its_form = dialect.model.is_none_or(|pointer| page_says.pointer(pointer).is_some());
        if said.engine.is_none() && (dialect.engine == declared || page.is_telling && has_its_form) {
            said.engine = Some((dialect.engine, format!("it responds at {}", page.path)));
        }
        take(&mut said, dialect, &page_says, question);
        (said.version, said.page) = (Some(version), Some(page));
        break;
    }
    said
}

/// Reads model, context length and flags from the page that contains the version.
fn take(said: &mut SelfDescription, dialect: &Dialect, page: &Value, question: &Question) {
    let text = |pointer: &str| page.pointer(pointer).and_then(|value| shown_value(value, question));
    said.model = dialect.model.and_then(text);
    said.context_length = dialect.context.iter().find_map(|pointer| page.pointer(pointer)?.as_u64());
    let flag = |pointer: &&str| Some((pointer.trim_start_matches('/').to_owned(), text(pointer)?));
    said.flags = dialect.flags.iter().filter_map(flag).collect();
}

/// Formats a number, a boolean or a text for display; returns `None` for other values and blank texts.
fn shown_value(value: &Value, question: &Question) -> Option<String> {
    match value {
        Value::String(text) => Some(question.presentable(text)).filter(|text| !text.trim().is_empty()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the description of each model in a list of models, for at most [`MOST_MODELS`] models.
fn listed(list: &Value, question: &Question, engine: Engine) -> Vec<ListedModel> {
    let context = Dialect::of(engine).context;
    let entries = list["data"].as_array().into_iter().flatten().take(MOST_MODELS);
    let model = |entry: &Value| {
        Some(ListedModel {
            id: question.presentable(entry["id"].as_str()?),
            root: entry["root"].as_str().filter(|root| !root.is_empty()).map(|root| question.presentable(root)),
            context_length: context.iter().find_map(|pointer| entry.pointer(pointer)?.as_u64()),
        })
    };
    entries.filter_map(model).collect()
}

/// Returns the pages to request: the pages of the detected engine, otherwise those of the engine in the
/// plan. If neither is known, the pages of all engines are returned, each page once.
fn pages(declared: Engine, shown: Option<&'static Dialect>) -> Vec<(&'static Dialect, Page)> {
    let of = |dialect: &'static Dialect| dialect.version.iter().map(move |page| (dialect, *page));
    match (declared, shown) {
        // NIM looks like vLLM, because it is based on vLLM, but its own page reports the release of NIM.
        (Engine::Nim, _) => of(Dialect::of(Engine::Nim)).collect(),
        (_, Some(shown)) => of(shown).collect(),
        (Engine::Openai, None) => {
            let mut all: Vec<(&Dialect, Page)> = DIALECTS.iter().flat_map(of).collect();
            let mut asked = std::collections::HashSet::new();
            all.retain(|(_, page)| asked.insert(page.path));
            all
        }
        (declared, None) => of(Dialect::of(declared)).collect(),
    }
}

/// Requests a page. Returns its JSON and the version that it contains; `None` if the page does not exist or
/// contains no version. Fails if the server cannot be reached or does not respond in time.
async fn ask(client: &Client, question: &Question, page: Page) -> Result<Option<(Value, String)>, ()> {
    let path = question.address().beside_api(page.path);
    let asked = Request::get(path).within(LONGEST_LOOK);
    let response = send(client, asked, question).await.map_err(drop)?;
    if !response.status().is_success() {
        return Ok(None);
    }
    let answer = body(response, question).await.map_err(drop)?;
    let version = answer[page.key].as_str().map(|version| question.presentable(version.trim()));
    Ok(version.filter(|version| is_version(version)).map(|version| (answer, version)))
}

/// Whether a text can be a version: it must be short, contain a digit, and contain no whitespace. This
/// excludes HTML pages and sentences.
fn is_version(text: &str) -> bool {
    text.len() <= 100 && text.bytes().any(|byte| byte.is_ascii_digit()) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Route;
    use crate::units::Address;

    fn question() -> Question {
        Question {
            route: Route::direct(Address::parse("http://127.0.0.1:1/v1").unwrap()),
            api_key: Some("sk-0123456789abcdef".to_owned()),
            headers: Vec::new(),
            secrets: Vec::new(),
            http2: false,
            api: crate::plan::Api::Chat,
            ready: None,
            model: "m".to_owned(),
            connect: Nanos::from_secs(1),
            within: Nanos::from_secs(1),
        }
    }

    #[test]
    fn only_flags_of_the_table_are_taken() {
        let page = serde_json::json!({
            "tp_size": 4, "api_key": "sk-0123456789abcdef", "admin_api_key": "other", "model_path": "/models/sk-0123456789abcdef",
            "attention_backend": null, "disable_radix_cache": true, "quantization": ["fp8"],
        });
        let mut said = SelfDescription::default();
        take(&mut said, Dialect::of(Engine::Sglang), &page, &question());
        let flags: Vec<(&str, &str)> = said.flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(flags, [("disable_radix_cache", "true"), ("tp_size", "4")]);
        assert_eq!(said.model.as_deref(), Some("/models/[secret]"));
    }

    #[test]
    fn the_model_is_what_stands_behind_the_id() {
        let list = serde_json::json!({ "data": [
            { "id": "chat", "owned_by": "vllm", "root": "/models/llama-3", "max_model_len": 8192 },
            { "id": "lora", "root": "/models/lora", "parent": "chat", "max_model_len": null },
            { "name": "no id" },
        ] });
        let said = SelfDescription { listed: listed(&list, &question(), Engine::Vllm), ..SelfDescription::default() };
        let chat = said.of_model("chat");
        assert_eq!((chat.model.as_deref(), chat.context_length), (Some("/models/llama-3"), Some(8192)));
        assert_eq!(said.of_model("lora").model.as_deref(), Some("/models/lora"));
        assert!(said.of_model("alias").is_empty());
        let list = serde_json::json!({ "data": [{ "id": "chat", "owned_by": "sglang", "root": "chat" }] });
        let mut said =
            SelfDescription { listed: listed(&list, &question(), Engine::Sglang), ..SelfDescription::default() };
        assert_eq!(said.of_model("chat").model.as_deref(), Some("chat"));
        said.model = Some("/models/llama-3".to_owned());
        assert_eq!(said.of_model("chat").model.as_deref(), Some("/models/llama-3"));
    }

    #[test]
    fn a_version_is_one_short_word() {
        for version in ["0.11.0", "v0.11.0+cu128", "b6123-4a5b6c7", "3.3.6-dev0"] {
            assert!(is_version(version), "{version}");
        }
        for other in ["", "unknown", "<html> 404 </html>", "0.11.0 of today"] {
            assert!(!is_version(other), "{other}");
        }
        assert!(!is_version(&"1".repeat(101)));
    }
}
