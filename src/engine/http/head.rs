//! Parses the head of a response: its status, how the body ends, and whether the connection may be reused.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Response, Status};

use super::{Body, Malformed};
use crate::engine::told::{Told, retry_after};

/// Size of the largest accepted head, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Maximum number of header fields in a response.
const MAX_FIELDS: usize = 128;

/// The head of a final (not interim) response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub status: u16,
    /// The body; none of it has been read yet.
    pub body: Body,
    /// Whether the connection may carry another request after this response.
    pub keep_alive: bool,
    /// Size of the head and of the interim responses (1xx) before it, in bytes.
    pub length: usize,
    /// The pause that a 429 or 503 response requests, in seconds; `None` if it requests none.
    pub retry_after: Option<u64>,
    /// The times and the request id that the server reported.
    pub told: Told,
}

/// The header fields of a response that are used here.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    /// Whether the last transfer coding is `chunked`; `None` without a transfer coding.
    coding: Option<bool>,
    close: bool,
    keep_alive: bool,
    retry_after: Option<u64>,
    told: Told,
}

impl Head {
    /// Parses the head at the start of `bytes` and skips interim responses. Returns `None` while the head
    /// is incomplete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
        let mut before = 0;
        loop {
            let Some(mut head) = one(&bytes[before..])? else {
                return match bytes.len() {
                    0..MAX_HEAD => Ok(None),
                    _ => Err(Malformed::new("the head of the response is larger than 64 KiB")),
                };
            };
            if head.status == 101 {
                return Err(Malformed::new("the server switches to another protocol without a request for it"));
            }
            before += head.length;
            if head.status >= 200 {
                head.length = before;
                return Ok(Some(head));
            }
        }
    }
}

/// Parses the head at the start of `bytes`, interim or final. Returns `None` while it is incomplete.
fn one(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut room);
    let length = match parsed {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(Malformed::new(format!("not an HTTP/1 response: {error}"))),
    };
    let status = response.code.unwrap_or(0);
    let old = response.version == Some(0);
    let fields = fields(response.headers, matches!(status, 429 | 503))?;
    let body = match (status, fields.coding, fields.length) {
        (100..200 | 204 | 304, _, _) => Body::empty(),
        (_, Some(true), _) => Body::chunked(),
        (_, Some(false), _) | (_, None, None) => Body::until_close(),
        (_, None, Some(length)) => Body::of_length(length),
    };
    // True if the length is stated in two ways, or in a way that does not exist in HTTP/1.0. The server
    // itself may then be wrong about where the response ends, so the connection is not reused.
    let doubtful = fields.coding.is_some() && (fields.length.is_some() || old);
    let persists = if old { fields.keep_alive } else { !fields.close };
    let keep_alive = persists && !doubtful && !body.ends_with_connection();
    Ok(Some(Head { status, body, keep_alive, length, retry_after: fields.retry_after, told: fields.told }))
}

/// Parses the header fields. The pause that the server requests is read only if `turns_away` is set.
fn fields(headers: &[httparse::Header], turns_away: bool) -> Result<Fields, Malformed> {
    let mut fields = Fields::default();
    for header in headers {
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let length = length(header.value)?;
                if fields.length.replace(length).is_some_and(|other| other != length) {
                    return Err(Malformed::new("the response has two different lengths"));
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                fields.coding = Some(items(header.value).last().is_some_and(|last| last == b"chunked"));
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                fields.close |= items(header.value).any(|item| item == b"close");
                fields.keep_alive |= items(header.value).any(|item| item == b"keep-alive");
            }
            11 if turns_away && header.name.eq_ignore_ascii_case("retry-after") => {
                fields.retry_after = retry_after(header.value);
            }
            _ => fields.told.field(header.name, header.value),
        }
    }
    Ok(fields)
}

/// Parses the value of `content-length`. Some gateways repeat the length: `5, 5`.
fn length(value: &[u8]) -> Result<u64, Malformed> {
    let parse = |item: Vec<u8>| {
        let digits = item.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(&item).ok().filter(|_| digits).and_then(|text| text.parse().ok())
    };
    let mut lengths = items(value).map(parse);
    let first = lengths.next().flatten();
    let same = lengths.all(|other| other == first);
    let unreadable = || Malformed::new(format!("invalid content-length: {}", String::from_utf8_lossy(value)));
    first.filter(|_| same).ok_or_else(unreadable)
}

/// Returns the items of a comma-separated list, in lower case.
fn items(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    value.split(|byte| *byte == b',').map(|item| item.trim_ascii().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Head {
        Head::parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn how_a_body_ends() {
        let head = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nrest");
        assert_eq!((head.status, head.body, head.keep_alive), (200, Body::chunked(), true));
        assert_eq!(head.length, "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n".len());
        let head = parse("HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\n\r\n");
        assert_eq!((head.status, head.body, head.keep_alive), (404, Body::of_length(12), true));
        let head = parse("HTTP/1.1 200 OK\r\ncontent-length: 7, 7\r\nconnection: Close\r\n\r\n");
        assert_eq!((head.body, head.keep_alive), (Body::of_length(7), false));
        assert_eq!(parse("HTTP/1.1 200 OK\r\n\r\n").body, Body::until_close());
        assert!(!parse("HTTP/1.1 200 OK\r\n\r\n").keep_alive, "it ends with the connection");
        assert_eq!(parse("HTTP/1.1 204 No Content\r\n\r\n").body, Body::empty());
        assert_eq!(parse("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n").body, Body::until_close());
    }

    #[test]
    fn http_1_0_closes_unless_it_says_otherwise() {
        assert!(!parse("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n").keep_alive);
        assert!(parse("HTTP/1.0 200 OK\r\ncontent-length: 1\r\nConnection: keep-alive\r\n\r\n").keep_alive);
        assert!(!parse("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n").keep_alive);
    }

    #[test]
    fn how_long_a_server_wants_to_be_left_alone() {
        let of = |status: &str, value: &str| {
            let fields = format!("content-length: 0\r\nRetry-After: {value}\r\n");
            parse(&format!("HTTP/1.1 {status}\r\n{fields}\r\n")).retry_after
        };
        assert_eq!((of("429 Slow Down", "20"), of("503 Busy", " 7 ")), (Some(20), Some(7)));
        assert_eq!(of("503 Busy", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(0), "a date that has passed");
        assert!(of("503 Busy", "Thu, 21 Oct 2100 07:28:00 GMT").is_some_and(|secs| secs > 2_000_000_000));
        for none in ["-1", "1.5", "", "tomorrow", "99999999999999999999"] {
            assert_eq!(of("429 Slow Down", none), None, "{none}");
        }
        assert_eq!(of("200 OK", "20"), None);
    }

    #[test]
    fn interim_answers_are_passed_over() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        assert_eq!((parse(text).status, parse(text).length), (200, text.len()));
        for cut in 0..text.len() {
            assert_eq!(Head::parse(&text.as_bytes()[..cut]).unwrap(), None, "{cut}");
        }
    }

    #[test]
    fn what_is_no_answer() {
        for text in [
            "SSH-2.0-OpenSSH_9.6\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/2 200\r\n\r\n",
        ] {
            assert!(Head::parse(text.as_bytes()).is_err(), "{text}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(MAX_HEAD));
        assert!(Head::parse(endless.as_bytes()).is_err());
    }
}
