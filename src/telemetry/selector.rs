//! Describes how a canonical series is selected from a page: a metric, labels that it must have, and a
//! factor to convert its unit.

use std::fmt;
use std::str::FromStr;

use super::text::{Labels, samples};

/// A metric of a page, as written in a plan: `metric`, `metric{label="value"}`, `metric{a="b"} * 0.001`.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// The metric's name; for a counter with or without `_total`, for a histogram without `_sum`.
    pub metric: String,
    /// Labels and their allowed values; a series without one of them does not match.
    pub labels: Vec<(String, Vec<String>)>,
    /// Factor that converts its values to the canonical unit.
    pub factor: f64,
}

impl Selector {
    /// Whether a series with these labels matches.
    pub(crate) fn takes(&self, labels: Labels) -> bool {
        self.labels.iter().all(|(name, allowed)| {
            // A missing label has an empty value, as in Prometheus.
            let value = labels.get(name).unwrap_or_default();
            allowed.iter().any(|allowed| *allowed == value)
        })
    }
}

/// The syntax of a selector, for error messages.
const FORM: &str = "write a metric as on its page, like `vllm:num_requests_running` or \
                    `DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"}`, followed by ` * 0.001` if its unit differs";

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Selector, String> {
        let wrong = |why: &str| format!("`{text}` is not a metric: {why}; {FORM}");
        let (series, factor) = match text.rsplit_once('*') {
            Some((series, factor)) if !factor.contains('}') => (series.trim(), Some(factor.trim())),
            _ => (text.trim(), None),
        };
        let factor =
            factor.map_or(Ok(1.0), |factor| factor.parse().map_err(|_| wrong("the factor is not a number")))?;
        if !f64::is_finite(factor) || factor == 0.0 {
            return Err(wrong("the factor is 0 or infinite"));
        }
        if series.is_empty() {
            return Err(wrong("the name is missing"));
        }
        if series.contains('\n') {
            return Err(wrong("it has several lines"));
        }
        // On a page, each series is followed by a value.
        let page = format!("{} 0", quoted_values(series));
        let mut found = samples(&page);
        match (found.next(), found.next()) {
            (Some(Ok(sample)), None) if sample.timestamp.is_none() => Ok(Selector {
                metric: sample.name.into_owned(),
                labels: sample
                    .labels
                    .iter()
                    .map(|(name, value)| (name.into_owned(), vec![value.into_owned()]))
                    .collect(),
                factor,
            }),
            (Some(Err(bad)), _) => Err(wrong(bad.problem)),
            _ => Err(wrong("it is followed by a value")),
        }
    }
}

/// Adds missing quotes to label values: `a{gpu=0}` becomes `a{gpu="0"}`.
fn quoted_values(series: &str) -> String {
    let Some((name, labels)) = series.split_once('{').filter(|(_, labels)| !labels.contains('"')) else {
        return series.to_owned();
    };
    let (labels, end) = labels.split_once('}').unwrap_or((labels, ""));
    let pairs = labels.split(',').map(|pair| match pair.split_once('=') {
        Some((name, value)) => format!("{}=\"{}\"", name.trim(), value.trim()),
        None => pair.to_owned(),
    });
    format!("{name}{{{}}}{end}", pairs.collect::<Vec<_>>().join(","))
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.metric)?;
        let labels = self.labels.iter().map(|(name, values)| format!("{name}={:?}", values.join("|")));
        let labels: Vec<String> = labels.collect();
        if !labels.is_empty() {
            write!(f, "{{{}}}", labels.join(","))?;
        }
        if self.factor == 1.0 { Ok(()) } else { write!(f, " * {}", self.factor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse().map(|selector: Selector| selector.to_string())
    }

    #[test]
    fn what_a_plan_may_write() {
        for (text, same) in [
            ("vllm:num_requests_running", "vllm:num_requests_running"),
            ("a{b=\"c\", d=\"e\"}", "a{b=\"c\",d=\"e\"}"),
            ("a{gpu=0}", "a{gpu=\"0\"}"),
            ("a{gpu=0,host=n1} * 0.001", "a{gpu=\"0\",host=\"n1\"} * 0.001"),
            ("a*2", "a * 2"),
            ("{\"my.metric\"}", "my.metric"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(same), "{text}");
        }
        for (text, why) in [
            ("", "the name is missing"),
            ("a b", "the value is not a number"),
            ("a 1", "it is followed by a value"),
            ("a{b", "a label has no value"),
            ("a * 0", "the factor is 0 or infinite"),
            ("a * x", "the factor is not a number"),
            ("a 1\nb", "it has several lines"),
        ] {
            assert!(read(text).is_err_and(|error| error.contains(why)), "{text}: {:?}", read(text));
        }
    }
}
