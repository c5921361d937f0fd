//! Reads the kernel's receive time of the data on a socket (`SO_TIMESTAMPNS`, see socket(7)), which is
//! correct even if our own read is milliseconds late. The kernel's stamps are wall-clock times. To convert
//! them to the run's clock, both clocks are read right after the data.
//!
//! The stamp of a read is that of the newest TCP segment in the read's data.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

use super::clock::{monotonic, wall};

/// Asks the kernel to stamp the data that arrives on `socket`. If the kernel cannot do that, reads have no
/// stamp.
pub(crate) fn enable(socket: &impl std::os::fd::AsFd) {
    // Not every kind of socket and platform supports this. Without a kernel stamp, the time of our own read
    // is used.
    let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
}

/// Keeps kernel stamps enabled as long as the process lives. The kernel starts stamping a moment after
/// the first socket requests stamps, and stops when the last of these sockets is gone.
pub(crate) fn keep_enabled() {
    static ASKING: OnceLock<Option<UdpSocket>> = OnceLock::new();
    ASKING.get_or_init(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        enable(&socket);
        Some(socket)
    });
}

/// Room for the one requested control message (`cmsghdr` and a `timespec`), aligned as the kernel requires.
type Control = [u64; 8];

/// Reads from `socket` into `into` without waiting. Returns the number of bytes, and the kernel's stamp as a
/// wall-clock time in nanoseconds (`None` without a stamp). Zero bytes mean that the other side has closed
/// the connection.
#[expect(unsafe_code, reason = "no safe call reads into uninitialized memory and returns control messages")]
pub(crate) fn receive(socket: BorrowedFd<'_>, into: &mut [MaybeUninit<u8>]) -> io::Result<(usize, Option<i64>)> {
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control: Control = [0; 8];
    // SAFETY: a msghdr of zeros is valid; it has no address and no buffers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header points to `part`, which describes `into`, and to `control`; all of them outlive the
    // call, and the kernel does not write beyond the given lengths.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    Ok((read, stamp(&message)))
}

#[expect(unsafe_code, reason = "control messages are walked by the macros of the C library")]
fn stamp(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel has filled in the header, its control buffer is alive, and msg_controllen is the
    // length of its messages; CMSG_FIRSTHDR returns null if there is none.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if first.cmsg_level != libc::SOL_SOCKET || first.cmsg_type != libc::SCM_TIMESTAMPNS {
        return None;
    }
    // SAFETY: a message of this type carries a timespec.
    let time = unsafe { libc::CMSG_DATA(first).cast::<libc::timespec>().read_unaligned() };
    Some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

thread_local! {
    /// Wall clock minus monotonic clock, in nanoseconds, as last read by this thread.
    static OFFSET: Cell<i64> = const { Cell::new(0) };
}

/// Maximum plausible change of the difference between the clocks from one reading to the next, in
/// nanoseconds. After a larger change, the clocks are read again. The limit is more than NTP adjusts a
/// clock between two readings, and less than any error that matters.
const MOST_DRIFT: i64 = 2_000;
/// Number of times that the clocks are read; the readings that lie closest together are used.
const TRIES: usize = 8;

/// The monotonic clock and the wall clock, read together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Time of the monotonic clock, in nanoseconds.
    pub monotonic: u64,
    /// Time of the wall clock at the same moment, in nanoseconds.
    pub wall: i64,
}

impl Now {
    /// Reads both clocks. If the thread was preempted between the two readings, the clocks are read again,
    /// because the pause would otherwise appear as a difference between the clocks.
    pub(crate) fn read() -> Now {
        let (monotonic, wall) = (monotonic(), wall());
        let offset = wall - monotonic as i64;
        let offset = match (offset - OFFSET.get()).abs() <= MOST_DRIFT {
            true => offset,
            false => Now::distance(),
        };
        OFFSET.set(offset);
        Now { monotonic, wall: monotonic as i64 + offset }
    }

    /// Returns the wall clock minus the monotonic clock, in nanoseconds. Uses the two readings of the
    /// monotonic clock that most closely enclose a reading of the wall clock.
    fn distance() -> i64 {
        let around = |_| {
            let (before, wall, after) = (monotonic(), wall(), monotonic());
            (after - before, wall - (before + (after - before) / 2) as i64)
        };
        let closest = (0..TRIES).map(around).min_by_key(|(width, _)| *width);
        closest.expect("there is at least one attempt").1
    }
}

/// Returns when bytes arrived, on the monotonic clock, and how long they waited in the kernel, in
/// nanoseconds. The delay is `None` if the kernel's stamp is missing or wrong; the instant is then the time
/// of our own read.
///
/// `earliest` is an instant before which the bytes cannot have arrived. A stamp before that instant, or in
/// the future, shows that the wall clock was set in the meantime.
pub(crate) fn arrival(kernel: Option<i64>, now: Now, earliest: u64) -> (u64, Option<u64>) {
    /// Tolerance, in nanoseconds, for comparing the kernel's stamp with our clocks, because they may be read
    /// on different processors.
    const SKEW: u64 = 50_000;
    let delay = kernel.and_then(|kernel| u64::try_from((now.wall - kernel).max(-(SKEW as i64)).max(0)).ok());
    let in_future = kernel.is_some_and(|kernel| kernel - now.wall > SKEW as i64);
    match delay {
        Some(delay) if !in_future && now.monotonic.saturating_sub(delay) + SKEW >= earliest => {
            let at = now.monotonic.saturating_sub(delay).max(earliest);
            (at, Some(now.monotonic.saturating_sub(at)))
        }
        _ => (now.monotonic, None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    const WALL: i64 = 1_700_000_000_000_000_000;

    fn now(monotonic: u64) -> Now {
        Now { monotonic, wall: WALL + monotonic as i64 }
    }

    #[test]
    fn the_kernels_time_is_taken_over_to_the_runs_clock() {
        let kernel = |monotonic: i64| Some(WALL + monotonic);
        assert_eq!(arrival(kernel(4_000_000), now(5_000_000), 3_000_000), (4_000_000, Some(1_000_000)));
        assert_eq!(arrival(None, now(5_000_000), 0), (5_000_000, None), "no stamp: our own clock");
        assert_eq!(arrival(kernel(5_000_010), now(5_000_000), 0), (5_000_000, Some(0)), "clocks of two processors");
    }

    #[test]
    fn a_wall_clock_that_was_set_is_not_believed() {
        let (back, ahead) = (Some(WALL + 5_000_000 - 3_600_000_000_000), Some(WALL + 5_000_000 + 200_000_000));
        assert_eq!(arrival(back, now(5_000_000), 3_000_000), (5_000_000, None), "set ahead after the bytes arrived");
        assert_eq!(arrival(ahead, now(5_000_000), 3_000_000), (5_000_000, None), "set back after the bytes arrived");
    }

    #[test]
    fn a_socket_says_when_its_bytes_came() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (reader, _) = listener.accept().unwrap();
        enable(&reader);
        let mut room = [MaybeUninit::uninit(); 64];
        // The kernel starts timestamping a moment after the first socket requests it; on a busy machine
        // this takes a while.
        let stamped = (0..10_000).find_map(|tried| {
            std::thread::sleep(std::time::Duration::from_millis(u64::from(tried > 100)));
            let before = Now::read().wall;
            writer.write_all(b"hello").unwrap();
            let mut wait = [nix::libc::pollfd { fd: reader.as_raw_fd(), events: nix::libc::POLLIN, revents: 0 }];
            // SAFETY: the array contains one descriptor, and the descriptor is open.
            #[expect(unsafe_code, reason = "a test that waits for one descriptor")]
            unsafe {
                nix::libc::poll(wait.as_mut_ptr(), 1, -1)
            };
            let (read, stamp) = receive(reader.as_fd(), &mut room).unwrap();
            assert_eq!(read, 5);
            stamp.map(|stamp| (before, stamp, Now::read().wall))
        });
        if cfg!(target_os = "linux") {
            let (before, stamp, after) = stamped.expect("Linux stamps the data that TCP receives");
            assert!(before - 1_000_000 <= stamp && stamp <= after + 1_000_000, "{before} {stamp} {after}");
        }
        let empty = receive(reader.as_fd(), &mut room).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        drop(writer);
        assert_eq!(receive(reader.as_fd(), &mut room).unwrap().0, 0);
    }
}
