//! Streams recorded from real servers (`tests/streams/`): each stream must be parsed as the table of
//! dialects specifies for its engine.

use serde_json::Value;

use crate::plan::{Api, Dialect, Engine};

/// A recorded stream.
struct Stream {
    /// The value of the response's `Server` header.
    header: String,
    /// The data of the stream's events, without the end marker.
    events: Vec<String>,
}

fn stream(name: &str) -> Stream {
    let path = format!("{}/../../tests/streams/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap();
    let header = head.lines().find_map(|line| {
        let (field, value) = line.split_once(": ")?;
        field.eq_ignore_ascii_case("server").then(|| value.to_owned())
    });
    let events = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    Stream { header: header.unwrap(), events: events.map(str::to_owned).collect() }
}

#[test]
fn each_is_of_the_engine_that_it_shows() {
    for (name, engine) in [
        ("llama_server", Some(Engine::Llamacpp)),
        ("llama_cpp_python", None),
        ("mlx_lm", None),
        ("transformers_serve", None),
    ] {
        let shown = Dialect::said_by("", &stream(name).header).map(|dialect| dialect.engine);
        assert_eq!(shown, engine, "{name}");
    }
}

#[test]
fn each_is_read_as_its_dialect_says() {
    let protocol = Api::Chat.protocol();
    for (name, engine, prompt, output) in [
        ("llama_server", Engine::Llamacpp, Some(26), Some(6)),
        ("llama_cpp_python", Engine::Openai, None, None),
        ("mlx_lm", Engine::Openai, Some(18), Some(6)),
        ("transformers_serve", Engine::Openai, Some(18), Some(8)),
    ] {
        let (mut text, mut usage) = (String::new(), None);
        for event in &stream(name).events {
            let part = protocol.event(event.as_bytes()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?} in {event}"));
            text.push_str(&part.content);
            assert_eq!(part.reasoning, "", "{name}");
            usage = part.usage.or(usage);
        }
        assert!(!text.is_empty(), "{name}");
        assert_eq!(usage.as_ref().and_then(|usage| usage.prompt_tokens()), prompt, "{name}");
        assert_eq!(usage.as_ref().and_then(|usage| usage.completion_tokens()), output, "{name}");
        let dialect = Dialect::of(engine);
        assert!(
            dialect.include_usage != Some(true) || usage.is_some(),
            "{name}: the table specifies that it sends its usage"
        );
        if let Some(place) = dialect.cached_tokens {
            let pointer = format!("/{}", place.name.replace('.', "/"));
            let events = stream(name).events;
            let told =
                events.iter().find_map(|event| serde_json::from_str::<Value>(event).ok()?.pointer(&pointer)?.as_u64());
            assert_eq!(told, Some(0), "{name}: the table specifies that {} reports it", place.name);
            assert_eq!(usage.as_ref().and_then(|usage| usage.cached_tokens()), Some(0), "{name}");
        }
    }
}

#[test]
fn reasoning_is_read_under_every_name_of_the_table() {
    let protocol = Api::Chat.protocol();
    for dialect in &crate::plan::DIALECTS {
        for name in dialect.reasoning {
            let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"{name}":"why"}}}}]}}"#);
            assert_eq!(protocol.event(event.as_bytes()).unwrap().reasoning, "why", "{}: {name}", dialect.title);
        }
    }
}
