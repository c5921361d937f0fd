//! The mock through its socket, as its clients see it.

mod faults;
mod prefix;
mod protocol;
mod shapes;
mod timing;
mod tokenize;
