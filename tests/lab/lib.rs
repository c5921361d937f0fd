//! What the tests of sweepline share: the built program in a folder of its own, servers that misbehave,
//! clients and proxies. Nothing here shares code with the program, except the readers of its rows.

pub mod browser;
pub mod calibrations;
pub mod choices;
pub mod exact_prompts;
pub mod forms;
pub mod front;
pub mod hostile;
pub mod http2_server;
pub mod http_proxy;
pub mod judged;
pub mod measured;
pub mod mock;
pub mod pages;
pub mod plans;
pub mod realserver;
pub mod recorder;
pub mod report;
pub mod reserved;
pub mod s3;
pub mod server;
pub mod sweeps;
pub mod tmux;
pub mod wire;
pub mod wire_and_rows;
pub mod workbooks;
mod workspace;

pub use workspace::*;

// `measured_tests!` names it from other crates.
pub use inventory;
