//! Tests `engine: { threads }`: with several I/O threads, the table of requests is the same.

use std::collections::{BTreeMap, BTreeSet};

use lab::Lab;
use lab::mock::Mock;

/// Runs a closed and an open loop with this many threads and without nonces, which differ between
/// attempts. Returns digest and prompt of each request by run and number.
fn table(threads: u32) -> BTreeMap<(String, u64), (Option<String>, Option<u32>)> {
    let mut mock = Mock::start(&["--slots", "64", "--ttft", "2ms", "--itl", "1ms", "--seed", "4"]);
    let lab = Lab::new();
    let plan = format!(
        "sweepline: 1\nname: threads\nseed: 9\nnonce: off\nengine: {{ threads: {threads} }}\n\
         endpoints: {{ a: {{ url: http://127.0.0.1:{}/v1, engine: mock }} }}\nmodels: {{ m: {{ id: tiny }} }}\n\
         scenarios: {{ s: {{ base: B1, output_tokens: 8 }} }}\n\
         phases: {{ fill: 100ms, stabilize: 100ms, measure: 500ms, drain: 30s }}\nsweeps:\n  \
         closed: {{ matrix: {{ endpoint: [a], model: [m], scenario: [s], batch_size: [7] }} }}\n  \
         open: {{ matrix: {{ endpoint: [a], model: [m], scenario: [s], qps: [60] }} }}\n",
        mock.port
    );
    lab.write("plan.yaml", &plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    // Exit code 3 means that a busy machine made runs invalid, which is not tested here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    mock.terminate();
    let sent: BTreeSet<String> =
        mock.log_now().iter().filter_map(|l| Some(l["request_id"].as_str()?.to_owned())).collect();
    let mut table = BTreeMap::new();
    for (name, run) in lab.runs() {
        assert_eq!(run.json["facts"]["client_threads"], threads);
        let attempt = &run.json["attempt"];
        for (place, row) in run.records.iter().map(|record| &record.row).enumerate() {
            let was_sent = sent.contains(&format!("{}-{attempt}-{}", &name, row.request));
            assert_eq!(was_sent, row.sent_ns.is_some(), "request {} of {name}: {row:?}", row.request);
            assert!(table.insert((name.clone(), row.request), (None, None)).is_none(), "row {place} twice");
            if row.outcome.is_ok() {
                table.insert((name.clone(), row.request), (row.text_digest.clone(), row.prompt_tokens));
            }
        }
        let numbers: Vec<u64> =
            run.records.iter().map(|record| record.row.request).collect::<BTreeSet<_>>().into_iter().collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "numbers without a gap: {numbers:?}");
    }
    table
}

#[test]
fn threads_change_nothing_but_who_does_the_work() {
    let (one, three) = (table(1), table(3));
    let runs = |table: &BTreeMap<(String, u64), _>| table.keys().map(|(run, _)| run.clone()).collect::<BTreeSet<_>>();
    assert_eq!(runs(&one), runs(&three), "the same runs, whatever the number of threads");
    assert_eq!(runs(&one).len(), 2);
    let both = one.iter().filter_map(|(key, here)| Some((key, here, three.get(key)?)));
    let both: Vec<_> = both.filter(|(_, here, there)| here.0.is_some() && there.0.is_some()).collect();
    assert!(both.len() > 60, "{} requests succeeded in both", both.len());
    for (key, here, there) in both {
        assert_eq!(here, there, "request {key:?} has the same prompt and the same response");
    }
}
