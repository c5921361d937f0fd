//! The one integration binary: everything through the built program, real processes, real sockets, real files.

mod architecture;
mod kill;
mod lab;
mod mock;
mod readers;
mod smoke;
mod store_errors;
mod sweeps;
