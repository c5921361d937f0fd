//! Pages of metrics over HTTP: the client, and the text that it receives.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response};

use super::gap::Gap;
use super::text::has_end;
use crate::tls;

/// The largest page that is read, in bytes.
pub const LARGEST_PAGE: usize = 16 << 20;

/// The `accept` header for the text formats. The older format comes first, because every exporter
/// supports it.
const FORMATS: &str = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

/// One page.
#[derive(Debug, Clone)]
pub struct Page {
    /// The address of the page.
    pub url: reqwest::Url,
    /// The address in a form that may be shown and stored.
    pub shown: String,
    /// The request headers, with secrets revealed only for sending.
    pub headers: Vec<[String; 2]>,
    /// The client.
    pub client: Client,
}

/// Creates a client for pages. It keeps a connection between scrapes, does not retry, and does not
/// follow redirects, which might lead to another server.
///
/// # Errors
/// Fails if the system's certificates cannot be read.
pub fn client(insecure_tls: bool, http2: bool) -> reqwest::Result<Client> {
    let builder = tls::client();
    let builder = if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() };
    builder
        .no_proxy()
        .pool_max_idle_per_host(1)
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("sweepline/", env!("CARGO_PKG_VERSION")))
        .tls_danger_accept_invalid_certs(insecure_tls)
        .build()
}

impl Page {
    /// Returns a request for the page.
    pub(super) fn request(&self) -> RequestBuilder {
        let request = self.client.get(self.url.clone());
        let with = |request: RequestBuilder, [name, value]: &[String; 2]| request.header(name, value);
        self.headers.iter().fold(request, with).header(ACCEPT, FORMATS)
    }
}

/// Returns the text of a page, or why it is missing.
pub(super) async fn fetch(request: RequestBuilder) -> Result<String, Gap> {
    let refused = |error: reqwest::Error| Gap { kind: "connect", why: words(&error) };
    let response = request.send().await.map_err(refused)?;
    let status = response.status();
    if !status.is_success() {
        return Err(Gap { kind: "status", why: format!("HTTP {}", status.as_u16()) });
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_open_metrics = kind.is_some_and(|kind| kind.starts_with("application/openmetrics-text"));
    let text = body(response).await?;
    if is_open_metrics && !has_end(&text) {
        return Err(Gap { kind: "cut", why: "a page of OpenMetrics without `# EOF`".to_owned() });
    }
    Ok(text)
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
            Err(error) => return Err(Gap { kind: "cut", why: words(&error) }),
        }
        if bytes.len() > LARGEST_PAGE {
            return Err(too_large());
        }
    }
    let malformed = |_| Gap { kind: "malformed", why: "a page that is not UTF-8".to_owned() };
    String::from_utf8(bytes).map_err(malformed)
}

/// Returns the innermost cause, because reqwest's own message contains the address, which may contain
/// secrets.
fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if std::ptr::addr_eq(cause, error) { "no response".to_owned() } else { cause.to_string() }
}
