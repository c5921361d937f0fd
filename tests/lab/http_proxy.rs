//! An HTTP proxy that forwards requests in absolute form and opens tunnels for CONNECT, all to one server,
//! whatever its name: the proxy alone resolves names, so the test may use names that do not exist.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::recorder::read_request;

/// A running proxy, which is stopped on drop.
pub struct HttpProxy {
    address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl HttpProxy {
    /// Starts a proxy for the server on `port`. If `requires` is given, requests without this value of
    /// `Proxy-Authorization` are refused.
    pub fn start(port: u16, requires: Option<&'static str>) -> HttpProxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (log, over): (Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) = Default::default();
        let (theirs, end) = (Arc::clone(&log), Arc::clone(&over));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let log = Arc::clone(&theirs);
                // A connection that breaks is no failure of the proxy.
                std::thread::spawn(move || drop(serve(stream, port, requires, &log)));
            }
        });
        HttpProxy { address, log, over, accepting: Some(accepting) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let is_woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| is_woken && !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

fn serve(mut client: TcpStream, port: u16, requires: Option<&str>, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut server: Option<TcpStream> = None;
    while let Some((head, body)) = read_request(&mut client)? {
        log.lock().unwrap().push(head.clone());
        let is_allowed = requires.is_none_or(|value| head.contains(&format!("proxy-authorization: {value}")));
        if !is_allowed {
            client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        if head.starts_with("CONNECT ") {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            return tunnel(client, server);
        }
        let connection = match server.take() {
            Some(connection) => connection,
            None => TcpStream::connect((Ipv4Addr::LOCALHOST, port))?,
        };
        let connection = server.insert(connection);
        connection.write_all(forwarded(&head, &body).as_bytes())?;
        relay_response(connection, &mut client)?;
    }
    Ok(())
}

/// Returns the request as it is forwarded: in origin form, and without the proxy's own field.
fn forwarded(head: &str, body: &str) -> String {
    let mut lines = head.lines();
    let mut line = lines.next().unwrap().split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    let path = target.strip_prefix("http://").map(|rest| &rest[rest.find('/').unwrap()..]);
    let path = path.unwrap_or_else(|| panic!("not in absolute form: {target}"));
    let fields: String = lines.filter(|line| !line.starts_with("proxy-")).map(|line| format!("{line}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\n{fields}\r\n{body}")
}

/// Passes a response on, whose length its head states.
fn relay_response(server: &mut TcpStream, client: &mut TcpStream) -> std::io::Result<()> {
    if let Some((head, body)) = read_request(server)? {
        client.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    }
    Ok(())
}

fn tunnel(client: TcpStream, server: TcpStream) -> std::io::Result<()> {
    let ends = [(client.try_clone()?, server.try_clone()?), (server, client)];
    let copies = ends.map(|(mut from, mut to)| {
        std::thread::spawn(move || {
            let mut buffer = [0; 16384];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        })
    });
    copies.into_iter().for_each(|copy| copy.join().unwrap());
    Ok(())
}
