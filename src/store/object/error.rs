//! What can go wrong with results on object storage.

use std::io;
use std::path::PathBuf;

use object_store::path::Path as Key;

use crate::store::StoreError;

/// Results on object storage that could not be reached, read or written.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// An address that names no store.
    #[error(
        "`{url}` is not an address of object storage ({why}): s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, file:///folder"
    )]
    Address {
        /// What was given, without what may be secret.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The environment does not say enough to reach the store.
    #[error("{url}: {why}")]
    Unusable {
        /// The address.
        url: String,
        /// What is missing.
        why: String,
    },
    /// No, or expired, or wrong credentials.
    #[error(
        "{url} refuses to {doing} {key} ({why}): check the credentials in the environment ({variables}); nothing is lost, run the same command again"
    )]
    Refused {
        /// The address.
        url: String,
        /// What was tried.
        doing: Doing,
        /// The object.
        key: String,
        /// What the store said.
        why: String,
        /// The variables that hold credentials of such a store.
        variables: &'static str,
    },
    /// There is no such bucket or folder.
    #[error("{url}: there is no such bucket or folder: create it first")]
    NoBucket {
        /// The address.
        url: String,
    },
    /// The store did not answer, or not as it should, after several tries.
    #[error("cannot {doing} {key} at {url} ({why}): nothing is lost, run the same command again")]
    Failed {
        /// The address.
        url: String,
        /// What was tried.
        doing: Doing,
        /// The object.
        key: String,
        /// What went wrong.
        why: String,
    },
    /// The store lets several writers create one object.
    #[error(
        "{url} ignores \"create, if absent\" ({winners} of {writers} writers created the same object), so two sweeps could overwrite each other's \
         results: use a store with conditional writes, like AWS S3, Google Cloud Storage, Azure Blob Storage, MinIO or Cloudflare R2"
    )]
    Unconditional {
        /// The address.
        url: String,
        /// How many won.
        winners: usize,
        /// How many tried.
        writers: usize,
    },
    /// An object that does not hold what it should.
    #[error("{key} at {url} is damaged ({reason})")]
    Damaged {
        /// The address.
        url: String,
        /// The object.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The results folder on this machine.
    #[error(transparent)]
    Folder(#[from] StoreError),
    /// No thread to wait on.
    #[error("no thread for requests to object storage ({0}): raise the limit of processes (`ulimit -u`)")]
    NoThread(io::Error),
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum Doing {
    /// Listing objects.
    List,
    /// Reading an object.
    Read,
    /// Writing an object.
    Write,
}

impl ObjectError {
    /// What a store said, told by what the user can do about it.
    pub(super) fn of(url: &str, doing: Doing, key: &Key, source: object_store::Error) -> ObjectError {
        use object_store::Error;
        let (url, key) = (url.to_owned(), key.to_string());
        let why = causes(&source);
        match source {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                let variables = credentials_of(&url);
                ObjectError::Refused { url, doing, key, why, variables }
            }
            Error::NotFound { .. } => ObjectError::NoBucket { url },
            // Listings, and S3's own answer of 400 to an expired token, come without a kind.
            _ if NO_BUCKET.iter().any(|word| why.contains(word)) => ObjectError::NoBucket { url },
            _ if REFUSALS.iter().any(|word| why.contains(word)) => {
                let variables = credentials_of(&url);
                ObjectError::Refused { url, doing, key, why, variables }
            }
            _ => ObjectError::Failed { url, doing, key, why },
        }
    }
}

impl From<ObjectError> for StoreError {
    fn from(error: ObjectError) -> StoreError {
        match error {
            ObjectError::Folder(error) => error,
            ObjectError::Damaged { url, key, reason } => {
                StoreError::Damaged { path: PathBuf::from(format!("{url}: {key}")), reason }
            }
            error => {
                let passes = matches!(error, ObjectError::Refused { .. } | ObjectError::Failed { .. });
                StoreError::Remote { text: error.to_string(), passes }
            }
        }
    }
}

/// What stores say where credentials are the reason.
const REFUSALS: [&str; 8] = [
    "401 Unauthorized",
    "403 Forbidden",
    "ExpiredToken",
    "TokenRefreshRequired",
    "InvalidToken",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
];
/// What stores say where the bucket is the reason.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// The variables that hold the credentials of a store.
fn credentials_of(url: &str) -> &'static str {
    match url.split_once("://").map_or("", |(scheme, _)| scheme) {
        "gs" => "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT",
        "az" | "abfs" | "abfss" | "adl" | "azure" => "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY",
        "file" => "none: the folder's permissions",
        _ => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
    }
}

/// The innermost cause, in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        last = inner.to_string();
        cause = inner.source();
    }
    let line = last.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}
