//! Determines when bytes arrived, from the timestamp that the kernel gives each segment on arrival. The time
//! is therefore correct even if this process reads the segment late.
//!
//! The engine determines arrival times in the same way, but with separate code, so that an error in either
//! implementation shows up as a difference between their results.

use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::timer::now;

/// The size of the buffer through which all connections read, in bytes.
const SCRATCH: usize = 64 << 10;
/// If reading both clocks takes at most this time, in nanoseconds, the two readings are treated as
/// simultaneous. An uninterrupted reading takes a tenth of this time.
const TOGETHER: u64 = 1_000;
/// The maximum difference between the clocks of two processors, in nanoseconds. A timestamp that is this
/// far in the future is still valid.
const SKEW: u64 = 20_000;
/// Maximum number of times that both clocks are read before the best reading is used.
const TRIES: usize = 8;

/// The source of an arrival's timestamp.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    /// The kernel, when the segment arrived.
    Kernel,
    /// This process, when its read returned.
    #[default]
    User,
}

/// When bytes arrived, and the source of this timestamp.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// When the bytes arrived, in nanoseconds on the monotonic clock.
    pub(super) at: u64,
    pub(super) by: By,
}

impl Arrival {
    /// Returns an arrival at the current instant, timestamped by this process.
    pub(super) fn now() -> Arrival {
        Arrival { at: now(), by: By::User }
    }
}

/// Asks the kernel to timestamp arriving data. Sockets that a listener accepts inherit this setting.
pub(super) fn ask_for_stamps(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
}

/// The buffer that all connections share for reading, so that idle connections, of which there may be ten
/// thousand, hold no buffers of their own.
pub(super) struct Reader {
    scratch: Box<[u8]>,
    /// Space for the kernel's timestamp.
    control: Vec<u8>,
    /// The server's start on the monotonic clock, in nanoseconds; nothing can arrive before it.
    start: u64,
    stamped: bool,
}

impl Reader {
    /// Creates a reader that uses the kernel's timestamps if `stamped` is true.
    pub(super) fn new(stamped: bool) -> Reader {
        Reader { scratch: vec![0; SCRATCH].into(), control: cmsg_space!(TimeSpec), start: now(), stamped }
    }

    /// Reads the available bytes without waiting; `last` is the arrival of the previous read. The timestamp
    /// is that of the newest segment in this read.
    pub(super) fn read(&mut self, stream: &TcpStream, last: Arrival) -> io::Result<(&[u8], Arrival)> {
        let Reader { scratch, control, start, stamped } = self;
        let mut got = None;
        let told = stream.try_io(Interest::READABLE, || {
            let (read, stamp) = if *stamped {
                receive(stream, scratch, control)?
            } else {
                (rustix::io::read(stream, &mut scratch[..])?, None)
            };
            got = Some((read, stamp));
            // A read that did not fill the buffer has emptied the socket. In this case, tokio's readiness
            // is cleared, so that the next read waits for data instead of returning at once.
            if (1..scratch.len()).contains(&read) { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        let Some((read, stamp)) = got else {
            return Err(told.err().unwrap_or_else(|| ErrorKind::WouldBlock.into()));
        };
        // The lower limit is the arrival in the previous read, not the time of that read, because a segment
        // of this read may have arrived before the previous read was over.
        let since = last.at.max(*start);
        let arrival = match stamp.and_then(|stamp| Clocks::read().monotonic_of(stamp, since)) {
            Some(at) => Arrival { at, by: By::Kernel },
            None => Arrival::now(),
        };
        Ok((&scratch[..read], arrival))
    }
}

/// Reads from the socket. Returns the number of bytes that were read, and the wall-clock time at which the
/// newest of them arrived, in nanoseconds, or `None` if the kernel did not record this time.
fn receive(stream: &TcpStream, bytes: &mut [u8], control: &mut [u8]) -> nix::Result<(usize, Option<i64>)> {
    let mut parts = [IoSliceMut::new(bytes)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec()),
        _ => None,
    });
    Ok((message.bytes, stamp))
}

/// The monotonic and the wall clock, read together.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    monotonic: u64,
    /// The wall clock minus the monotonic clock, in nanoseconds.
    wall_ahead: i64,
}

impl Clocks {
    /// Reads both clocks, and reads them again if the thread was interrupted in between.
    fn read() -> Clocks {
        let mut best = (u64::MAX, Clocks { monotonic: 0, wall_ahead: 0 });
        for _ in 0..TRIES {
            let before = now();
            let wall = clock_gettime(ClockId::Realtime);
            let monotonic = now();
            let took = monotonic - before;
            if took < best.0 {
                let wall = wall.tv_sec * 1_000_000_000 + wall.tv_nsec;
                best = (took, Clocks { monotonic, wall_ahead: wall - (before + took / 2) as i64 });
            }
            if took <= TOGETHER {
                break;
            }
        }
        best.1
    }

    /// Converts a wall-clock timestamp to the monotonic clock; `None` if the timestamp is in the future or
    /// before `since`, which happens if the wall clock was set between the arrival and now.
    fn monotonic_of(self, stamp: i64, since: u64) -> Option<u64> {
        let at = u64::try_from(stamp - self.wall_ahead).ok()?;
        (since <= at + SKEW && at <= self.monotonic + SKEW).then(|| at.clamp(since, self.monotonic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn stamps_of_a_clock_that_was_set_are_not_believed() {
        let clocks = Clocks { monotonic: 500_000_000_000, wall_ahead: 1_700_000_000 * SECOND };
        let since = 400_000_000_000;
        let of = |stamp: i64| clocks.monotonic_of(1_700_000_000 * SECOND + stamp, since);
        assert_eq!(of(450 * SECOND), Some(450_000_000_000));
        assert_eq!(of(400 * SECOND), Some(since));
        assert_eq!(of(500 * SECOND), Some(clocks.monotonic));
        // A difference between the clocks of two processors does not count as a change of the clock.
        assert_eq!((of(500 * SECOND + 900), of(400 * SECOND - 900)), (Some(clocks.monotonic), Some(since)));
        // If the clock was set back by an hour after the arrival, the timestamp is in the future. If it
        // was set forward, the timestamp is far in the past.
        assert_eq!(of((450 + 3_600) * SECOND), None);
        assert_eq!(of((450 - 3_600) * SECOND), None);
        assert_eq!(of(399 * SECOND), None);
        assert_eq!(clocks.monotonic_of(0, 0), None);
    }

    #[test]
    fn a_stamp_of_the_wall_clock_is_an_instant_of_the_monotonic_one() {
        let before = now();
        let wall = clock_gettime(ClockId::Realtime);
        let clocks = Clocks::read();
        let at = clocks.monotonic_of(wall.tv_sec * SECOND + wall.tv_nsec, before).unwrap();
        assert!((before..=clocks.monotonic).contains(&at), "{before} {at} {clocks:?}");
    }
}
