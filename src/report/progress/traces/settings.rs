//! Destination and resource attributes of traces: OpenTelemetry's environment variables (specification
//! 1.5x, *Environment Variable Specification* and *OpenTelemetry Protocol Exporter*).

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::span::{Attribute, SpanId, TraceId, Value};

/// Timeout of one request if `OTEL_EXPORTER_OTLP_TIMEOUT` is not set.
const TIMEOUT: Duration = Duration::from_secs(10);
const NAME: &str = "service.name";

/// The encoding of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Protobuf,
    Json,
}

/// The parent span of the sweep.
pub(super) type Parent = (TraceId, SpanId);

/// The settings from the environment. Headers are never printed.
pub(super) struct Settings {
    pub(super) url: Url,
    /// The variable that names the collector.
    pub(super) named_by: &'static str,
    pub(super) protocol: Protocol,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    pub(super) resource: Vec<Attribute>,
    pub(super) parent: Option<Parent>,
}

impl Settings {
    /// Reads the settings from the variables; `None` if no collector is named or traces are turned off. A
    /// variable for traces (`OTEL_EXPORTER_OTLP_TRACES_…`) takes precedence over the general variable.
    ///
    /// # Errors
    /// If a variable is invalid; the error contains its name, never its value.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Settings>, String> {
        // An empty variable counts as unset.
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let either = |[of_traces, of_all]: [&'static str; 2]| {
            set(of_traces).map(|value| (of_traces, value)).or_else(|| Some((of_all, set(of_all)?)))
        };
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let Some((named_by, endpoint)) = either(ENDPOINT) else { return Ok(None) };
        match set("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(_) => return Err("OTEL_TRACES_EXPORTER is neither `otlp` nor `none`".to_owned()),
        }
        let protocol = match either(PROTOCOL) {
            None => Protocol::Protobuf,
            Some((name, value)) => match value.as_str() {
                "http/protobuf" => Protocol::Protobuf,
                "http/json" => Protocol::Json,
                _ => return Err(format!("{name} is not a number of milliseconds")),
            },
        };
        let timeout = match either(WITHIN) {
            None => TIMEOUT,
            Some((name, value)) => {
                Duration::from_millis(value.parse().map_err(|_| format!("{name} is not a number of milliseconds"))?)
            }
        };
        let headers = either(HEADERS).map_or_else(|| Ok(HeaderMap::new()), |(name, value)| headers(name, &value))?;
        Ok(Some(Settings {
            url: url(named_by, &endpoint)?,
            named_by,
            protocol,
            headers,
            timeout,
            resource: resource(set("OTEL_SERVICE_NAME"), set("OTEL_RESOURCE_ATTRIBUTES"))?,
            parent: set("TRACEPARENT").and_then(|value| parent(&value)),
        }))
    }
}

const ENDPOINT: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const WITHIN: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];

/// The endpoint for traces is used as is; `/v1/traces` is appended to the endpoint for all signals.
fn url(name: &str, endpoint: &str) -> Result<Url, String> {
    let wrong = || format!("{name} is not an address like http://127.0.0.1:4318");
    let mut url = Url::parse(endpoint).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    if name == ENDPOINT[1] {
        let path = format!("{}/v1/traces", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

/// Pairs like `a=b,c=d` with percent-encoded values.
fn pairs<'a>(name: &'a str, text: &'a str) -> impl Iterator<Item = Result<(String, String), String>> + 'a {
    text.split(',').filter(|pair| !pair.trim().is_empty()).map(move |pair| {
        let wrong = || format!("{name} is not a list like key=value,key=value");
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        let value = percent_decoded(value.trim()).ok_or_else(wrong)?;
        Ok((key.trim().to_owned(), value))
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = (*first == b'%').then(|| behind.get(..2)).flatten();
        let byte = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).ok()
}

fn headers(name: &str, text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in pairs(name, text) {
        let (key, value) = pair?;
        let wrong = || format!("{name} has a name or a value that is invalid in a header");
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(key).map_err(|_| wrong())?, value);
    }
    Ok(headers)
}

fn resource(service: Option<String>, attributes: Option<String>) -> Result<Vec<Attribute>, String> {
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    let given: Vec<(String, String)> =
        pairs(name, attributes.as_deref().unwrap_or_default()).collect::<Result<_, _>>()?;
    let of = |wanted: &str| given.iter().rev().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
    let service = service.or_else(|| of(NAME)).unwrap_or_else(|| "sweepline".to_owned());
    let version = of("service.version").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    let own = [(NAME, service), ("service.version", version)];
    let more = given.iter().filter(|(key, _)| own.iter().all(|(known, _)| known != key)).cloned();
    let own = own.clone().map(|(key, value)| (key.to_owned(), value));
    Ok(own.into_iter().chain(more).map(|(key, value)| (key, Value::Text(value))).collect())
}

/// Parses W3C's `traceparent`: `00-<trace>-<span>-<flags>`; `None` if it is invalid.
fn parent(text: &str) -> Option<Parent> {
    let mut parts = text.split('-');
    let (_version, trace, span) = (parts.next().filter(|version| version.len() == 2)?, parts.next()?, parts.next()?);
    let (trace, span): (TraceId, SpanId) = (bytes(trace)?, bytes(span)?);
    (trace != [0; 16] && span != [0; 8]).then_some((trace, span))
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");

    #[test]
    fn without_a_collector_or_turned_off_there_are_none() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "s")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ALL, ("OTEL_SDK_DISABLED", "True")],
            &[ALL, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(of(variables).unwrap().is_none(), "{variables:?}");
        }
    }

    #[test]
    fn what_is_of_traces_alone_holds() {
        let found = of(&[ALL]).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.protocol), ("http://c:4318/base/v1/traces", Protocol::Protobuf));
        assert_eq!(found.timeout, TIMEOUT);
        let found = of(&[
            ALL,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/in"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=other"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Basic%20eDp5, x-a = b=c ,"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "300"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.protocol), ("https://t/in", Protocol::Json));
        assert_eq!(found.headers["authorization"], "Basic eDp5");
        assert_eq!(found.headers["x-a"], "b=c");
        assert!(found.headers.values().all(HeaderValue::is_sensitive));
        assert_eq!(found.timeout, Duration::from_millis(300));
    }

    #[test]
    fn the_origin_is_told() {
        let of = |variables: &[(&str, &str)]| {
            let variables = [&[ALL], variables].concat();
            of(&variables)
                .unwrap()
                .unwrap()
                .resource
                .into_iter()
                .map(|(key, value)| match value {
                    Value::Text(text) => format!("{key}={text}"),
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        let version = format!("service.version={}", env!("CARGO_PKG_VERSION"));
        assert_eq!(of(&[]), ["service.name=sweepline", &version]);
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=ci%2Cnight");
        assert_eq!(of(&[attributes]), ["service.name=a", &version, "deployment.environment.name=ci,night"]);
        assert_eq!(of(&[attributes, ("OTEL_SERVICE_NAME", "b")])[0], "service.name=b");
    }

    #[test]
    fn what_is_wrong_is_named_and_never_shown() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "secret:4318"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=secret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "secret"),
            ("OTEL_TRACES_EXPORTER", "secret"),
            ("OTEL_RESOURCE_ATTRIBUTES", "secret"),
        ] {
            let Err(why) = of(&[ALL, (name, value)]) else { panic!("{name} is accepted") };
            assert!(why.contains(name) && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn a_parent_is_one_or_none() {
        let parent = |text: &str| of(&[ALL, ("TRACEPARENT", text)]).unwrap().unwrap().parent;
        let (trace, span) = parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!((trace[0], span[7]), (0x0a, 0x31));
        for text in ["", "00-0-0-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "x"] {
            assert_eq!(parent(text), None, "{text}");
        }
    }
}
