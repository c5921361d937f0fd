//! Writes complete responses, for requests that do not stream.

use std::rc::Rc;

use super::config::ReasoningField;
use super::conn::{Conn, Gone};
use super::event::identity;
use super::fault::Kind;
use super::head::{error, json_head};
use super::job::{End, Job};
use super::log::{Entry, Outcome};
use super::messages;
use super::part::Usage;
use super::request::Api;
use super::responses;
use super::shared::Shared;
use super::stream::{pace, speech};
use super::tell;
use super::timer::now;
use super::values;
use super::wire::{Framing, Wire};

/// Waits as long as it would take to stream the response's tokens, then writes the response.
pub(super) async fn answer(conn: &mut Conn, entry: &mut Entry, mut job: Job) -> Result<End, Gone> {
    let shared = Rc::clone(&conn.shared);
    let mut pace = pace(&shared, &job);
    let mut speech = speech(&shared, &job);
    let (mut thought, mut text) = (Vec::new(), Vec::new());
    let mut planned = pace.first(job.slot_at, job.computed());
    for token in 0..job.tokens {
        if token > 0 {
            planned = pace.next(planned, shared.busy());
        }
        if planned > now() {
            conn.wait_until(planned).await?;
        }
        planned = shared.after_pause(planned);
        if planned > now() {
            conn.wait_until(planned).await?;
        }
        if token == 0 {
            job.prefilled();
        }
        job.say(speech.push(if token < job.reasoning { &mut thought } else { &mut text }));
    }
    if job.request.values > 0 {
        // Vectors and scores are ready as soon as the prompt has been computed.
        conn.wait_until(planned).await?;
        conn.wait_until(shared.after_pause(planned)).await?;
        job.prefilled();
    }
    job.served();
    if shared.config.log_text {
        entry.answer = [thought.as_slice(), &text].concat();
    }
    let body = body(&shared, &job, &thought, &text);
    write(conn, entry, &job, &body).await
}

/// Returns the JSON of the response, which is corrupted if the request's fault requires it.
fn body(shared: &Shared, job: &Job, thought: &[u8], text: &[u8]) -> Vec<u8> {
    let extra = match job.fault {
        Some(Kind::ErrorObject(_)) => return error(Some(job.request.api), 500, "a fault of the mock").into_bytes(),
        Some(Kind::WrongShape(_)) => return br#"{"choices":{"message":"text"}}"#.to_vec(),
        Some(Kind::InvalidUtf8(_)) => b"\xff\xfe\xc3".to_vec(),
        Some(Kind::HugeLine(bytes)) => vec![b'x'; bytes as usize],
        _ => Vec::new(),
    };
    let usage = Usage {
        prompt: job.request.prompt_tokens,
        cached: (!shared.config.no_cached_tokens).then_some(job.cached),
        completion: job.told(job.tokens),
        reasoning: job.reasoning,
    };
    let broken = if matches!(job.fault, Some(Kind::InvalidJson(_))) { "]" } else { "}" };
    let mut body = format!("{{{}", identity(&job.request, job.number, job.created, false)).into_bytes();
    let of_another_form = match job.request.api {
        Api::Chat | Api::Completions => None,
        Api::Responses => Some(responses::members(job.finish, (thought, &[text, &extra].concat()), usage)),
        Api::Messages => Some(messages::members(job.finish, thought, &[text, &extra].concat(), usage)),
        Api::Embeddings => Some(values::vectors(job.given(), &extra, usage)),
        Api::Rerank => Some(values::scores(job.given(), &extra, usage)),
    };
    if let Some(members) = of_another_form {
        body.push(b',');
        body.extend_from_slice(&members);
        body.extend_from_slice(broken.as_bytes());
        return body;
    }
    body.extend_from_slice(br#","choices":[{"index":0,"#);
    if job.request.api == Api::Chat {
        body.extend_from_slice(br#""message":{"role":"assistant","#);
        if !thought.is_empty() {
            let field = match shared.config.reasoning_field {
                ReasoningField::ReasoningContent => "reasoning_content",
                ReasoningField::Reasoning => "reasoning",
            };
            body.extend_from_slice(format!("\"{field}\":\"").as_bytes());
            body.extend_from_slice(thought);
            body.extend_from_slice(b"\",");
        }
        body.extend_from_slice(br#""content":""#);
    } else {
        body.extend_from_slice(br#""text":""#);
    }
    body.extend_from_slice(text);
    body.extend_from_slice(&extra);
    let brace = if job.request.api == Api::Chat { "}" } else { "" };
    let (finish, usage) = (job.finish, usage.json());
    let timings = tell::timings(&shared.config, job.took);
    let tail = format!(r#""{brace},"logprobs":null,"finish_reason":"{finish}"}}],"usage":{usage}{timings}{broken}"#);
    body.extend_from_slice(tail.as_bytes());
    body
}

async fn write(conn: &mut Conn, entry: &mut Entry, job: &Job, body: &[u8]) -> Result<End, Gone> {
    let half = &body[..body.len() / 2];
    let keep = if job.keep_alive { End::Keep } else { End::Close };
    // The announced length, the bytes to write, and what happens to the connection afterwards.
    let (announced, written, end) = match job.fault {
        Some(Kind::Truncate(_)) => (half.len(), half, End::Close),
        Some(Kind::Close(_) | Kind::Stall(_)) => (body.len(), half, End::Cut),
        Some(Kind::Reset(_)) => (body.len(), half, End::Reset),
        _ => (body.len(), body, keep),
    };
    let whole = written.len() == body.len();
    let struck = !whole || matches!(job.fault, Some(Kind::ErrorObject(_) | Kind::Empty));
    let outcome = if struck { Outcome::Fault } else { Outcome::Complete };
    if struck {
        entry.line.outcome = outcome;
    }
    let mut wire = Wire::new(&conn.shared.config, Framing::Plain, job.number);
    let told = tell::fields(&conn.shared.config, job.took, job.trace.as_deref());
    let head = json_head(200, announced, end == End::Keep);
    // The fields with times are inserted after the status line.
    let (status, fields) = head.split_once("\r\n").unwrap_or_default();
    wire.head(format!("{status}\r\n{told}{fields}").as_bytes());
    wire.body(&[written]);
    entry.line.status = Some(200);
    let at = now();
    if job.tokens > 0 || job.request.values > 0 {
        entry.line.first_write_ns = Some(at);
        entry.line.last_write_ns = Some(at);
    }
    wire.flush(conn).await?;
    entry.line.outcome = outcome;
    entry.line.output_tokens = job.tokens;
    entry.line.finish_reason = whole.then_some(job.finish);
    if matches!(job.fault, Some(Kind::Stall(_))) {
        return Err(conn.wait_for_end().await);
    }
    Ok(end)
}
