//! Where the server of an endpoint runs, as far as the plan shows this.

use std::net::IpAddr;

use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::local_gpus::GpuSource;

/// The location of a server, relative to sweepline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// On this machine.
    Here,
    /// At a local address, which may forward to any machine.
    Unsaid,
    /// Not on this machine or not on its GPUs, with the reason.
    Elsewhere(&'static str),
}

/// Programs that start a server on another machine.
const REMOTE: [&str; 4] = ["ssh", "kubectl", "srun", "sbatch"];

/// Whether a host's name or address always refers to this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether the description of a network states that client and server are on the same host.
pub fn is_one_host(network: &str) -> bool {
    says(network, &["loopback", "same host", "one host"])
}

/// Whether the description of a network states that a local address leads to another machine.
pub fn leads_elsewhere(network: &str) -> bool {
    says(network, &["tunnel", "forward", "proxy"])
}

fn says(network: &str, words: &[&str]) -> bool {
    let network = network.to_lowercase();
    words.iter().any(|word| network.contains(word))
}

impl Endpoint {
    /// The name by which workers on several machines recognize that they share the endpoint's server, so that
    /// they take turns: the `resource`, or else scheme, host and port of the `url`. `None` if each machine has
    /// its own server: a launched server, an embedded mock, or a server at a loopback address or Unix socket. If
    /// `hardware.network` states that a loopback address leads to another machine, only `resource` can name
    /// the server.
    pub fn shared_server(&self) -> Option<String> {
        let url = self.url.as_deref().filter(|_| self.is_served_elsewhere())?;
        let url = reqwest::Url::parse(url).ok()?;
        let is_local = self.socket.is_some() || url.host_str().is_some_and(is_loopback);
        let network = self.hardware.as_ref().and_then(|hardware| hardware.network.as_deref()).unwrap_or_default();
        match is_local {
            true => self.resource.clone().filter(|_| leads_elsewhere(network)),
            false => Some(self.resource.clone().unwrap_or_else(|| url.origin().ascii_serialization())),
        }
    }

    /// The location of the endpoint's server.
    pub fn site(&self) -> Site {
        if self.is_embedded() {
            return Site::Elsewhere("the embedded mock uses no GPU");
        }
        let network = self.hardware.as_ref().and_then(|hardware| hardware.network.as_deref()).unwrap_or_default();
        let host = self
            .url
            .as_deref()
            .filter(|_| self.socket.is_none())
            .map(|url| reqwest::Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned())));
        if host.is_some_and(|host| !host.is_some_and(|host| is_loopback(&host))) {
            return Site::Elsewhere("its address is not a loopback address");
        }
        if leads_elsewhere(network) {
            return Site::Elsewhere("`hardware.network` states that its address leads to another machine");
        }
        let program = self.launch.as_ref().and_then(|launch| launch.command.first());
        let program = program.and_then(|program| program.rsplit('/').next());
        match program {
            Some(program) if REMOTE.contains(&program) => {
                Site::Elsewhere("the program of `launch` starts it on another machine")
            }
            Some(_) => Site::Here,
            None if is_one_host(network) => Site::Here,
            None => Site::Unsaid,
        }
    }

    /// The tool that reads the GPUs of this machine during runs, as set by the plan; by default, any
    /// available tool if the server is known to run on this machine. `None` if no GPUs are read.
    pub fn gpu_source(&self) -> Option<GpuSource> {
        let written = self.telemetry.as_ref()?.gpus.as_ref();
        let source = match (written, self.site()) {
            (_, Site::Elsewhere(_)) | (None, Site::Unsaid) => GpuSource::Off,
            (Some(gpus), _) => gpus.source.unwrap_or(GpuSource::Auto),
            (None, Site::Here) => GpuSource::Auto,
        };
        (source != GpuSource::Off).then_some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(json: serde_json::Value) -> Endpoint {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_server_is_here_where_the_plan_shows_it() {
        let at = |url: &str, network: &str| {
            endpoint(serde_json::json!({ "engine": "vllm", "url": url, "hardware": { "network": network } })).site()
        };
        assert_eq!(at("http://127.0.0.1:8000/v1", "25GbE"), Site::Unsaid);
        assert_eq!(at("http://[::1]:8000/v1", "loopback"), Site::Here);
        assert!(matches!(at("http://localhost:8000/v1", "ssh tunnel to node-a"), Site::Elsewhere(_)));
        assert!(matches!(at("http://gpu1:8000/v1", "loopback"), Site::Elsewhere(_)));
        let launched = |program: &str| {
            let launch = serde_json::json!({ "command": [program, "serve"], "port": "auto" });
            endpoint(serde_json::json!({ "engine": "vllm", "launch": launch })).site()
        };
        assert_eq!(launched("vllm"), Site::Here);
        assert!(matches!(launched("/usr/bin/ssh"), Site::Elsewhere(_)));
        assert!(matches!(endpoint(serde_json::json!({ "engine": "mock" })).site(), Site::Elsewhere(_)));
    }

    #[test]
    fn gpus_are_read_where_the_plan_asks_or_the_server_is_here() {
        let source = |network: &str, gpus: serde_json::Value| {
            let telemetry = if gpus.is_null() { serde_json::json!({}) } else { serde_json::json!({ "gpus": gpus }) };
            endpoint(serde_json::json!({
                "engine": "vllm", "url": "http://127.0.0.1:8000/v1", "hardware": { "network": network }, "telemetry": telemetry
            }))
            .gpu_source()
        };
        assert_eq!(source("loopback", serde_json::Value::Null), Some(GpuSource::Auto));
        assert_eq!(source("", serde_json::Value::Null), None);
        assert_eq!(source("", serde_json::json!({ "devices": 0 })), Some(GpuSource::Auto));
        assert_eq!(source("", serde_json::json!({ "source": "nvidia-smi" })), Some(GpuSource::NvidiaSmi));
        assert_eq!(source("loopback", serde_json::json!({ "source": "off" })), None);
        assert_eq!(source("port-forward", serde_json::json!({ "source": "nvml" })), None);
    }
}
