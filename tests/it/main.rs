//! The one integration binary: everything through the built program, real processes, real sockets, real files.

mod architecture;
mod keepalive;
mod lab;
mod mock;
mod realserver;
mod smoke;
mod truth;
mod wire;
