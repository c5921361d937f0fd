//! Errors of results on object storage.

use std::io;
use std::path::PathBuf;

use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path as Key;

use crate::store::StoreError;

/// A failure to reach, read or write results on object storage.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// An address that does not identify a store.
    #[error(
        "`{url}` is not an address of object storage ({why}): write one like s3://bucket/prefix, gs://bucket/prefix, \
         az://container/prefix or file:///folder"
    )]
    Address {
        /// The address, without parts that may be secret.
        url: String,
        /// The reason.
        why: String,
    },
    /// The environment does not contain all settings that are needed to reach the store, or contains
    /// invalid ones.
    #[error("{url}: {why}")]
    Unusable {
        /// The address.
        url: String,
        /// The settings that are missing or wrong.
        why: String,
    },
    /// Missing, expired or wrong credentials.
    #[error(
        "cannot {doing} {key} at {url}: access denied ({why}); check the credentials in the environment ({variables}) \
         and run the same command again; nothing is lost"
    )]
    Refused {
        /// The address.
        url: String,
        /// The operation.
        doing: Doing,
        /// The object.
        key: String,
        /// The store's response.
        why: String,
        /// The environment variables that contain credentials for this kind of store.
        variables: &'static str,
    },
    /// The bucket or folder does not exist.
    #[error("{url}: the bucket or folder does not exist; create it first")]
    NoBucket {
        /// The address.
        url: String,
    },
    /// The store did not respond or returned an unexpected response, even after several attempts.
    #[error("cannot {doing} {key} at {url} ({why}): run the same command again; nothing is lost")]
    Failed {
        /// The address.
        url: String,
        /// The operation.
        doing: Doing,
        /// The object.
        key: String,
        /// The reason.
        why: String,
    },
    /// The store does not support conditional writes: it let several writers create the same object.
    #[error(
        "{url} ignores \"create if absent\" ({winners} of {writers} writers created the same object), so two \
         sweeps could overwrite each other's \
         results: use a store with conditional writes, like AWS S3, Google Cloud Storage, Azure Blob Storage, MinIO or Cloudflare R2"
    )]
    Unconditional {
        /// The address.
        url: String,
        /// Number of writers that succeeded.
        winners: usize,
        /// Number of writers.
        writers: usize,
    },
    /// An object with unexpected content.
    #[error("{key} at {url} is damaged ({reason})")]
    Damaged {
        /// The address.
        url: String,
        /// The object.
        key: String,
        /// The reason.
        reason: String,
    },
    /// An error of the local results folder.
    #[error(transparent)]
    Folder(#[from] StoreError),
    /// No thread could be started for requests.
    #[error("cannot start a thread for requests to object storage ({0}): raise the process limit (`ulimit -u`)")]
    NoThread(io::Error),
}

/// An operation on the store.
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
    /// Converts an error of the store into an error whose message states the remedy.
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
            // Some errors have no specific kind, such as those of listings and S3's status 400 for an
            // expired token. They are recognized by their texts.
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

/// Texts that identify errors caused by missing or wrong credentials.
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
/// Texts that identify errors caused by a missing bucket.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// Returns the names of the environment variables that contain the credentials of a store.
fn credentials_of(url: &str) -> &'static str {
    match url.split_once("://").map_or("", |(scheme, _)| scheme) {
        "gs" => "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT",
        "az" | "abfs" | "abfss" | "adl" | "azure" => "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY",
        "file" => "none: the folder's permissions",
        _ => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
    }
}

/// Whether a connection ended, or a time limit passed, before the response to a request was complete.
pub(super) fn is_interrupted(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return matches!(error.kind(), HttpErrorKind::Interrupted | HttpErrorKind::Timeout);
        }
        cause = error.source();
    }
    false
}

/// Returns the innermost cause of an error, in one line of at most 300 characters.
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
