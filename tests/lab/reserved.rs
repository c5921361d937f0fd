//! Ports of test servers that no other test gets, even while nothing listens on them.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of the loopback interface. Until this is dropped, the system gives the port to nobody who asks for any free
/// port. Whoever names the port can listen on it; while nobody does, connections are refused.
pub struct ReservedPort {
    pub number: u16,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a port that is free.
    pub fn of_free() -> ReservedPort {
        let socket = TcpSocket::new_v4().unwrap();
        // Allows a listener with the same option on the port.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        ReservedPort { number: socket.local_addr().unwrap().port(), _socket: socket }
    }
}
