//! The one integration binary: everything through the built program, real processes, real sockets, real files.

mod architecture;
mod commands;
mod connections;
mod identity;
mod keepalive;
mod kill;
mod lab;
mod memory;
mod mock;
mod outcomes;
mod readers;
mod readme;
mod realserver;
mod rough;
mod secrets;
mod server;
mod shapes;
mod smoke;
mod store_errors;
mod sweeps;
mod terminal;
mod truth;
mod verdicts;
mod wire;
