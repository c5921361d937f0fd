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
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() };
    // In builds with debug assertions, tests can shorten this time with an environment variable.
    let chosen = || std::env::var("SWEEPLINE_RETRIES_MS").ok()?.parse().ok();
    let all = chosen().filter(|_| cfg!(debug_assertions)).map_or(RETRIES, Duration::from_millis);
    RetryConfig { backoff, max_retries: 20, retry_timeout: all }
}

/// Returns the error for an invalid address, without parts that may contain a password.
fn wrong(url: &str, why: impl Into<String>) -> ObjectError {
    let shown = match (url.split_once("://"), url.contains(['@', '?'])) {
        (Some((scheme, _)), true) => format!("{scheme}://…"),
        _ => url.to_owned(),
    };
    ObjectError::Address { url: shown, why: why.into() }
}
