//! Connects to the object store at an address, with credentials from the environment.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use super::error::ObjectError;
use crate::tls;

/// Time limit of a request to the store.
const REQUEST: Duration = Duration::from_secs(120);
/// Total time limit for retrying a request that was throttled, refused or interrupted.
const RETRIES: Duration = Duration::from_secs(60);
/// First and longest pause before a request is made again.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];
/// Factor by which pauses grow. The library draws each pause between the first pause and this multiple of the previous
/// one; with a factor of 2, pauses would stay short.
const GROWTH: u32 = 4;

/// Returns the store at `url`, and the prefix that all keys have.
pub(super) fn connect(url: &str) -> Result<(Arc<dyn ObjectStore>, Key), ObjectError> {
    let parsed = Url::parse(url).map_err(|error| wrong(url, error.to_string()))?;
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
        return Err(wrong(url, "it must have no user, password or parameters; credentials come from the environment"));
    }
    let (scheme, prefix) = ObjectStoreScheme::parse(&parsed).map_err(|error| wrong(url, error.to_string()))?;
    let unusable = |error: object_store::Error| ObjectError::Unusable { url: url.to_owned(), why: error.to_string() };
    let objects: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::Local => Arc::new(LocalFileSystem::new().with_fsync(true)),
        ObjectStoreScheme::AmazonS3 => Arc::new(s3(url).build().map_err(unusable)?),
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retries());
            Arc::new(builder.with_client_options(client(false)).build().map_err(unusable)?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retries());
            Arc::new(builder.with_client_options(client(false)).build().map_err(unusable)?)
        }
        _ => return Err(wrong(url, format!("`{}://` is not supported", parsed.scheme()))),
    };
    Ok((objects, prefix))
}

/// Returns the settings for a store with the S3 protocol. `AWS_ENDPOINT_URL` can set the address of another
/// server than AWS; if it begins with `http://`, TLS is not used.
fn s3(url: &str) -> AmazonS3Builder {
    let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    let is_plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let mut builder = AmazonS3Builder::from_env().with_url(url).with_retry(retries());
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    builder.with_client_options(client(is_plain)).with_checksum_algorithm(Checksum::SHA256)
}

fn client(is_plain: bool) -> ClientOptions {
    let options = ClientOptions::new().with_allow_http(is_plain).with_timeout(REQUEST);
    let spare = tls::spare_roots().iter().filter_map(|root| Certificate::from_der(root).ok());
    spare.fold(options, ClientOptions::with_root_certificate)
}

fn retries() -> RetryConfig {
    let [init_backoff, max_backoff] = PAUSES.map(scaled);
    let backoff = BackoffConfig { init_backoff, max_backoff, base: f64::from(GROWTH) };
    // Only the time limits the retries. With a limit on their number, short pauses would use them up early.
    RetryConfig { backoff, max_retries: usize::MAX, retry_timeout: patience() }
}

/// Returns the time for which a request is retried.
pub(super) fn patience() -> Duration {
    scaled(RETRIES)
}

/// Returns the pauses before a request is made again.
pub(super) fn pauses() -> impl Iterator<Item = Duration> {
    let [first, longest] = PAUSES.map(scaled);
    std::iter::successors(Some(first), move |pause| Some(longest.min(*pause * GROWTH)))
}

/// Shortens a time in builds with debug assertions if a test sets the total time for retries.
fn scaled(time: Duration) -> Duration {
    let chosen = || std::env::var("SWEEPLINE_RETRIES_MS").ok()?.parse().ok();
    let all = chosen().filter(|_| cfg!(debug_assertions)).map_or(RETRIES, Duration::from_millis);
    time.mul_f64(all.as_secs_f64() / RETRIES.as_secs_f64())
}

/// Returns the error for an invalid address, without parts that may contain a password.
fn wrong(url: &str, why: impl Into<String>) -> ObjectError {
    let shown = match (url.split_once("://"), url.contains(['@', '?'])) {
        (Some((scheme, _)), true) => format!("{scheme}://…"),
        _ => url.to_owned(),
    };
    ObjectError::Address { url: shown, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_ends_retries() {
        let retries = retries();
        assert_eq!((retries.max_retries, retries.retry_timeout), (usize::MAX, Duration::from_secs(60)));
        let pauses: Vec<u128> = pauses().take(6).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [100, 400, 1_600, 6_400, 10_000, 10_000]);
    }
}
