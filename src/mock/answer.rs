//! Handles a request up to its response: routing, rejections and the queue for slots.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use serde_json::json;

use super::arrival::Arrival;
use super::chain::Chain;
use super::config::Config;
use super::conn::{Conn, Gone, Head, Incoming, Next, Unreadable};
use super::fault::{self, Kind};
use super::head::{JSON, error, head};
use super::http2;
use super::job::{End, Job};
use super::log::{Entry, Line, Outcome};
use super::metrics;
use super::random::random;
use super::request::{Api, Request};
use super::slot::Slot;
use super::stream::Stream;
use super::tell;
use super::timer::now;
use super::tokenize;
use super::whole;
use super::wire::{Framing, Wire};

/// Serves a connection until it ends.
pub(super) async fn connection(mut conn: Conn) {
    loop {
        let end = match conn.next().await {
            Ok(Next::Request(incoming)) => answer(&mut conn, &incoming).await,
            Ok(Next::Http2) => {
                let Some(accepted) = conn.into_accepted() else { return };
                return http2::connection(accepted, on_a_stream).await;
            }
            Ok(Next::Unreadable(why)) => return refuse(&mut conn, why).await,
            Ok(Next::Closed) | Err(Gone) => return,
        };
        match end {
            End::Keep => {}
            End::Close | End::Cut => return,
            End::Reset => return conn.reset_on_drop(),
        }
    }
}

/// Responds to one request on a stream of an HTTP/2 connection.
async fn on_a_stream(mut conn: Conn, incoming: Incoming) {
    let end = answer(&mut conn, &incoming).await;
    conn.end_stream(matches!(end, End::Keep | End::Close));
}

async fn refuse(conn: &mut Conn, why: Unreadable) {
    let Arrival { at, by } = why.arrival;
    let line = Line { arrival_ns: Some(at), arrival_stamp: Some(by), ..line(conn) };
    let mut entry = Entry::new(&conn.shared.log, line);
    entry.line.outcome = Outcome::Rejected;
    let written = respond(conn, &mut entry, false, why.status, &error(None, why.status, why.message)).await;
    entry.line.done_ns = Some(now());
    drop(entry);
    if written.is_ok() {
        conn.close_politely().await;
    }
}

fn line(conn: &Conn) -> Line {
    Line { connection: conn.number, peer_port: conn.peer_port, ..Line::default() }
}

async fn answer(conn: &mut Conn, incoming: &Incoming) -> End {
    let line = Line {
        request_id: incoming.head.request_id.clone(),
        path: Some(incoming.head.path.clone()),
        headers: conn.shared.config.log_text.then(|| incoming.head.further.clone()),
        arrival_ns: Some(incoming.arrival.at),
        body_ns: Some(incoming.complete.at),
        arrival_stamp: Some(incoming.arrival.by.max(incoming.complete.by)),
        ..line(conn)
    };
    let mut entry = Entry::new(&conn.shared.log, line);
    let end = route(conn, &mut entry, incoming).await;
    entry.line.done_ns = Some(now());
    if conn.is_lost() || end.is_err() && entry.line.outcome == Outcome::Interrupted {
        entry.line.outcome = Outcome::ClientClosed;
    }
    if conn.is_lost() { End::Close } else { end.unwrap_or(End::Close) }
}

async fn route(conn: &mut Conn, entry: &mut Entry, incoming: &Incoming) -> Result<End, Gone> {
    let Head { method, path, keep_alive, .. } = &incoming.head;
    let keep = *keep_alive;
    let path = path.split('?').next().unwrap_or_default();
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let api = Api::at(path);
    let open = matches!(path, "/health" | "/version" | "/metrics");
    if !open && !authorized(&conn.shared.config, &incoming.head, api) {
        return reject(conn, entry, keep, api, (401, "the API key is missing or wrong")).await;
    }
    let shared = Rc::clone(&conn.shared);
    let (kind, body) = match (method.as_str(), path, api) {
        ("POST", _, Some(api)) => return generate(conn, entry, incoming, api).await,
        ("GET", "/models", _) => (JSON, models(&shared.config).to_string()),
        ("GET", "/health", _) => (JSON, r#"{"status":"ok"}"#.to_owned()),
        ("GET", "/version", _) => (JSON, json!({ "version": shared.next_version() }).to_string()),
        ("GET", "/metrics", _) => {
            let cache = shared.cache.as_deref().map(RefCell::borrow);
            let load = (!shared.config.no_load_gauges).then(|| (shared.busy() as u64, shared.waiting()));
            (metrics::KIND, metrics::text(&shared.config, cache.as_deref(), load, &shared.served))
        }
        ("POST", "/tokenize" | "/apply-template", _) => {
            let answer = if path == "/tokenize" { tokenize::tokenize } else { tokenize::apply_template };
            match answer(shared.config.tokenize, incoming.body()) {
                Ok(body) => (JSON, body),
                Err((status, message)) => return reject(conn, entry, keep, api, (status, &message)).await,
            }
        }
        // Like vLLM, returns an empty response whether or not there is a cache.
        ("POST", "/reset_prefix_cache", _) => {
            shared.cache.iter().for_each(|cache| cache.borrow_mut().reset());
            (JSON, String::new())
        }
        (_, "/models" | "/health" | "/version" | "/metrics" | "/reset_prefix_cache", _) | (_, _, Some(_)) => {
            return reject(conn, entry, keep, api, (405, "this path requires another method")).await;
        }
        _ => return reject(conn, entry, keep, api, (404, "there is nothing at this path")).await,
    };
    let end = send(conn, entry, keep, 200, (kind, &body)).await?;
    entry.line.outcome = Outcome::Complete;
    Ok(end)
}

/// Whether a request has the required key: for a generation, in the header of its API; for other pages, in the
/// header of any API.
fn authorized(config: &Config, head: &Head, api: Option<Api>) -> bool {
    let Some(key) = &config.api_key else { return true };
    let bearer = head.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
    let of_messages = head.api_key.as_deref();
    let keys = match api {
        Some(Api::Messages) => [of_messages, None],
        Some(_) => [bearer, None],
        None => [bearer, of_messages],
    };
    keys.contains(&Some(key.as_str()))
}

fn models(config: &Config) -> serde_json::Value {
    let names = if config.models.is_empty() { &["mock".to_owned()][..] } else { &config.models };
    let models = names.iter().map(|name| json!({"id": name, "object": "model", "created": 0, "owned_by": "sweepline"}));
    json!({"object": "list", "data": models.collect::<Vec<_>>()})
}

async fn generate(conn: &mut Conn, entry: &mut Entry, incoming: &Incoming, api: Api) -> Result<End, Gone> {
    let shared = Rc::clone(&conn.shared);
    let config = &shared.config;
    let number = shared.next_request();
    let fault = fault::of_request(&config.faults, number, config.seed);
    entry.line.n = Some(number);
    entry.line.api = Some(api.name());
    if config.log_text {
        entry.line.request = Some(String::from_utf8_lossy(incoming.body()).into_owned());
    }
    let keep = incoming.head.keep_alive;
    let block = shared.cache.is_some().then_some(config.prefix_block);
    let mut request = match Request::parse(api, incoming.body(), block) {
        Ok(request) => request,
        Err(message) => return reject(conn, entry, keep, Some(api), (400, &message)).await,
    };
    note(entry, &request);
    if !config.models.is_empty() && !config.models.contains(&request.model) {
        let message = format!("The model `{}` does not exist.", request.model);
        return reject(conn, entry, keep, Some(api), (404, &message)).await;
    }
    entry.line.fault = fault.map(|kind| kind.to_string());
    if let Some(Kind::Pause(millis)) = fault {
        shared.pause(millis);
    }
    if let Some(end) = instead(conn, entry, keep, api, fault).await? {
        return Ok(end);
    }
    let (slot, slot_at) = take_slot(conn, entry, request.chain.take()).await?;
    let (tokens, finish) = length(config, &request, number, fault);
    let reasoning = if api.tells_reasoning() { config.reasoning.min(tokens) } else { 0 };
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Head { old, has_frames, .. } = incoming.head;
    let plain = config.close_delimited || old || has_frames;
    let framing = if plain { Framing::Plain } else { Framing::Chunked };
    let streams = request.stream && request.values == 0;
    let keep_alive = keep && (!streams || has_frames || framing == Framing::Chunked);
    let (cached, slot) = (slot.cached(), Some(slot));
    let serving = Some(shared.served.begin((incoming.complete.at, slot_at), request.prompt_tokens));
    let trace = tell::trace_id(config, number);
    entry.line.trace_id.clone_from(&trace);
    let job = Job {
        number,
        request,
        fault,
        tokens,
        finish,
        reasoning,
        slot,
        slot_at,
        serving,
        took: None,
        trace,
        cached,
        created,
        framing,
        keep_alive,
    };
    if streams { Stream::new(conn, entry, job).run().await } else { whole::answer(conn, entry, job).await }
}

/// Waits for a slot, and then looks up the prompt in the prefix cache. Returns the slot and the time at which
/// it was taken, in nanoseconds on the monotonic clock.
async fn take_slot(conn: &mut Conn, entry: &mut Entry, prompt: Option<Chain>) -> Result<(Slot, u64), Gone> {
    let slots = Arc::clone(&conn.shared.slots);
    let waiting = conn.shared.wait();
    let permit = conn.generating(slots.acquire_owned()).await?.ok();
    drop(waiting);
    let slot_at = now();
    let slot = Slot::new(permit, conn.shared.cache.as_ref(), prompt);
    entry.line.slot_ns = Some(slot_at);
    entry.line.cached_tokens = Some(slot.cached());
    Ok((slot, slot_at))
}

fn note(entry: &mut Entry, request: &Request) {
    if !entry.kept() {
        return;
    }
    entry.line.model = Some(request.model.clone());
    entry.line.stream = Some(request.stream);
    entry.line.prompt_tokens = Some(request.prompt_tokens);
    entry.line.requested_tokens = Some(request.max_tokens);
    entry.line.prompt_sha256 = Some(request.digest.iter().map(|byte| format!("{byte:02x}")).collect());
}

/// Applies the fault if it occurs before a slot is taken. Returns `None` if the request must be served.
async fn instead(
    conn: &mut Conn,
    entry: &mut Entry,
    keep: bool,
    api: Api,
    fault: Option<Kind>,
) -> Result<Option<End>, Gone> {
    match fault {
        Some(Kind::Http(status)) => {
            entry.line.outcome = Outcome::Fault;
            respond(conn, entry, keep, status, &error(Some(api), status, "a fault of the mock")).await.map(Some)
        }
        Some(Kind::StallHeaders) => {
            entry.line.outcome = Outcome::Fault;
            Err(conn.wait_for_end().await)
        }
        Some(Kind::Exit) => {
            entry.line.outcome = Outcome::Fault;
            conn.shared.exit.notify_one();
            std::future::pending().await
        }
        _ => Ok(None),
    }
}

/// Returns the number of tokens in the response and the response's finish reason.
fn length(config: &Config, request: &Request, number: u64, fault: Option<Kind>) -> (u32, &'static str) {
    let asked = request.max_tokens;
    if request.values > 0 {
        return (0, "stop");
    }
    match fault {
        Some(Kind::Empty) => return (0, "stop"),
        Some(Kind::Short(tokens)) => return (tokens.unwrap_or(asked / 2).max(1), "stop"),
        Some(Kind::Long(tokens)) => return (tokens.unwrap_or(asked.saturating_mul(2)).max(1), "length"),
        _ => {}
    }
    if request.ignore_eos {
        return (asked, "length");
    }
    let after = config.eos_after.unwrap_or(u32::MAX).max(1);
    let rate = config.eos_rate.to_f64();
    let drawn = if rate > 0.0 {
        let chance = random(config.seed, b"eos ", number).random::<f64>();
        // The number of tokens has a geometric distribution; this is the inverse of its cumulative
        // distribution function.
        (((1.0 - chance).ln() / (1.0 - rate).ln()).ceil() as u32).max(1)
    } else {
        u32::MAX
    };
    let own = after.min(drawn);
    if own < asked { (own, "stop") } else { (asked, "length") }
}

/// Rejects a request; the body of the response has the format of `api`.
async fn reject(
    conn: &mut Conn,
    entry: &mut Entry,
    keep: bool,
    api: Option<Api>,
    (status, message): (u16, &str),
) -> Result<End, Gone> {
    entry.line.outcome = Outcome::Rejected;
    respond(conn, entry, keep, status, &error(api, status, message)).await
}

async fn respond(conn: &mut Conn, entry: &mut Entry, keep: bool, status: u16, body: &str) -> Result<End, Gone> {
    send(conn, entry, keep, status, (JSON, body)).await
}

/// Sends a complete response with a body of content type `kind`.
async fn send(
    conn: &mut Conn,
    entry: &mut Entry,
    keep: bool,
    status: u16,
    (kind, body): (&str, &str),
) -> Result<End, Gone> {
    entry.line.status = Some(status);
    let mut wire = Wire::new(&conn.shared.config, Framing::Plain, 0);
    wire.head(head(status, kind, body.len(), keep).as_bytes());
    wire.body(&[body.as_bytes()]);
    wire.flush(conn).await?;
    Ok(if keep { End::Keep } else { End::Close })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    fn asked(max_tokens: u32, ignore_eos: bool) -> Request {
        let body = format!(r#"{{"prompt":"x","max_tokens":{max_tokens},"ignore_eos":{ignore_eos}}}"#);
        Request::parse(Api::Completions, body.as_bytes(), None).unwrap()
    }

    #[test]
    fn answers_end_by_themselves_only_where_they_may() {
        let config = Config { eos_after: Some(5), ..Config::default() };
        assert_eq!(length(&config, &asked(8, false), 1, None), (5, "stop"));
        assert_eq!(length(&config, &asked(8, true), 1, None), (8, "length"));
        assert_eq!(length(&config, &asked(4, false), 1, None), (4, "length"));
        assert_eq!(length(&config, &asked(8, true), 1, Some(Kind::Short(None))), (4, "stop"));
        assert_eq!(length(&config, &asked(8, true), 1, Some(Kind::Long(Some(9)))), (9, "length"));
        assert_eq!(length(&config, &asked(8, true), 1, Some(Kind::Empty)), (0, "stop"));
    }

    #[test]
    fn the_rate_of_ends_is_the_mean_length() {
        let config = Config { eos_rate: Share::percent(10), ..Config::default() };
        let tokens = |n| length(&config, &asked(1_000, false), n, None).0;
        let mean = (1..=2_000).map(|n| f64::from(tokens(n))).sum::<f64>() / 2_000.0;
        assert!((9.0..11.0).contains(&mean), "{mean}");
    }
}
