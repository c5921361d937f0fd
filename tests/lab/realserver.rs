//! A real inference server, which is third-party code.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{root, wait_for};

/// Returns the script that starts the server on a port; it may be missing.
pub fn up() -> PathBuf {
    let named = std::env::var_os("SWEEPLINE_REALSERVER").map(PathBuf::from);
    named.unwrap_or_else(|| root().join("../shared/realserver/up.sh"))
}

/// The real server. It and all its descendants are killed on drop.
pub struct RealServer {
    child: Child,
    pub port: u16,
}

impl RealServer {
    /// Returns `None`, with a message, if the server is not installed.
    pub fn start(folder: &Path) -> Option<RealServer> {
        let up = up();
        if !up.is_file() {
            let required = std::env::var("SWEEPLINE_REQUIRE_REALSERVER").is_ok_and(|value| value == "1");
            assert!(!required, "SWEEPLINE_REQUIRE_REALSERVER is set, but {} is missing", up.display());
            eprintln!("skipped: {} is missing", up.display());
            return None;
        }
        Some(RealServer::start_with(&up, folder))
    }

    /// Starts the server with a script that takes a port.
    pub fn start_with(up: &Path, folder: &Path) -> RealServer {
        let complaints = folder.join("realserver.stderr");
        // Another process may take the free port first; the server then exits, and another port is tried.
        let started = (0..5).find_map(|_| RealServer::try_start(up, &complaints));
        started.unwrap_or_else(|| {
            panic!("the real server did not start: {}", std::fs::read_to_string(&complaints).unwrap_or_default())
        })
    }

    fn try_start(up: &Path, complaints: &Path) -> Option<RealServer> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let child = Command::new(up)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(complaints).unwrap())
            // The script has a separate process group, because on its first run it installs the
            // server using other processes.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut server = RealServer { child, port };
        let is_up = wait_for("the real server", || {
            let has_ended = server.child.try_wait().unwrap().is_some();
            let is_up = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            (has_ended || is_up).then_some(is_up && !has_ended)
        });
        is_up.then_some(server)
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}
