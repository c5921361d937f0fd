//! The cryptography of TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// Returns the cryptography of all TLS connections.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
