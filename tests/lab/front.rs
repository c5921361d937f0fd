//! A front for a mock: a separate port that refuses connections, responds itself or forwards them, as the
//! test chooses while a sweep runs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::net::TcpSocket;

/// How the front handles a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mood {
    /// The front does not listen, so connections are refused.
    Absent,
    /// Every request gets this response (head and body), and the connection is closed.
    Says(String),
    /// Requests are accepted, but never get a response.
    Silent,
    /// Connections are forwarded to the mock.
    Passes,
}

impl Mood {
    /// Returns a response with this status line, other header lines and body.
    pub fn says(status: &str, headers: &str, body: &str) -> Mood {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
        Mood::Says(format!("{head}connection: close\r\n{headers}\r\n{body}"))
    }

    /// Returns the response of a server that is loading its model.
    pub fn loading() -> Mood {
        Mood::says("503 Service Unavailable", "", r#"{"error":{"message":"the model is loading"}}"#)
    }
}

/// A front, closed on drop.
pub struct Front {
    pub port: u16,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    mood: Mutex<Mood>,
    /// Connections that the front handles itself or keeps silent.
    own: AtomicUsize,
    /// Both ends of forwarded connections, for closing them.
    passed: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

impl Front {
    /// Creates a front for the mock on `behind` that does not listen until its mood changes.
    pub fn absent(behind: u16) -> Front {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let inside = runtime.enter();
        // The port is reserved from now on, although the front does not listen on it.
        let bound = |port: u16| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
            socket
        };
        let socket = bound(0);
        let port = socket.local_addr().unwrap().port();
        let held = bound(port);
        drop(inside);
        let shared = Arc::new(Shared {
            mood: Mutex::new(Mood::Absent),
            own: AtomicUsize::new(0),
            passed: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            while theirs.mood() == Mood::Absent {
                if theirs.over.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let inside = runtime.enter();
            let listener: TcpListener = socket.listen(1024).unwrap().into_std().unwrap();
            drop(inside);
            listener.set_nonblocking(false).unwrap();
            theirs.accept(listener, behind);
            drop(held);
        });
        Front { port, shared, accepting: Some(accepting) }
    }

    /// Creates a front for the mock on `behind` with this mood.
    pub fn start(behind: u16, mood: Mood) -> Front {
        let front = Front::absent(behind);
        front.turn(mood);
        front
    }

    /// Sets the mood for new connections. Forwarded connections are closed; in the silent mood, they stay
    /// open but nothing more is forwarded.
    pub fn turn(&self, mood: Mood) {
        let keeps = mood == Mood::Silent;
        *self.shared.mood.lock().unwrap() = mood;
        if !keeps {
            self.cut();
        }
        self.poke();
    }

    fn cut(&self) {
        let cut = |stream: TcpStream| drop(stream.shutdown(Shutdown::Both));
        self.shared.passed.lock().unwrap().drain(..).for_each(cut);
    }

    /// Returns the number of connections that the front handled itself or keeps open.
    pub fn own(&self) -> usize {
        self.shared.own.load(Ordering::SeqCst)
    }

    /// Wakes the accepting thread.
    fn poke(&self) {
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.turn(Mood::Absent);
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

impl Shared {
    fn mood(&self) -> Mood {
        self.mood.lock().unwrap().clone()
    }

    fn accept(self: &Arc<Shared>, listener: TcpListener, behind: u16) {
        let port = listener.local_addr().unwrap().port();
        let mut listener = Some(listener);
        let mut kept = Vec::new();
        while !self.over.load(Ordering::SeqCst) {
            if self.mood() == Mood::Absent {
                listener = None;
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            let open = || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is still free");
            let Ok((mut stream, _)) = listener.get_or_insert_with(open).accept() else { return };
            match self.mood() {
                Mood::Absent => {}
                Mood::Silent => {
                    self.own.fetch_add(1, Ordering::SeqCst);
                    kept.push(stream);
                }
                Mood::Says(response) => {
                    self.own.fetch_add(1, Ordering::SeqCst);
                    std::thread::spawn(move || {
                        // The head is read, so that closing does not reset the connection because of unread
                        // data.
                        let mut buffer = [0; 65536];
                        let _ = stream.read(&mut buffer);
                        let _ = stream.write_all(response.as_bytes());
                        let _ = stream.shutdown(Shutdown::Write);
                        let _ = std::io::copy(&mut stream, &mut std::io::sink());
                    });
                }
                Mood::Passes => self.pass(stream, behind),
            }
        }
    }

    fn pass(self: &Arc<Shared>, near: TcpStream, behind: u16) {
        let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)) else { return };
        let twin = |stream: &TcpStream| stream.try_clone().unwrap();
        self.passed.lock().unwrap().extend([twin(&near), twin(&far)]);
        for (mut from, mut to) in [(twin(&near), twin(&far)), (far, near)] {
            let _ = to.set_nodelay(true);
            let shared = Arc::clone(self);
            std::thread::spawn(move || {
                let mut buffer = [0; 16384];
                while let Ok(length @ 1..) = from.read(&mut buffer) {
                    while shared.mood() == Mood::Silent && !shared.over.load(Ordering::SeqCst) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    if to.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }
}
