//! Writes the text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::Write;

/// The type of a family of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Kind {
    /// A counter, which only increases.
    Counter,
    /// A gauge, which rises and falls.
    Gauge,
    /// A summary, with quantiles over the last seconds, and with count and sum since the command began.
    Summary,
}

/// The text for a scrape while it is built.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Starts a family. All samples that are added before the next family starts belong to it.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind: &str = kind.into();
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {}\n# TYPE {name} {kind}\n", escaped(help, false));
    }

    /// Adds a sample to the current family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Returns the whole text.
    pub(super) fn text(self) -> String {
        self.0
    }
}

fn escaped(text: &str, with_quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if with_quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = Exposition::default();
        text.family("a_total", Kind::Counter, "One \\ two\nthree.");
        text.sample("a_total", &[("x", "say \"hi\"\\\n")], 3.0);
        text.sample("a_total", &[], 0.25);
        let expected = "# HELP a_total One \\\\ two\\nthree.\n# TYPE a_total counter\n\
                        a_total{x=\"say \\\"hi\\\"\\\\\\n\"} 3\na_total 0.25\n";
        assert_eq!(text.text(), expected);
    }
}
