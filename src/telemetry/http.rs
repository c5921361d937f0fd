//! Fetches pages of metrics over HTTP: the client, the request, and the text of the response.

use std::io;

use super::gap::Gap;
use super::text::has_end;
use crate::network::{Client, ClientError, Limits, Request, Response, Route};

/// The largest page that is read, in bytes.
pub const LARGEST_PAGE: usize = 16 << 20;

/// The `accept` header. The older text format is preferred, because every exporter supports it.
const FORMATS: &str = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

/// A page of metrics to scrape.
#[derive(Debug, Clone)]
pub struct Page {
    /// Path and query of the page.
    pub path: String,
    /// The address without secrets, to be shown and stored.
    pub shown: String,
    /// Names and values of the request headers, in which secrets are already filled in.
    pub headers: Vec<[String; 2]>,
    /// The HTTP client that requests the page.
    pub client: Client,
}

/// Creates a client for scrapes of the pages of one server. The client keeps a connection open between
/// scrapes.
///
/// # Errors
/// Fails if the system's certificates cannot be read.
pub fn client(route: Route, http2: bool) -> io::Result<Client> {
    Client::new(route, http2, Limits::default(), 1)
}

impl Page {
    /// Requests the page and returns its text, or the reason why it cannot be read.
    pub(super) async fn fetch(&self) -> Result<String, Gap> {
        let with = |request: Request, [name, value]: &[String; 2]| request.header(name, value);
        let request = self.headers.iter().fold(Request::get(&self.path), with).header("accept", FORMATS);
        let refused = |error: ClientError| Gap { kind: "connect", why: error.words() };
        let response = self.client.send(request).await.map_err(refused)?;
        let status = response.status();
        if !status.is_success() {
            return Err(Gap { kind: "status", why: format!("HTTP {}", status.as_u16()) });
        }
        let kind = response.header("content-type");
        let is_open_metrics = kind.is_some_and(|kind| kind.starts_with("application/openmetrics-text"));
        let text = body(response).await?;
        if is_open_metrics && !has_end(&text) {
            return Err(Gap { kind: "cut", why: "a page of OpenMetrics without `# EOF`".to_owned() });
        }
        Ok(text)
    }
}

async fn body(mut response: Response) -> Result<String, Gap> {
    let too_large = || Gap { kind: "too_large", why: format!("a page of more than {} MiB", LARGEST_PAGE >> 20) };
    if response.content_length().is_some_and(|length| length > LARGEST_PAGE as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(Gap { kind: "cut", why: error.words() }),
        }
        if bytes.len() > LARGEST_PAGE {
            return Err(too_large());
        }
    }
    let malformed = |_| Gap { kind: "malformed", why: "a page that is not UTF-8".to_owned() };
    String::from_utf8(bytes).map_err(malformed)
}
