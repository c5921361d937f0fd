//! Sends spans to a collector. If the collector is absent, slow or unresponsive, only spans are lost: the
//! queue and the wait at the end are bounded, so the sweep is not affected.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout};

use super::otlp;
use super::settings::{Protocol, Settings};
use super::span::{Attribute, Batch, Span, now};
use super::told::Told;
use super::tree::Tree;
use crate::tls;

/// How long a command waits at its end for the collector to accept the remaining spans.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between polls of the runs' phases.
const LOOK: Duration = Duration::from_millis(50);
/// Minimum interval between requests to the collector.
const EVERY: Duration = Duration::from_secs(1);
/// Pause after a request that the collector did not accept.
const BACK_OFF: Duration = Duration::from_secs(5);
/// Maximum number of waiting spans. If there are more, the oldest are dropped.
const MOST: usize = 2_048;
/// Maximum number of spans in one request.
const AT_ONCE: usize = 512;

/// Sends the spans of a command to the collector.
pub(super) struct Exporter {
    client: Client,
    url: Url,
    named_by: &'static str,
    protocol: Protocol,
    headers: HeaderMap,
    timeout: Duration,
    resource: Vec<Attribute>,
    complain: fn(&str),
}

/// The reason why the collector did not accept spans.
enum Refused {
    /// The collector may accept the spans later.
    Later(String),
    /// The collector will never accept the spans.
    Never(String),
}

/// The spans sent in one export request, and the result of this request.
type Sent = (Vec<Span>, Result<(), Refused>);

impl Exporter {
    /// # Errors
    /// If the system's certificates cannot be read.
    pub(super) fn new(settings: Settings, complain: fn(&str)) -> reqwest::Result<Exporter> {
        let Settings { url, named_by, protocol, headers, timeout, resource, .. } = settings;
        let client = tls::client()
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sweepline/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Exporter { client, url, named_by, protocol, headers, timeout, resource, complain })
    }

    /// Converts events to spans and sends them, until there are no more events.
    pub(super) async fn work(self, mut tree: Tree, mut told: UnboundedReceiver<Told>) {
        let mut queue = Queue::default();
        let mut due = Instant::now();
        let mut under_way = None;
        loop {
            queue.add(tree.over());
            if under_way.is_none() && !queue.waiting.is_empty() && Instant::now() >= due {
                under_way = Some(Box::pin(self.send(queue.next())));
            }
            tokio::select! {
                next = told.recv() => match next {
                    Some(told) => tree.take(told),
                    None => break,
                },
                sent = async { under_way.as_mut().expect("the condition is met").await }, if under_way.is_some() => {
                    under_way = None;
                    due = Instant::now() + self.settle(sent, &mut queue);
                }
                () = tokio::time::sleep(LOOK) => tree.look(now()),
            }
        }
        tree.close(now());
        queue.add(tree.over());
        let rest = async {
            if let Some(sent) = under_way.take() {
                self.settle(sent.await, &mut queue);
            }
            while !queue.waiting.is_empty() {
                let sent = self.send(queue.next()).await;
                if self.settle(sent, &mut queue) > EVERY {
                    break;
                }
            }
        };
        let in_time = timeout(PATIENCE, rest).await.is_ok();
        if !in_time {
            queue.complain(&self, &format!("no response within {} s at the end", PATIENCE.as_secs()));
        }
        let left = queue.lost + queue.waiting.len();
        if in_time && left > 0 {
            (self.complain)(&format!("traces: {left} spans were not accepted by the collector"));
        }
    }

    /// Handles the result of a request; returns the delay before the next request.
    fn settle(&self, (spans, sent): Sent, queue: &mut Queue) -> Duration {
        match sent {
            Ok(()) => EVERY,
            Err(Refused::Later(why)) => {
                queue.complain(self, &why);
                queue.put_back(spans);
                BACK_OFF
            }
            Err(Refused::Never(why)) => {
                queue.complain(self, &why);
                queue.lost += spans.len();
                BACK_OFF
            }
        }
    }

    async fn send(&self, spans: Vec<Span>) -> Sent {
        let batch = Batch { resource: &self.resource, spans: &spans };
        let (kind, body) = match self.protocol {
            Protocol::Protobuf => ("application/x-protobuf", Ok(otlp::protobuf(&batch))),
            Protocol::Json => ("application/json", otlp::json(&batch)),
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => return (spans, Err(Refused::Never(format!("they cannot be encoded as JSON: {error}")))),
        };
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let request = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let answer = match timeout(self.timeout, request).await {
            Err(_) => Err(Refused::Later(format!("no response within {} ms", self.timeout.as_millis()))),
            // An error of reqwest may contain the address, which may contain a secret.
            Ok(Err(error)) if error.is_connect() => Err(Refused::Later("no connection".to_owned())),
            Ok(Err(_)) => Err(Refused::Later("no response".to_owned())),
            Ok(Ok(response)) => judged(&response),
        };
        (spans, answer)
    }
}

/// Judges a response by its status. The specification of OTLP allows retries only for 429, 502, 503 and 504.
fn judged(response: &Response) -> Result<(), Refused> {
    match response.status().as_u16() {
        200..=299 => Ok(()),
        status @ (429 | 502 | 503 | 504) => Err(Refused::Later(format!("HTTP {status}"))),
        status => Err(Refused::Never(format!("HTTP {status}"))),
    }
}

/// Spans that wait to be sent.
#[derive(Default)]
struct Queue {
    waiting: Vec<Span>,
    lost: usize,
    has_complained: bool,
}

impl Queue {
    fn add(&mut self, spans: Vec<Span>) {
        self.waiting.extend(spans);
        let more = self.waiting.len().saturating_sub(MOST);
        self.waiting.drain(..more);
        self.lost += more;
    }

    fn next(&mut self) -> Vec<Span> {
        self.waiting.drain(..self.waiting.len().min(AT_ONCE)).collect()
    }

    fn put_back(&mut self, spans: Vec<Span>) {
        self.waiting.splice(..0, spans);
        self.add(Vec::new());
    }

    /// Reports only the first problem of a command, because traces are not results.
    fn complain(&mut self, exporter: &Exporter, why: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            let name = exporter.named_by;
            (exporter.complain)(&format!(
                "traces: the collector of {name} does not accept spans ({why}); the sweep continues"
            ));
        }
    }
}
