//! The machine that sweepline runs on, which is part of every run's environment.

use crate::rows::{Environment, Fingerprint};

/// Returns what is known about this machine, without facts about a server.
pub fn client_environment() -> Environment {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Environment {
        host: None,
        server: None,
        models: Vec::new(),
        connect_ns: None,
        tls_ns: None,
        round_trip_ns: None,
        fingerprint: Fingerprint::default(),
        sweepline: env!("CARGO_PKG_VERSION").to_owned(),
        client_host: text(system.nodename()),
        client_os: format!("{} {} {}", text(system.sysname()), text(system.release()), text(system.machine())),
        client_cpu: processor(),
        server_start: None,
        client_cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        client_gpus: Vec::new(),
        client_gpu_driver: None,
    }
}

/// Returns the name of this machine.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the processor's name, if the platform reports it.
fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
