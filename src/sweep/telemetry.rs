//! Scrapes metrics during a run from the pages that the plan names for its endpoint. The samples are
//! written to the same file as the generator's own samples.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Check, Depth, Progress, SampleSink, SinkError};
use crate::network::Route;
use crate::plan::{DIALECTS, Endpoint, Telemetry};
use crate::protocol::KeyHeader;
use crate::rows::{self, Sample, SampleWriter};
use crate::server::Question;
use crate::telemetry::gpus;
use crate::telemetry::http::{Page, client};
use crate::telemetry::page::Wanted;
use crate::telemetry::round_trip::Far;
use crate::telemetry::scrape::{ScrapeError, Scraper, Settings, Timeline};
use crate::units::Address;

/// The default metrics path of a server.
const METRICS: &str = "/metrics";

/// The file of samples, which a run and its scraper share.
type Shared = Arc<Mutex<SampleWriter>>;

/// The scraper of a run. It ends when this value is dropped.
pub(super) struct Beside {
    scraper: Scraper,
    file: Shared,
    /// Number of generations that were requested during the run to check whether the server is reachable.
    probes: Arc<AtomicU64>,
}

impl Beside {
    /// Starts scraping for a run on `endpoint`, and starts reading `gpus` of this machine. `question`
    /// contains the settings for requests to the server. The first scrape is complete when this returns.
    pub(super) fn start(
        (telemetry, endpoint, gpus): (&Telemetry, &Endpoint, Option<gpus::Wanted>),
        question: &Question,
        progress: &Arc<Progress>,
        file: SampleWriter,
    ) -> Result<Beside, ScrapeError> {
        let pages = telemetry.pages().into_iter().map(|page| page_of(page, endpoint, question));
        let settings = Settings {
            pages: pages.collect::<Result<_, _>>()?,
            every: telemetry.every(),
            wanted: Wanted::new(telemetry.mapped(), telemetry.raw.0.iter().cloned()),
            gpus,
            far: Far::of(&question.route),
        };
        let file = Arc::new(Mutex::new(file));
        let into = Arc::clone(&file);
        let sink = Box::new(move |samples: &[Sample]| Ok(write(&into, samples)?));
        let scraper = Scraper::start(settings, Arc::new(OfRun(Arc::clone(progress))), sink)?;
        Ok(Beside { scraper, file, probes: Arc::default() })
    }

    /// Returns the sink for the run's own samples.
    pub(super) fn sink(&self) -> Box<dyn SampleSink> {
        Box::new(SharedFile(Arc::clone(&self.file)))
    }

    /// Wraps `check` to count the generations that it requests.
    pub(super) fn counting(&self, check: Check) -> Check {
        let probes = Arc::clone(&self.probes);
        Arc::new(move |depth| {
            if depth == Depth::Generation {
                probes.fetch_add(1, Ordering::Relaxed);
            }
            check(depth)
        })
    }

    /// Makes the last scrape and finishes the file. Returns the number of samples in the file and a summary
    /// of the scrapes. The run's own sink must have been dropped before.
    pub(super) fn finish(self) -> Result<(u64, rows::Telemetry), ScrapeError> {
        let probes = self.probes.load(Ordering::Relaxed);
        let telemetry = rows::Telemetry { probes, ..self.scraper.finish()? };
        let file = Arc::try_unwrap(self.file).map_err(|_| "the file of samples is still in use")?;
        let samples = file.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        Ok((samples, telemetry))
    }
}

/// Gives the scraper access to the times of the run.
struct OfRun(Arc<Progress>);

impl Timeline for OfRun {
    fn origin(&self) -> Option<u64> {
        self.0.origin_ns()
    }

    fn window(&self) -> [u64; 2] {
        self.0.window_ns()
    }
}

/// The run's sink for the shared file. Its `finish` does nothing, because [`Beside::finish`] finishes the
/// file.
struct SharedFile(Shared);

impl SampleSink for SharedFile {
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError> {
        Ok(write(&self.0, samples)?)
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(0)
    }
}

fn write(file: &Shared, samples: &[Sample]) -> Result<(), rows::RowsError> {
    file.lock().unwrap_or_else(PoisonError::into_inner).append(samples)
}

/// Returns the page that the plan names `written`, with its request headers. The API key and the headers of
/// the endpoint are sent only to the endpoint's own server.
fn page_of(written: &str, endpoint: &Endpoint, question: &Question) -> Result<Page, ScrapeError> {
    let address = question.route.address();
    let url = if written == Telemetry::OWN { own_page(address, endpoint) } else { reqwest::Url::parse(written)? };
    let is_own = url.origin() == address.url().origin();
    let path = path_and_query(&url);
    // Servers expect a bearer token on their pages of metrics, whatever the API.
    let key = question.api_key.iter().map(|key| KeyHeader::BEARER.with(key));
    let key = key.map(|header| [header.name.to_owned(), header.value]);
    let headers = if is_own { key.chain(question.headers.iter().cloned()).collect() } else { Vec::new() };
    // Pages of other servers are not reached by the endpoint's way.
    let route = match is_own {
        true => question.route.clone(),
        false => Route::direct(Address::parse(&url.origin().ascii_serialization())?),
    };
    let client = client(route, question.http2 && is_own)?;
    // The address of the embedded mock is not shown, because its port is different each time.
    let shown = if written == Telemetry::OWN && endpoint.is_embedded() { "embedded mock" } else { url.as_str() };
    let shown = question.without_key(shown);
    Ok(Page { shown, path, headers, client })
}

fn path_and_query(url: &reqwest::Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Returns the addresses of the pages that are scraped for an endpoint, for display.
pub(crate) fn pages_of(telemetry: &Telemetry, endpoint: &Endpoint) -> Vec<String> {
    let base = endpoint.url.as_deref().and_then(|url| Address::parse(url).ok());
    let own = || match &base {
        Some(base) => own_page(base, endpoint).to_string(),
        None if endpoint.is_embedded() => "embedded mock".to_owned(),
        None => format!("{METRICS} of its server"),
    };
    let page = |page: &str| if page == Telemetry::OWN { own() } else { page.to_owned() };
    telemetry.pages().into_iter().map(page).collect()
}

/// Returns the address of the metrics page of the endpoint's own server. The path depends on the engine and
/// starts at the server's root.
fn own_page(base: &Address, endpoint: &Endpoint) -> reqwest::Url {
    let dialect = DIALECTS.iter().find(|dialect| dialect.engine == endpoint.engine);
    let path = dialect.and_then(|dialect| dialect.gauges.as_ref()).map_or(METRICS, |gauges| gauges.path);
    let mut url = base.url().clone();
    url.set_path(&base.beside_api(path));
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_page_stands_at_the_root() {
        let endpoint: Endpoint = serde_json::from_value(serde_json::json!({ "engine": "vllm" })).unwrap();
        let page = |url: &str| own_page(&Address::parse(url).unwrap(), &endpoint).to_string();
        assert_eq!(page("http://h:8000/v1"), "http://h:8000/metrics");
        assert_eq!(page("https://h/gpu-1/v1/"), "https://h/gpu-1/metrics");
        assert_eq!(page("http://h:8000"), "http://h:8000/metrics");
        let telemetry: Telemetry =
            serde_json::from_value(serde_json::json!({ "prometheus": ["on", "http://g:9400/metrics"] })).unwrap();
        let pages =
            |endpoint: serde_json::Value| pages_of(&telemetry, &serde_json::from_value(endpoint).unwrap())[0].clone();
        let url = serde_json::json!({ "engine": "vllm", "url": "http://h:8000/v1" });
        assert_eq!(pages(url), "http://h:8000/metrics");
        assert_eq!(pages(serde_json::json!({ "engine": "mock" })), "embedded mock");
        assert_eq!(pages(serde_json::json!({ "engine": "vllm" })), "/metrics of its server");
    }
}
