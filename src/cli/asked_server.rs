//! The server for which a new plan is written: the flags that specify the server, and the information that
//! it reports about itself.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::cli::failure::Failure;
use crate::cli::stderr;
use crate::import::{FreshServer, api_base};
use crate::network::Route;
use crate::plan::{Api, Engine};
use crate::report::format::plain;
use crate::server::{Description, ProbeError, Question, describe};
use crate::units::secrecy::{carries_secret, looks_like_key};
use crate::units::text::is_variable;
use crate::units::{Address, Nanos};

/// Time limit of each query to the server, long enough for a busy server to list its models.
const WITHIN: Nanos = Nanos::from_secs(10);

/// The HTTP status of a missing page.
const NOT_FOUND: u16 = 404;

/// The flags that select a server and one of the models that it serves.
#[derive(Debug, Args)]
pub(crate) struct AskedServer {
    /// Base address of the server's OpenAI-compatible API, like http://127.0.0.1:8000/v1, or only its host
    /// and port; sweepline queries the server for its models and version. Without --url, the plan measures
    /// the embedded mock
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// The model's id; required if the server lists several models, or does not respond
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// The inference engine, if the server does not report it
    #[arg(long, value_enum, requires = "url")]
    engine: Option<EngineName>,
    /// The API to call
    #[arg(long, value_parser = PossibleValuesParser::new(Api::ALL.map(Api::name)).try_map(|name| Api::named(&name)), default_value = "chat", requires = "url")]
    api: Api,
    /// The environment variable that holds the server's API key
    #[arg(long, value_name = "NAME", requires = "url")]
    api_key_env: Option<String>,
}

/// What a new plan measures: a model, and the server that serves it.
pub(super) struct Asked {
    /// The model's id.
    pub(super) model: String,
    /// The maximum number of tokens of prompt and output together, if the server reported it.
    pub(super) longest: Option<u64>,
    /// The server; `None` for the embedded mock.
    pub(super) server: Option<FreshServer>,
}

impl AskedServer {
    /// Queries the server, if --url names one, and returns what the new plan measures.
    pub(super) fn ask(&self) -> Result<Asked, Failure> {
        let described = self.url.as_ref().map(|url| found(self, url)).transpose()?;
        let (url, said) = described.unzip();
        Ok(Asked {
            model: model(self, url.as_deref(), said.as_ref())?,
            longest: said.as_ref().and_then(|said| said.longest),
            server: url.zip(said).map(|(url, said)| server(self, &url, said)),
        })
    }
}

/// The inference engines that --engine accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// NVIDIA NIM.
    Nim,
    /// Hugging Face Text Generation Inference.
    Tgi,
    /// llama.cpp's server.
    Llamacpp,
    /// Any other OpenAI-compatible server.
    Openai,
    /// sweepline's own mock.
    Mock,
}

/// Returns the address of the server's API, and the server's description of itself. If only a host and port
/// are given, a scheme and `/v1` are added. If there is no list of models at the address, the query is
/// repeated with `/v1` added or removed.
fn found(args: &AskedServer, typed: &str) -> Result<(String, Description), Failure> {
    // The error does not repeat the typed text, which may contain a key.
    let is_no_url =
        |reason| Failure::Usage(format!("--url is not the URL of a server: {reason}; write http://HOST:PORT"));
    // The query of an address may be a part of it, as in the addresses of Azure's deployments.
    let with_query = Address::parse(typed).ok().filter(|address| address.url().query().is_some());
    let (url, had_secret) = match with_query.filter(|address| !carries_secret(address.url())) {
        Some(address) => {
            let of_call = ["/chat/completions", "/completions"].iter();
            let base = of_call.filter_map(|call| Address::of_call(address.url(), call)).next();
            (base.unwrap_or(address).to_string(), false)
        }
        None => api_base(typed).map_err(is_no_url)?,
    };
    if had_secret || reqwest::Url::parse(typed).is_ok_and(|url| carries_secret(&url)) {
        let text = "--url contains a user name, password or key, which would end up in the plan: remove it, and name \
                    the variable that holds the key with --api-key-env";
        return Err(Failure::Usage(text.to_owned()));
    }
    let first = ask(args, &url)?;
    let other = parsed(&url)?.with_or_without_v1().to_string();
    let is_absent = |said: &Description| said.refused == Some(NOT_FOUND);
    let (url, said) = match is_absent(&first).then(|| ask(args, &other)) {
        Some(Ok(second)) if !second.models.is_empty() => (other, second),
        _ => (url, first),
    };
    if url != typed.trim_end_matches('/') {
        stderr::complain(&format!("--url {}: using {}", plain(typed), plain(&url)));
    }
    Ok((url, said))
}

/// Parses the address of the server's API.
fn parsed(url: &str) -> Result<Address, Failure> {
    Address::parse(url).map_err(|error| Failure::Usage(format!("--url is not the URL of a server: {error}")))
}

/// Queries the server. A server that does not respond is not an error if --model names the model.
fn ask(args: &AskedServer, url: &str) -> Result<Description, Failure> {
    let address = parsed(url)?;
    let question = Question {
        headers: Vec::new(),
        secrets: Vec::new(),
        route: Route::direct(address),
        api_key: key(args.api_key_env.as_deref())?,
        http2: false,
        ready: None,
        api: args.api,
        model: args.model.clone().unwrap_or_default(),
        connect: WITHIN,
        within: WITHIN,
    };
    match describe(&question) {
        Ok(said) => Ok(said),
        Err(ProbeError::Key { url, status, .. }) => {
            let (url, remedy) = (
                plain(&url),
                match &args.api_key_env {
                    None => "pass --api-key-env NAME, the name of the environment variable that holds it".to_owned(),
                    Some(name) => format!("check the key in {name}"),
                },
            );
            Err(Failure::Usage(format!(
                "{url} requires an API key, or rejects the given one (HTTP {status}); {remedy}"
            )))
        }
        Err(error) if args.model.is_some() => {
            stderr::complain(&format!("warning: {}; the plan is made from the flags alone", plain(&error.to_string())));
            Ok(Description::default())
        }
        Err(error) => {
            let text = plain(&error.to_string());
            let is_tls = url.starts_with("https://") && text.contains("tls");
            let remedy = match is_tls {
                true => "if the server does not use TLS, write http://",
                false => "start the server, or use --model ID to make the plan without it",
            };
            // If the error ends with a question, the remedy becomes a sentence that starts with a capital
            // letter.
            let remedy = match text.ends_with('?') {
                true => format!(" {}{}", remedy[..1].to_uppercase(), &remedy[1..]),
                false => format!("; {remedy}"),
            };
            Err(Failure::Usage(format!("{text}{remedy}")))
        }
    }
}

/// Reads the key from an environment variable. If the key itself was given in place of the variable's name,
/// the error does not repeat it.
fn key(variable: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(name) = variable else { return Ok(None) };
    if !is_variable(name) || looks_like_key(name) {
        let text = "--api-key-env takes the name of an environment variable, not the key itself: set a variable like \
                    VLLM_API_KEY to the key, and pass its name";
        return Err(Failure::Usage(text.to_owned()));
    }
    let key = std::env::var(name).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    if key.is_none() {
        stderr::complain(&format!("warning: the variable {name} is not set: the server is queried without a key"));
    }
    Ok(key)
}

/// Returns the model that --model names, or the only model that the server lists; without a server, a
/// default name.
fn model(args: &AskedServer, url: Option<&str>, described: Option<&Description>) -> Result<String, Failure> {
    let (Some(url), Some(said)) = (url, described) else {
        return Ok(args.model.clone().unwrap_or_else(|| "demo-7b".to_owned()));
    };
    let listed = plain(&said.models.iter().take(12).cloned().collect::<Vec<_>>().join(", "));
    match (&args.model, said.models.as_slice()) {
        (Some(model), models) => {
            if !models.is_empty() && !models.contains(model) {
                stderr::complain(&format!("warning: the server does not list `{model}`; it lists {listed}"));
            } else if models.is_empty() && said.responded {
                stderr::complain(&format!("warning: {}", no_model(url, said)));
            }
            Ok(model.clone())
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => {
            let why = no_model(url, said);
            Err(Failure::Usage(format!("{why}; retry once the server lists a model, or name one with --model ID")))
        }
        (None, _) => {
            Err(Failure::Usage(format!("the server lists several models; choose one with --model ID: {listed}")))
        }
    }
}

/// Returns why the server lists no model.
fn no_model(url: &str, said: &Description) -> String {
    match said.refused {
        Some(status) => refusal(url, status),
        None if said.is_list => "the server lists no model: it has not loaded one yet, or serves none".to_owned(),
        None => format!(
            "{} does not return a list of models: check that --url is the address of an OpenAI-compatible API",
            plain(&format!("{url}/models"))
        ),
    }
}

/// Returns why no list of models is available.
fn refusal(url: &str, status: u16) -> String {
    let models = plain(&format!("{url}/models"));
    match status {
        NOT_FOUND => format!(
            "no list of models at {models} (HTTP 404), with or without /v1: --url must be the part of the address \
             before /chat/completions"
        ),
        429 => format!("{models} returned HTTP 429: the server limits the request rate"),
        502..=504 => {
            format!("{models} returned HTTP {status}: the server is starting, loading its model or overloaded")
        }
        status => format!("{models} returned HTTP {status}"),
    }
}

fn server(args: &AskedServer, url: &str, said: Description) -> FreshServer {
    let given = args.engine.map(|engine| match engine {
        EngineName::Vllm => Engine::Vllm,
        EngineName::Sglang => Engine::Sglang,
        EngineName::Nim => Engine::Nim,
        EngineName::Tgi => Engine::Tgi,
        EngineName::Llamacpp => Engine::Llamacpp,
        EngineName::Openai => Engine::Openai,
        EngineName::Mock => Engine::Mock,
    });
    let given = given.map(|engine| (engine, "set by --engine".to_owned()));
    let unknown = || (Engine::Openai, "not reported by the server".to_owned());
    FreshServer {
        url: url.to_owned(),
        engine: given.or(said.engine).unwrap_or_else(unknown),
        api: args.api,
        api_key_env: args.api_key_env.clone(),
        version: said.version,
        flags: said.flags.into_iter().collect(),
    }
}
