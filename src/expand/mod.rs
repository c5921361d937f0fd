//! Plan → RunSpecs: matrix, order, identity.
