//! A server that sends each response at once and then holds its stream open, with or without the end of the body.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// The tokens of each response.
pub const TOKENS: u32 = 32;

/// Starts the server and returns its port. If `holds` is true, bodies do not end after `[DONE]`, and connections
/// stay open until the client closes them. The threads end with this process.
pub fn start(holds: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let thread = std::thread::Builder::new().stack_size(64 << 10);
            thread.spawn(move || serve(&stream, holds)).expect("a thread for each connection");
        }
    });
    port
}

/// Serves one connection until the client closes it.
fn serve(stream: &TcpStream, holds: bool) {
    let response = response(holds);
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader).is_some() {
        let mut writer = stream;
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads one request; `None` if the client has closed the connection.
fn read_request(reader: &mut impl BufRead) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()
}

/// A whole response of [`TOKENS`] tokens, one event each.
fn response(holds: bool) -> String {
    let mut body = String::new();
    for _ in 0..TOKENS {
        body += "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    body += &format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":32,\"completion_tokens\":{TOKENS},\"total_tokens\":{}}}}}\n\n",
        32 + TOKENS
    );
    body += "data: [DONE]\n\n";
    let end = if holds { "" } else { "0\r\n\r\n" };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{body}\r\n{end}", body.len())
}
