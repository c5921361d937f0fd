//! Reads the times and the request id that a server reports in the head of its response, and the target of a
//! redirect. Only the id and the target are allocated.
//!
//! `Server-Timing` (W3C, "Server Timing", 2.1: names with a `dur` in milliseconds) does not prescribe names;
//! sweepline reads `queue`, `prefill`, `decode` and `total`, in upper or lower case. Text Generation
//! Inference (3.3.7, `router/src/server.rs`, `generate_internal`) sends `x-queue-time` and `x-total-time` in
//! whole milliseconds. Other servers may use the same names, so these fields are read only together with
//! TGI's `x-compute-type`. `traceparent` is defined in W3C's "Trace Context", 3.2.

use crate::protocol::nanos;
use crate::rows::ServerTimes;

/// Maximum length of an id, in bytes.
const LONGEST_ID: usize = 128;
/// Maximum length of the address of a redirect, in bytes.
const LONGEST_LOCATION: usize = 512;

/// The times and ids found in the head of a response so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    timing: ServerTimes,
    /// The times in TGI's fields. They are used only if the field that identifies the server as TGI is
    /// present (`is_tgi`).
    tgi: ServerTimes,
    is_tgi: bool,
    trace: Option<Box<str>>,
    request: Option<Box<str>>,
    location: Option<Box<str>>,
    /// The content type, unless it is that of an event stream.
    content_type: Option<Box<str>>,
    content_encoding: Option<Box<str>>,
}

impl Told {
    /// Reads a header field of the response, if it contains a time or an id.
    pub(crate) fn field(&mut self, name: &str, value: &[u8]) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            13 if is("server-timing") => timings(value, &mut self.timing),
            12 if is("x-queue-time") => self.tgi.queue_ns = millis(value),
            12 if is("x-total-time") => self.tgi.total_ns = millis(value),
            14 if is("x-compute-type") => self.is_tgi = true,
            11 if is("traceparent") => self.trace = trace_id(value),
            12 if is("x-request-id") => self.request = id(value),
            12 if is("content-type") && !is_event_stream(value) => self.content_type = printable(value),
            16 if is("content-encoding") && !value.eq_ignore_ascii_case(b"identity") => {
                self.content_encoding = printable(value);
            }
            8 if is("location") => self.location = location(value),
            _ => {}
        }
    }

    /// Returns the times. The head of a stream is sent before the response ends, so its `decode` and
    /// `total` cannot be the times of this request and are ignored.
    pub(crate) fn times(&self, stream: bool) -> ServerTimes {
        let all = if self.is_tgi { self.timing.or(self.tgi) } else { self.timing };
        if stream { ServerTimes { decode_ns: None, total_ns: None, ..all } } else { all }
    }

    /// Returns what the head says about the body, if it is not a plain event stream: the encoding, or else the content
    /// type.
    pub(crate) fn content_kind(&self) -> Option<&str> {
        self.content_encoding.as_deref().or(self.content_type.as_deref())
    }

    /// Returns the server's id for the request: the trace id, or else the request id; `None` without
    /// either.
    pub(crate) fn id(&self) -> Option<&str> {
        self.trace.as_deref().or(self.request.as_deref())
    }

    /// Returns the address to which the server redirects the client; `None` if it does not.
    pub(crate) fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }
}

/// Reads a `Retry-After` field (RFC 9110, 10.2.3): a number of seconds, or a date. Returns the seconds from now; 0 if the
/// date has passed, `None` if the field is invalid.
pub(crate) fn retry_after(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let left = date.duration_since(jiff::Timestamp::now()).as_secs_f64().ceil();
    Some(left.max(0.0) as u64)
}

/// Whether a content type is that of an event stream, with or without parameters.
fn is_event_stream(value: &[u8]) -> bool {
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

/// Returns a field's value if it is short and plain text; `None` otherwise.
fn printable(value: &[u8]) -> Option<Box<str>> {
    let is_plain = value.len() <= LONGEST_ID && value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    std::str::from_utf8(value).ok().filter(|_| is_plain).map(Into::into)
}

/// Reads the entries of a `Server-Timing` field, for example `miss, queue;dur=53.2, prefill;desc="a,
/// b";dur=47`, into `times`.
fn timings(value: &[u8], times: &mut ServerTimes) {
    for entry in split(value, b',') {
        let mut parts = split(entry, b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let place = match name.len() {
            5 if name.eq_ignore_ascii_case(b"queue") => &mut times.queue_ns,
            7 if name.eq_ignore_ascii_case(b"prefill") => &mut times.prefill_ns,
            6 if name.eq_ignore_ascii_case(b"decode") => &mut times.decode_ns,
            5 if name.eq_ignore_ascii_case(b"total") => &mut times.total_ns,
            _ => continue,
        };
        // If parameters or entries are repeated, the first one is used.
        let duration = parts.find_map(|part| {
            let at = part.iter().position(|byte| *byte == b'=')?;
            part[..at].trim_ascii().eq_ignore_ascii_case(b"dur").then(|| &part[at + 1..])
        });
        *place = place.or(duration.and_then(millis));
    }
}

/// Returns the address in a `Location` field; `None` if it is too long to be shown.
fn location(value: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(value).ok()?.trim();
    (1..=LONGEST_LOCATION).contains(&text.len()).then(|| text.into())
}

/// Splits a text at the separators outside of quotes.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |byte| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match byte {
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            byte => return *byte == separator && !quoted,
        }
        false
    })
}

/// Parses a number of milliseconds, quoted or not, and returns nanoseconds; `None` if it is not a valid time.
fn millis(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim().trim_matches('"');
    nanos(text.parse().ok()?)
}

/// Returns the trace id of a `traceparent` like `00-<32 hex digits>-<16>-<2>`; future versions may append
/// more parts. `None` if it is invalid.
fn trace_id(value: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let mut parts = text.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_one = is_hex(version, 2) && is_hex(trace, 32) && trace.bytes().any(|byte| byte != b'0');
    is_one.then(|| trace.into())
}

/// Returns an id unchanged; `None` if it is empty or too long, or contains characters that are invalid in
/// an id.
fn id(value: &[u8]) -> Option<Box<str>> {
    let value = value.trim_ascii();
    let fits = (1..=LONGEST_ID).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
    fits.then(|| std::str::from_utf8(value).ok().map(Into::into)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn told(fields: &[(&str, &str)]) -> Told {
        let mut told = Told::default();
        fields.iter().for_each(|(name, value)| told.field(name, value.as_bytes()));
        told
    }

    fn parts(times: ServerTimes) -> [Option<u64>; 4] {
        [times.queue_ns, times.prefill_ns, times.decode_ns, times.total_ns]
    }

    #[test]
    fn server_timing_by_its_names() {
        let field =
            r#"miss, Queue;dur=1.5, prefill;desc="a, b; \"dur=9\"";dur=20, decode; dur = "30";dur=1, total;dur=60"#;
        let told = told(&[("Server-Timing", field)]);
        assert_eq!(parts(told.times(false)), [Some(1_500_000), Some(20 * MS), Some(30 * MS), Some(60 * MS)]);
        assert_eq!(parts(told.times(true)), [Some(1_500_000), Some(20 * MS), None, None]);
    }

    #[test]
    fn what_is_no_time_is_none() {
        for value in [
            "queue",
            "queue;dur=",
            "queue;dur=-1",
            "queue;dur=NaN",
            "queue;dur=1e99",
            "queue;dur=inf",
            "other;dur=3",
            "\"queue;dur=3",
        ] {
            assert!(told(&[("server-timing", value)]).times(false).is_empty(), "{value}");
        }
        let twice = told(&[("server-timing", "queue;dur=3"), ("server-timing", "queue;dur=4, total;dur=5")]);
        assert_eq!(parts(twice.times(false)), [Some(3 * MS), None, None, Some(5 * MS)]);
    }

    #[test]
    fn fields_of_tgi_are_its_own_alone() {
        let times = [("x-total-time", "1200"), ("x-queue-time", "300"), ("x-inference-time", "890")];
        assert!(told(&times).times(false).is_empty(), "ambiguous names");
        let tgi = told(&[&[("x-compute-type", "1-nvidia-h100")][..], &times].concat());
        assert_eq!(parts(tgi.times(false)), [Some(300 * MS), None, None, Some(1_200 * MS)]);
    }

    #[test]
    fn an_id_is_that_of_the_trace_or_of_the_request() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parent = format!("00-{trace}-b7ad6b7169203331-01");
        let both = [("x-request-id", "r-7"), ("traceparent", parent.as_str())];
        assert_eq!([told(&both).id(), told(&both[..1]).id()], [Some(trace), Some("r-7")]);
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for parent in ["00-12-34-01", "", &zeros, &format!("00-{}-b7ad6b7169203331-01", "g".repeat(32))] {
            assert_eq!(told(&[("traceparent", parent)]).id(), None, "{parent}");
        }
        let long = "x".repeat(LONGEST_ID + 1);
        for request in ["", "a b", "\u{1b}[2J", long.as_str()] {
            assert_eq!(told(&[("x-request-id", request)]).id(), None, "{request}");
        }
    }
}
