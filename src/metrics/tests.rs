use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn keys_are_unique_and_entries_are_whole() {
    let keys: BTreeSet<&str> = METRICS.iter().map(|metric| metric.key).collect();
    assert_eq!(keys.len(), METRICS.len());
    for metric in &METRICS {
        assert!(!metric.title.is_empty() && !metric.definition.is_empty(), "{}", metric.key);
        assert_eq!(metric.null_when.is_empty(), metric.kind == Kind::Count, "{}", metric.key);
        assert_eq!(find(metric.key), Some(metric));
    }
}

#[test]
fn single_metrics_come_before_distributions() {
    let first = METRICS.iter().position(|metric| metric.kind.is_distribution()).expect("a distribution");
    assert!(METRICS[first..].iter().all(|metric| metric.kind.is_distribution()));
}

#[test]
fn shares_and_counts_are_averaged_as_they_are() {
    for metric in &METRICS {
        let is_plain = matches!(metric.unit, Unit::Share | Unit::Requests)
            || ["lateness", "connecting", "cap_wait"].contains(&metric.key);
        assert_eq!(metric.scale == Scale::Plain, is_plain, "{}", metric.key);
    }
}

#[test]
fn rates_face_upwards_and_times_downwards() {
    let rates: Vec<&str> = METRICS.iter().filter(|metric| metric.is_rate()).map(|metric| metric.key).collect();
    assert_eq!(rates, ["user_throughput", "generation_throughput"]);
    let is_time = |metric: &&Metric| metric.unit == Unit::Millis;
    assert!(METRICS.iter().filter(is_time).all(|metric| metric.better == Better::Lower));
}

/// Returns the names in backticks in the list item that begins with these words.
fn listed(page: &str, item: &str) -> Vec<String> {
    let from = page.find(item).unwrap_or_else(|| panic!("docs/METRICS.md does not list `{item}`"));
    let item = &page[from..];
    let end = [". ", ".\n"].iter().filter_map(|end| item.find(end)).min().expect("the list ends");
    item[..end].split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_lists_of_the_page_are_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let page = std::fs::read_to_string(file).expect("the page");
    let keys = |wanted: bool| -> Vec<&str> {
        METRICS.iter().filter(|metric| metric.kind.is_distribution() == wanted).map(|metric| metric.key).collect()
    };
    assert_eq!(listed(&page, "- One number for each run:"), keys(false));
    assert_eq!(listed(&page, "- A distribution over requests:"), keys(true));
}
