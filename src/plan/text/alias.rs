//! Other keys under which values of a plan may be written.

/// Other names of axes, each with its first name.
pub(crate) const ALIASES: [(&str, &str); 3] =
    [("concurrency", "batch_size"), ("request_rate", "qps"), ("max_tokens", "output_tokens")];

/// Another key under which a value may be written.
pub(crate) fn alias(key: &str) -> Option<&'static str> {
    crate::plan::text::alias::ALIASES.iter().find(|(_, first)| *first == key).map(|(alias, _)| *alias)
}
