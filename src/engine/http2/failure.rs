//! Converts errors of HTTP/2 into failures of requests.

use h2::Reason;

use crate::engine::connection::broken;
use crate::engine::tally::Failure;
use crate::rows::Outcome;

/// Converts an error of HTTP/2 into the failure of a request. `is_settled` is true if the server's
/// settings have arrived, so the server does support HTTP/2.
pub(super) fn failed(error: &h2::Error, is_settled: bool) -> Failure {
    if let Some(error) = error.get_io() {
        return broken(error);
    }
    if error.is_library() && !is_settled {
        return Failure::new(
            Outcome::Malformed,
            format!("not an HTTP/2 response: {error}; if the server only supports HTTP/1.1, remove `http: 2`"),
        );
    }
    let reason = error.reason().unwrap_or(Reason::INTERNAL_ERROR);
    let (code, words) = (code(reason), reason.description());
    match (error.is_library(), error.is_go_away(), error.is_reset()) {
        (true, ..) => Failure::new(Outcome::Malformed, format!("not an HTTP/2 response: {code}, {words}")),
        (_, true, _) => {
            Failure::new(Outcome::Reset, format!("the server ended the connection: GOAWAY {code}, {words}"))
        }
        (_, _, true) => Failure::new(Outcome::Reset, format!("the server reset the stream: {code}, {words}")),
        _ => Failure::new(Outcome::Malformed, format!("HTTP/2 cannot carry this request: {error}")),
    }
}

/// Returns the name of an error code in RFC 9113.
fn code(reason: Reason) -> String {
    let number = u32::from(reason);
    if number <= u32::from(Reason::HTTP_1_1_REQUIRED) { format!("{reason:?}") } else { format!("code {number:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_have_their_names() {
        assert_eq!(code(Reason::REFUSED_STREAM), "REFUSED_STREAM");
        assert_eq!(code(Reason::HTTP_1_1_REQUIRED), "HTTP_1_1_REQUIRED");
        assert_eq!(code(Reason::from(0x99)), "code 0x99");
    }
}
