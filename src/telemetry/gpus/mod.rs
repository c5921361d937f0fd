//! Reads the GPUs of this machine if no exporter has a page for them. `find` selects the first tool that
//! lists a GPU: NVML (`nvml`), `nvidia-smi` (`nvidia_smi`), or one of AMD's tools (`amd`). A reading covers
//! the GPUs assigned to the server (`choose`). It contains the same canonical series as a page (`device`)
//! and lists the processes on the GPUs (`sharing`). All of this runs on a separate thread (`reader`),
//! because a driver may hang.

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
