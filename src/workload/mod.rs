//! What to send: scenario, seed and request number become a request.
