//! The one integration binary: everything through the built program, real processes, real sockets, real files.

mod architecture;
mod kill;
mod lab;
mod memory;
mod mock;
mod outcomes;
mod realserver;
mod secrets;
mod server;
mod shapes;
mod smoke;
mod sweeps;
mod verdicts;
mod wire;
