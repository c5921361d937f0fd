//! The GPUs of the machine that sweepline runs on, as `nvidia-smi` lists them. They belong to the server
//! only if it runs on the same machine.

use std::sync::OnceLock;
use std::time::Duration;

use crate::telemetry::gpus::command::output;
use crate::units::text::is_unseen;

/// Time limit for `nvidia-smi`: a driver that hangs must not delay a sweep.
const LONGEST: Duration = Duration::from_secs(2);
/// The maximum number of GPUs that are recorded.
const MOST_GPUS: usize = 64;

/// GPUs and the version of their driver; empty without `nvidia-smi`, or if that does not respond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gpus {
    /// Name and memory of each GPU.
    pub names: Vec<String>,
    /// The driver's version.
    pub driver: Option<String>,
}

/// Returns the GPUs of this machine; read once per process.
pub fn gpus() -> &'static Gpus {
    static HERE: OnceLock<Gpus> = OnceLock::new();
    HERE.get_or_init(|| ask().map(|text| read(&text)).unwrap_or_default())
}

fn ask() -> Option<String> {
    output("nvidia-smi", &["--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], LONGEST).ok()
}

/// Parses lines like `NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB`.
fn read(text: &str) -> Gpus {
    let clean = |part: &str| part.chars().filter(|c| !is_unseen(*c)).take(100).collect::<String>().trim().to_owned();
    let mut gpus = Gpus::default();
    for line in text.lines().take(MOST_GPUS) {
        let parts: Vec<String> = line.split(',').map(clean).collect();
        let [name, driver, memory] = parts.as_slice() else { continue };
        gpus.names.push(format!("{name}, {memory}"));
        gpus.driver.get_or_insert_with(|| driver.clone());
    }
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_gpus_are_read_and_others_are_not() {
        let text = "NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB\nNVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB\n\
                    No devices were found\n";
        let gpus = read(text);
        assert_eq!(gpus.names, ["NVIDIA H100 80GB HBM3, 81559 MiB", "NVIDIA H100 80GB HBM3, 81559 MiB"]);
        assert_eq!(gpus.driver.as_deref(), Some("550.54.15"));
        assert_eq!(
            read("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"),
            Gpus::default()
        );
    }
}
