//! Determines whether a failed probe requires an edit of the plan, or whether waiting may help.

use std::time::Duration;

use super::launch::EarlyEnd;
use super::probe::ProbeError;
use crate::tls;

/// The errors of `getaddrinfo` for an unknown host name. If the name server does not respond, `getaddrinfo`
/// returns another error, which is temporary.
const UNKNOWN_HOST: [&str; 4] = [
    "Name or service not known",
    "nodename nor servname provided",
    "No address associated with hostname",
    "Name does not resolve",
];

/// Why a server is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready {
    /// The reason, as text.
    pub reason: String,
    /// Whether waiting cannot help because the plan or the machine must be changed, for example because the
    /// API key, the host, the certificate or the model is wrong.
    pub is_final: bool,
    /// The pause that the server requests in `Retry-After`; `None` if it requests none.
    pub retry_after: Option<Duration>,
    /// Whether the process that sweepline launched has ended.
    pub has_ended: bool,
    /// Whether the server rejects the API key.
    pub is_unauthorized: bool,
    /// How the launched process ended; `None` if it has not ended.
    pub early_end: Option<EarlyEnd>,
}

impl Unready {
    fn new(reason: impl Into<String>, is_final: bool) -> Unready {
        Unready {
            reason: reason.into(),
            is_final,
            retry_after: None,
            has_ended: false,
            is_unauthorized: false,
            early_end: None,
        }
    }

    /// Returns the state of a server for which waiting cannot help.
    pub fn for_good(reason: impl Into<String>) -> Unready {
        Unready::new(reason, true)
    }

    /// Returns the state after a probe that was stopped before the server responded.
    pub fn stopped() -> Unready {
        Unready::new("stopped", false)
    }

    /// Returns the state of a launched server process that has ended, or did not start.
    pub fn ended(reason: impl Into<String>, is_final: bool) -> Unready {
        Unready { has_ended: true, ..Unready::new(reason, is_final) }
    }
}

impl From<ProbeError> for Unready {
    fn from(error: ProbeError) -> Unready {
        let (is_final, retry_after) = match &error {
            ProbeError::Key { .. }
            | ProbeError::Model { .. }
            | ProbeError::NoReadyPath { .. }
            | ProbeError::OtherBase { .. }
            | ProbeError::Redirect { .. }
            | ProbeError::OtherHttp { .. } => (true, None),
            ProbeError::Unreachable { reason, .. } => (is_final(reason), None),
            ProbeError::Refused { retry_after, .. } | ProbeError::Loading { retry_after, .. } => (false, *retry_after),
            ProbeError::Silent { .. } | ProbeError::Unfinished { .. } | ProbeError::NoCompletion { .. } => {
                (false, None)
            }
        };
        let is_unauthorized = matches!(error, ProbeError::Key { .. });
        Unready { retry_after, is_unauthorized, ..Unready::new(error.to_string(), is_final) }
    }
}

/// Whether the reason why a connection could not be opened is permanent.
fn is_final(reason: &str) -> bool {
    tls::is_about_certificates(reason) || UNKNOWN_HOST.iter().any(|text| reason.contains(text))
}
