//! One run: schedule, executor, HTTP client, SSE, recorder.
