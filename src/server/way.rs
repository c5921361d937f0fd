//! The network path to a server, that is, between the server and this machine, independent of the
//! server's computation.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::units::Nanos;

/// A TCP handshake is one round trip between two kernels: 0.02 to 0.1 ms within a host, 0.05 to 0.3 ms
/// within a rack of 10 Gbit/s Ethernet, and 0.5 to 2 ms between zones of a cloud. A server that takes
/// longer is not near.
pub(super) const NEAR_CONNECT: Nanos = Nanos::from_millis(1);
/// An exchange takes that round trip plus the server's work, which is a few milliseconds in Python
/// for a list of models. If an exchange takes longer than this, there is a slow proxy in between, or
/// a tunnel whose near end accepts the handshake.
const NEAR_EXCHANGE: Nanos = Nanos::from_millis(10);

/// The measurements; null if a measurement was not possible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Way {
    /// The HTTP version used: 1.1 or 2.
    pub http: Option<&'static str>,
    /// The TCP handshake, in nanoseconds: one round trip to the host that accepts it.
    pub connect_ns: Option<u64>,
    /// The TLS handshake, in nanoseconds; null without TLS.
    pub tls_ns: Option<u64>,
    /// The shortest of a few small exchanges on an open connection, in nanoseconds: the round trip plus the
    /// server's work for a response.
    pub round_trip_ns: Option<u64>,
}

impl Way {
    /// Returns why a client with this path to its server cannot be near it, as `near: true` declares;
    /// `None` if it can.
    pub fn contradicts_near(&self) -> Option<String> {
        let beyond = |measured: Option<u64>, limit: Nanos| measured.filter(|ns| *ns > limit.0).map(millis);
        let connect = beyond(self.connect_ns, NEAR_CONNECT)
            .map(|took| format!("a connection takes {took} to open (within a host or a rack: below {NEAR_CONNECT})"));
        let exchange = || {
            beyond(self.round_trip_ns, NEAR_EXCHANGE).map(|took| {
                format!("the shortest exchange takes {took} (within a host or a rack: below {NEAR_EXCHANGE})")
            })
        };
        let measured = connect.or_else(exchange)?;
        Some(format!(
            "`near: true`, but {measured}; TTFT includes that time: run sweepline on the server's host, or remove \
             `near`"
        ))
    }
}

impl fmt::Display for Way {
    /// `HTTP/1.1, connect 0.05 ms, round trip 0.31 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way { http, connect_ns, tls_ns, round_trip_ns } = *self;
        let parts = [("connect", connect_ns), ("TLS", tls_ns), ("round trip", round_trip_ns)];
        let parts = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", millis(ns?))));
        let http = http.map(|version| format!("HTTP/{version}"));
        f.write_str(&http.into_iter().chain(parts).collect::<Vec<_>>().join(", "))
    }
}

fn millis(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(connect_ns: u64, round_trip_ns: u64) -> Way {
        Way { connect_ns: Some(connect_ns), round_trip_ns: Some(round_trip_ns), ..Way::default() }
    }

    #[test]
    fn a_near_server_is_near_by_what_was_measured() {
        assert_eq!(Way::default().contradicts_near(), None, "unknown");
        assert_eq!(way(1_000_000, 10_000_000).contradicts_near(), None);
        let far = way(2_400_000, 3_000_000).contradicts_near().unwrap();
        assert!(far.contains("a connection takes 2.40 ms to open (within a host or a rack: below 1ms)"), "{far}");
        let behind = way(60_000, 31_000_000).contradicts_near().unwrap();
        assert!(behind.contains("the shortest exchange takes 31.00 ms"), "{behind}");
    }

    #[test]
    fn a_way_is_told_in_one_line() {
        let plain = Way { http: Some("1.1"), ..way(50_000, 310_000) };
        assert_eq!(plain.to_string(), "HTTP/1.1, connect 0.05 ms, round trip 0.31 ms");
        assert_eq!(Way { http: Some("2"), tls_ns: Some(1), ..Way::default() }.to_string(), "HTTP/2, TLS 0.00 ms");
    }
}
