//! The round trip to a server, measured during a run. It is the time that a TCP handshake takes on a
//! separate connection, which is then closed without a request. The kernel of the listening host responds
//! to the handshake, so the time depends only on the network, however busy the server is. If a proxy or a
//! tunnel terminates connections, it responds instead of the server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::network::Route;
use crate::rows::Sample;

/// Number of consecutive handshakes. Only the shortest is used, because this machine may be slow for a
/// moment.
const TRIES: usize = 3;
/// Time limit of a handshake. A lost packet is retransmitted after a second, so a handshake that takes longer
/// than this limit does not measure one round trip.
const LONGEST: Duration = Duration::from_millis(900);

/// The `source` of round-trip samples.
pub const SOURCE: &str = "network";
/// The `name` of round-trip samples.
pub const NAME: &str = "round_trip_seconds";

/// A server whose round trip is measured.
#[derive(Debug, Clone)]
pub struct Far {
    host: String,
    port: u16,
}

impl Far {
    /// Returns the host to which connections along a route are opened, which is the proxy if there is one;
    /// `None` for a Unix socket.
    pub fn of(route: &Route) -> Option<Far> {
        if route.socket().is_some() {
            return None;
        }
        let (host, port) = route.tcp();
        Some(Far { host: host.to_owned(), port })
    }

    /// Looks up the server's socket addresses; returns an empty list if this fails. This is done once, because
    /// the time of the name lookup is not part of the round trip.
    pub(super) async fn resolved(&self) -> Vec<SocketAddr> {
        let found = timeout(LONGEST, lookup_host((self.host.as_str(), self.port))).await;
        found.ok().and_then(Result::ok).map(Iterator::collect).unwrap_or_default()
    }
}

/// Returns the duration of the shortest handshake in seconds; `None` if none completed.
pub(super) async fn measure(addresses: &[SocketAddr]) -> Option<f64> {
    let mut least: Option<f64> = None;
    for _ in 0..TRIES {
        let begin = Instant::now();
        if let Ok(Ok(stream)) = timeout(LONGEST, TcpStream::connect(addresses)).await {
            let took = begin.elapsed().as_secs_f64();
            drop(stream);
            least = Some(least.map_or(took, |least| least.min(took)));
        }
    }
    least
}

/// Creates a sample from a measured round trip.
pub(super) fn sample(at_ns: u64, seconds: f64) -> Sample {
    Sample { at_ns, source: SOURCE.to_owned(), name: NAME.to_owned(), value: seconds, ..Sample::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Address;

    fn route(url: &str) -> Route {
        Route::direct(Address::parse(url).unwrap())
    }

    fn wait<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
    }

    #[test]
    fn a_server_that_answers_nothing_has_a_round_trip() {
        // Nothing has to accept the connection, because the kernel responds to the handshake.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let far = Far::of(&route(&url)).unwrap();
        let seconds = wait(async { measure(&far.resolved().await).await }).unwrap();
        assert!(seconds > 0.0 && seconds < 0.9, "{seconds}");
        drop(listener);
        assert_eq!(wait(async { measure(&far.resolved().await).await }), None, "nothing listens");
    }

    #[test]
    fn addresses_name_a_host_and_a_port() {
        let of = |url: &str| Far::of(&route(url)).map(|far| (far.host, far.port));
        assert_eq!(of("https://h/v1"), Some(("h".to_owned(), 443)));
        assert_eq!(of("http://[::1]:8000/v1"), Some(("::1".to_owned(), 8000)));
        assert_eq!(wait(Far { host: "unknown host".into(), port: 1 }.resolved()), []);
    }
}
