//! Alternative keys for values of a plan.

/// Alternative names of axes, each with the primary name.
pub(crate) const ALIASES: [(&str, &str); 3] =
    [("concurrency", "batch_size"), ("request_rate", "qps"), ("max_tokens", "output_tokens")];

/// The alternative name of the axis with the primary name `key`; `None` if the axis has only one name.
pub(crate) fn alias(key: &str) -> Option<&'static str> {
    crate::plan::text::alias::ALIASES.iter().find(|(_, first)| *first == key).map(|(alias, _)| *alias)
}
