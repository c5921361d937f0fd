//! Graph → results: scheduler, resume, events.
