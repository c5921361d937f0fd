//! Tests of the formats, based on the examples and rules in their specifications, which each test
//! names.

use super::*;

fn all(page: &str) -> Vec<TextSample<'_>> {
    samples(page).map(|sample| sample.unwrap_or_else(|bad| panic!("{bad} of {page:?}"))).collect()
}

fn problem(page: &str) -> String {
    samples(page).find_map(Result::err).unwrap_or_else(|| panic!("{page:?} was read")).to_string()
}

fn labels(sample: &TextSample) -> Vec<(String, String)> {
    sample.labels.iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// The example at the end of "Text format details" on Prometheus' page, verbatim.
const PROMETHEUS: &str = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# A histogram, which has a pretty complex representation in the text format:
# HELP http_request_duration_seconds A histogram of the request duration.
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.05"} 24054
http_request_duration_seconds_bucket{le="+Inf"} 144320
http_request_duration_seconds_sum 53423
http_request_duration_seconds_count 144320

# Finally a summary, which has a complex representation, too:
rpc_duration_seconds{quantile="0.01"} 3102
rpc_duration_seconds_sum 1.7560473e+07
"#;

#[test]
fn the_example_of_prometheus_page() {
    let found = all(PROMETHEUS);
    assert_eq!(found.len(), 11);
    assert_eq!((found[0].value, found[0].timestamp), (1027.0, Some("1395066363000")));
    assert_eq!(found[1].labels.get("code").as_deref(), Some("400"));
    let escaped = [("path", "C:\\DIR\\FILE.TXT"), ("error", "Cannot find file:\n\"FILE.TXT\"")];
    assert_eq!(labels(&found[2]), escaped.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((&*found[3].name, found[3].value), ("metric_without_timestamp_and_labels", 12.47));
    assert_eq!((found[4].value, found[4].timestamp), (f64::INFINITY, Some("-3982045")));
    assert_eq!(found[6].labels.get("le").as_deref(), Some("+Inf"));
    assert_eq!(found[10].value, 17_560_473.0);
}

/// The examples in the sections "Exemplars" and "Overall Structure" of OpenMetrics 1.0.
const OPEN_METRICS: &str = "# TYPE foo histogram\n\
    # UNIT foo_seconds seconds\n\
    foo_bucket{le=\"0.1\"} 8 # {} 0.054\n\
    foo_bucket{le=\"1.0\"} 11 # {trace_id=\"KOO5S4vxi0o\"} 0.67\n\
    foo_bucket{le=\"10.0\"} 17 1520879607.789 # {trace_id=\"oHg5SJYRHA0\"} 9.8 1520879607.789\n\
    foo_sum 324789.3\n\
    foo_created  1520430000.123\n\
    # EOF\n";

#[test]
fn exemplars_and_the_end_of_open_metrics() {
    let found = all(OPEN_METRICS);
    assert_eq!(
        found.iter().map(|sample| sample.value).collect::<Vec<_>>(),
        [8.0, 11.0, 17.0, 324_789.3, 1_520_430_000.123]
    );
    assert_eq!(found[2].timestamp, Some("1520879607.789"));
    assert_eq!(found[1].labels.get("trace_id"), None, "an exemplar's labels are not the sample's");
    assert!(has_end(OPEN_METRICS) && has_end("a 1\r\n# EOF\r\n") && has_end("a 1\n# EOF"));
    assert!(!has_end(PROMETHEUS) && !has_end("# EOF\na 1\n") && !has_end(""));
    assert_eq!(problem("# EOF\na 1\n"), "line 2: unexpected text after `# EOF`");
}

#[test]
fn values_that_are_no_finite_numbers() {
    let found = all("a NaN\na +Inf\na -Inf\na 1e-3\na -0\n");
    assert!(found[0].value.is_nan() && found[1].value == f64::INFINITY && found[2].value == f64::NEG_INFINITY);
    assert_eq!((found[3].value, found[4].value), (0.001, 0.0));
}

#[test]
fn white_space_is_free_between_the_parts() {
    for line in ["a{b=\"c\"} 1", "a{b=\"c\",} 1", "a { b = \"c\" , } 1", "  a{ b=\"c\" }\t1  ", "a{b=\"c\"}1"] {
        let found = all(line);
        assert_eq!((&*found[0].name, found[0].value), ("a", 1.0), "{line}");
        assert_eq!(found[0].labels.get("b").as_deref(), Some("c"), "{line}");
    }
    assert!(all("a{} 1")[0].labels.iter().next().is_none());
}

#[test]
fn lines_end_as_they_like() {
    let [unix, dos] = ["a 1\nb{c=\"d\"} 2\n", "a 1\r\nb{c=\"d\"} 2\r\n"].map(all);
    assert_eq!(unix, dos);
    assert_eq!(all("\n\n# a comment\n#\n  # TYPE a gauge\na 1\nb{c=\"d\"} 2"), unix, "no line feed at the end");
    assert_eq!(all("").len() + all("\n\r\n\n").len(), 0);
}

#[test]
fn signs_inside_quotes_mean_nothing() {
    let found = all("a{b=\"}\",c=\"# {\",d=\",=\",e=\"\\\"}\",f=\"\\q\",g=\"é 字\"} 1 2\n");
    let values: Vec<String> = labels(&found[0]).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["}", "# {", ",=", "\"}", "\\q", "é 字"]);
    assert_eq!(found[0].labels.as_written(), "b=\"}\",c=\"# {\",d=\",=\",e=\"\\\"}\",f=\"\\q\",g=\"é 字\"");
}

#[test]
fn names_in_quotes_of_prometheus_3() {
    let found = all("{\"my.metric\", \"my.label\"=\"x\", b=\"y\"} 3\n{\"only\"} 4\n");
    assert_eq!((&*found[0].name, &*found[1].name), ("my.metric", "only"));
    assert_eq!(found[0].labels.get("my.label").as_deref(), Some("x"));
    assert_eq!(labels(&found[0]).len(), 2);
}

#[test]
fn what_is_in_neither_format_is_told_by_its_line() {
    for (line, wrong) in [
        ("<html>not found</html>", "the name is missing"),
        ("a", "the value is missing"),
        ("a ", "the value is missing"),
        ("a{b=\"c\"}", "the value is missing"),
        ("1a 1", "a name begins with a digit"),
        ("a-b 1", "invalid character in a name"),
        ("a{b=\"c\" 1", "labels are not separated by commas"),
        ("a{b=\"c\"", "the labels do not end"),
        ("a{b=\"c} 1", "a label's value does not end"),
        ("a{b=c} 1", "a label's value is not in quotes"),
        ("a{b} 1", "a label has no value"),
        ("a{=\"c\"} 1", "a label has no name"),
        ("a{b=\"c\"d=\"e\"} 1", "labels are not separated by commas"),
        ("{b=\"c\"} 1", "the name is missing"),
        ("a{\"b\"} 1", "it has two names"),
        ("a one", "the value is not a number"),
        ("a 1 later", "the timestamp is not a number"),
        ("a 1 2 3", "unexpected text after the timestamp"),
        ("a 1 # x", "an exemplar has no labels"),
    ] {
        assert_eq!(problem(&format!("ok 1\n{line}")), format!("line 2: {wrong}"), "{line}");
    }
    let rest: Vec<_> = samples("a one\nb 2\n").collect();
    assert!(rest[0].is_err() && rest[1].is_ok(), "lines after a bad line are still read");
}

proptest::proptest! {
    /// Text that is written according to the rules reads back unchanged, whatever its labels
    /// contain.
    #[test]
    fn any_label_reads_back(value in ".*", number in proptest::num::f64::NORMAL) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let page = format!("m{{l=\"{escaped}\"}} {number:e}\n");
        // A carriage return inside a label is an ordinary character; at the end of a line it would end
        // the line.
        let found: Vec<_> = samples(&page).collect();
        let found = found[0].as_ref().unwrap();
        proptest::prop_assert_eq!(found.labels.get("l").unwrap(), value);
        proptest::prop_assert_eq!(found.value, number);
    }

    /// Any text is read to its end without a panic, and the parser never returns more samples than the text
    /// has lines.
    #[test]
    fn any_text_is_read_to_its_end(page in "[a-z0-9{}\"=,#\\\\ \n\r+.]*") {
        proptest::prop_assert!(samples(&page).count() <= page.split('\n').count());
    }
}
