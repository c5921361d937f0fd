//! The GPUs of this machine, read if no exporter has a page of them. They are read by NVML (`nvml`),
//! or else by `nvidia-smi` (`nvidia_smi`), or else by AMD's tools (`amd`); `find` selects the first
//! tool that has a GPU. A reading becomes the same canonical series as a page (`device`), for the GPUs
//! assigned to the server (`choose`), and lists the processes on them (`sharing`). All of this runs on
//! a separate thread (`reader`), because a driver may hang.

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
