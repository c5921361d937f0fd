//! Hostile servers.

use std::io::Write;
use std::net::Shutdown;

use sha2::{Digest, Sha256};
use sweepline::rows::{Outcome, Record};

use super::raw::{Raw, read_head};
use super::{MB, watched};
use lab::Lab;
use lab::plans::{by_number, one_by_one};
use lab::server::{Server, good, stream_of, token};

/// A prompt whose body exceeds all socket buffers: about 5 MB.
const LARGE: &str = "prompt_tokens: 1000000, output_tokens: 8";

fn error(record: &Record) -> &str {
    record.row.error.as_deref().unwrap_or("")
}

/// Returns the rows of the requests that were not cut at the end.
fn told(lab: &Lab) -> Vec<Record> {
    let mut records = by_number(lab.only_run());
    records.retain(|record| record.row.outcome != Outcome::CutAtDrain);
    records
}

/// Returns the column `text_digest` for a response without reasoning.
pub fn digest(text: &str) -> String {
    Sha256::digest(text)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_answer_before_the_request_is_wholly_written_is_an_answer() {
    let server = Raw::start(|stream| {
        read_head(stream);
        // The body is never read. The client may have closed the connection.
        let _ = stream.write_all(&good());
        let _ = stream.shutdown(Shutdown::Write);
    });
    let lab = Lab::new();
    let plan = one_by_one(server.port, 3, "stall: 20s").replace("output_tokens: 8", LARGE);
    watched(&lab, &plan).is_committed_within(250 * MB);
    let records = told(&lab);
    assert!(records.len() >= 3);
    for record in &records {
        // The kernels decide which is seen first, the response or the failed write of the request.
        assert!(matches!(record.row.outcome, Outcome::Ok | Outcome::Reset), "{:?}", record.row);
        assert_eq!(record.row.error.is_some(), !record.row.outcome.is_ok());
        if record.row.outcome.is_ok() {
            assert_eq!((record.row.events, record.row.text_digest.clone()), (2, Some(digest("Good day."))));
        }
        assert!(record.row.sent_ns.is_some() && record.row.ended_ns >= record.row.sent_ns);
    }
    let answered = records.iter().filter(|record| record.row.outcome.is_ok()).count();
    eprintln!("{answered} of {} answered", records.len());
}

#[test]
fn an_answer_before_there_is_a_request_is_never_timed_before_it() {
    for connections in ["cold", "warm"] {
        let server = Raw::start(|stream| {
            // Sent before any request.
            let _ = stream.write_all(&good());
            let _ = std::io::copy(stream, &mut std::io::sink());
        });
        let lab = Lab::new();
        let plan = one_by_one(server.port, 4, "stall: 500ms, request: 1s") + &format!("connections: {connections}\n");
        watched(&lab, &plan).is_committed_within(200 * MB);
        let records = by_number(lab.only_run());
        for record in &records {
            // Bytes that arrived before the request was sent are not timed as its response.
            let row = &record.row;
            assert!(row.outcome != Outcome::Ok || row.first_token_ns >= row.sent_ns, "{row:?}");
            assert_eq!(row.error.is_some(), !row.outcome.is_ok());
        }
        let opened = server.connections();
        // The checks whether the server is idle use separate connections: two for a gauge, and some for
        // generations.
        assert!(opened <= records.len() + 9, "{opened} connections for {} requests", records.len());
        let outcomes: Vec<String> = records.iter().map(|record| record.row.outcome.to_string()).collect();
        eprintln!("{connections}: {outcomes:?}");
    }
}

#[test]
fn a_server_that_never_reads_is_stalled() {
    let server = Raw::start(|_| {});
    let lab = Lab::new();
    let plan = one_by_one(server.port, 2, "stall: 1s").replace("output_tokens: 8", LARGE);
    watched(&lab, &plan).is_committed_within(250 * MB);
    let records = told(&lab);
    assert!(records.len() >= 2);
    for record in &records {
        assert_eq!(record.row.outcome, Outcome::Stalled, "{:?}", record.row);
        assert!(error(record).contains("nothing was received for 1s"), "{:?}", record.row.error);
        assert!(record.row.ended_ns.unwrap() - record.row.sent_ns.unwrap() >= 1_000_000_000);
        assert_eq!((record.row.headers_ns, record.row.bytes), (None, 0));
    }
}

#[test]
fn one_byte_at_a_time_is_the_same_answer() {
    const WORDS: [&str; 8] = ["Grüße", " aus", " der", " 東京", " 😀", " und", " von", " hier"];
    let server = Server::start(|_, stream| {
        stream.set_nodelay(true).unwrap();
        let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\r\n\r\ndata: [DONE]\r\n\r\n";
        let events: String = WORDS.iter().map(|word| token(word)).collect();
        let answer = stream_of(&(events + finish));
        // Ends when the client closes the connection.
        let _ = answer.iter().try_for_each(|byte| stream.write_all(&[*byte]));
    });
    let lab = Lab::new();
    watched(&lab, &one_by_one(server.port, 4, "stall: 30s")).is_committed_within(200 * MB);
    let records = told(&lab);
    assert!(records.len() >= 4);
    for record in &records {
        assert_eq!((record.row.outcome, record.row.events), (Outcome::Ok, 8), "{:?}", record.row);
        assert_eq!(record.row.text_digest.as_deref(), Some(digest(&WORDS.concat()).as_str()));
        assert_eq!(record.gaps_ns.len(), 7);
        assert_eq!(record.row.finish_reason.as_deref(), Some("length"));
    }
}

/// Beginnings of responses that never end, with the text that is repeated after each.
const ENDLESS: [(&str, &[u8]); 6] = [
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"0000000000000000"),
    ("HTTP/1.1 200 OK\r\nx-endless: ", b"xxxxxxxxxxxxxxxx"),
    ("HTTP/1.1 200 OK\r\n", b"x-another: header\r\n"),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;", b"extension=endless"),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x-trailer: endless\r\n"),
    ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n: ", b"a comment that never ends"),
];

#[test]
fn what_never_ends_is_given_up_early_wherever_it_is() {
    const SENT: usize = 1 << 30;
    let server = Server::start(|number, stream| {
        let (head, again) = ENDLESS[number % ENDLESS.len()];
        let _ = stream.write_all(head.as_bytes());
        let piece = again.repeat((1 << 18) / again.len());
        // Ends as soon as the client closes the connection.
        let _ = (0..SENT / piece.len()).try_for_each(|_| stream.write_all(&piece));
    });
    let lab = Lab::new();
    watched(&lab, &one_by_one(server.port, ENDLESS.len(), "stall: 30s")).is_committed_within(200 * MB);
    let records = told(&lab);
    assert!(records.len() >= ENDLESS.len());
    for (record, (head, _)) in records.iter().zip(ENDLESS.iter().cycle()) {
        assert_eq!(record.row.outcome, Outcome::Malformed, "{head:?}: {:?}", record.row.error);
        assert!(!error(record).is_empty() && record.row.bytes < 32 * MB, "{head:?}: {} bytes", record.row.bytes);
    }
}

#[test]
fn promises_without_end_are_ended_by_the_time_limit() {
    let server = Server::start(|_, stream| {
        let promises = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1 << 10);
        while stream.write_all(&promises).is_ok() {}
    });
    let lab = Lab::new();
    watched(&lab, &one_by_one(server.port, 2, "stall: 30s, request: 2s")).is_committed_within(200 * MB);
    let records = told(&lab);
    assert!(records.len() >= 2);
    for record in &records {
        // Or earlier, if many of them are recognized.
        assert!(matches!(record.row.outcome, Outcome::Timeout | Outcome::Malformed), "{:?}", record.row);
        assert_eq!((record.row.bytes, error(record).is_empty()), (0, false));
    }
}

#[test]
fn fifty_thousand_events_in_one_write_are_all_counted() {
    const EVENTS: usize = 50_000;
    let server = Server::start(|_, stream| {
        let events = token("a").repeat(EVENTS);
        let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
        let _ = stream.write_all(&stream_of(&(events + finish)));
    });
    let lab = Lab::new();
    watched(&lab, &one_by_one(server.port, 2, "stall: 30s")).is_committed_within(200 * MB);
    let records = told(&lab);
    assert!(records.len() >= 2);
    for Record { row, gaps_ns } in &records {
        assert_eq!((row.outcome, row.events as usize, gaps_ns.len()), (Outcome::Ok, EVENTS, EVENTS - 1), "{row:?}");
        assert_eq!(row.text_digest.as_deref(), Some(digest(&"a".repeat(EVENTS)).as_str()));
        assert_eq!(gaps_ns.iter().sum::<u64>(), row.last_token_ns.unwrap() - row.first_token_ns.unwrap());
        // Hundreds of events arrive with each read, and share its instant.
        let shared = gaps_ns.iter().filter(|gap| **gap == 0).count();
        assert!(shared * 10 >= EVENTS * 9, "{shared} of {EVENTS} share an instant");
    }
}

#[test]
fn a_server_that_closes_in_the_middle_of_a_request_is_a_reset() {
    let server = Raw::start(|stream| {
        read_head(stream);
        let _ = stream.shutdown(Shutdown::Both);
    });
    let lab = Lab::new();
    let plan = one_by_one(server.port, 3, "stall: 20s").replace("output_tokens: 8", LARGE);
    watched(&lab, &plan).is_committed_within(250 * MB);
    let records = told(&lab);
    assert!(records.len() >= 3);
    for record in &records {
        assert_eq!(record.row.outcome, Outcome::Reset, "{:?}", record.row);
        assert!(!error(record).is_empty() && record.row.sent_ns.is_some());
    }
    // The checks whether the server is idle use separate connections.
    assert!(server.connections() <= records.len() + 9, "a broken request is not retried");
}
