//! The one integration binary: everything through the built program, real processes, real sockets, real files.

mod architecture;
mod commands;
mod identity;
mod lab;
mod mock;
mod smoke;
mod terminal;
