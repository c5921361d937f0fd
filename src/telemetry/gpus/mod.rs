//! The GPUs of this machine, read where no exporter has a page of them: by NVML (`nvml`), else by `nvidia-smi` (`nvidia_smi`), else by AMD's
//! tools (`amd`); the first that has one is found by `find`. A reading becomes the same canonical series as a page (`device`), of the GPUs that the server was given (`choose`), and
//! tells which processes are on them (`sharing`). All of it happens on a thread of its own (`reader`), for a driver may hang.

mod amd;
mod choose;
pub(crate) mod command;
mod device;
mod find;
mod nvidia_smi;
mod nvml;
mod reader;
mod sharing;
mod source;
mod wanted;

pub use choose::{Visible, Which};
pub(super) use reader::{Reader, open};
pub(super) use sharing::{Processes, Sharing};
pub use source::Tool;
pub use wanted::{IsOwn, Wanted};
