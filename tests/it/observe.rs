//! Tests that the samples of a run contain every request, whatever the machine does meanwhile.

use std::collections::BTreeMap;

use sweepline::rows::{Sample, read_samples};

use lab::Lab;
use lab::mock::Mock;
use lab::plans::plan;

#[test]
fn samples_contain_every_request() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let lab = Lab::real_time();
    let phases = "fill: 0s, stabilize: 0s, measure: 1500ms, drain: 60s";
    let matrix = "endpoint: [a], model: [m], scenario: [short], batch_size: [2]";
    let rest = format!("phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix} }} }} }}\n");
    lab.write("plan.yaml", &plan(&[("a", mock.port)], &rest));
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let mut series: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for sample in read_samples(&run.dir.join("samples.parquet")).unwrap() {
        series.entry(sample.name.clone()).or_default().push(sample);
    }
    for name in ["in_flight", "cpu_seconds_total", "writer_backlog_batches", "thread_cpu_seconds_total.io"] {
        assert!(series.contains_key(name), "{name} among {:?}", series.keys());
    }
    for (name, samples) in &series {
        assert!(samples.is_sorted_by_key(|sample| sample.at_ns), "{name}");
        assert!(!name.contains("_total") || samples.is_sorted_by(|a, b| a.value <= b.value), "{name} never decreases");
    }
    // Each sent request is counted in one octave of one second.
    let octaves = series.iter().filter(|(name, _)| name.starts_with("lateness_count.below_"));
    let counted: f64 = octaves.flat_map(|(_, samples)| samples).map(|sample| sample.value).sum();
    let sent = run.records.iter().filter(|record| record.row.sent_ns.is_some()).count();
    assert_eq!(counted as usize, sent);
    let ended = series["requests_ended_total"].last().unwrap().value;
    assert_eq!(ended as usize, run.records.len(), "the last sample is taken after the last request");
}
