//! An OpenAI-compatible server with a timing model and faults. Shares no codec with the engine.
