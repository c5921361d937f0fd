//! Creates the heads of complete responses, and the bodies of error responses.

use serde_json::json;

use super::messages;
use super::request::Api;

/// The header line that names this server.
pub(super) const SERVER: &str = concat!("server: sweepline-mock/", env!("CARGO_PKG_VERSION"), "\r\n");

/// The content type of most responses.
pub(super) const JSON: &str = "application/json";

/// Returns an error body in the format of an API; in OpenAI's format for other paths (`None`).
pub(super) fn error(api: Option<Api>, status: u16, message: &str) -> String {
    if api == Some(Api::Messages) {
        return messages::error(status, message);
    }
    let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
    json!({"error": {"message": message, "type": kind, "param": null, "code": status}}).to_string()
}

/// Returns the head of a response whose JSON body has `length` bytes.
pub(super) fn json_head(status: u16, length: usize, keep: bool) -> String {
    head(status, JSON, length, keep)
}

/// Returns the head of a response whose body has `length` bytes of content type `kind`.
pub(super) fn head(status: u16, kind: &str, length: usize, keep: bool) -> String {
    let connection = if keep { "keep-alive" } else { "close" };
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\n{SERVER}content-type: {kind}\r\ncontent-length: {length}\r\n\
         connection: {connection}\r\n\r\n"
    )
}
