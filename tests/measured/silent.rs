//! Tests servers that accept a connection and then say nothing, or do not finish. The program waits ten
//! seconds for them.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use lab::{Ended, Lab};

fn a_server_that_says_nothing_is_not_waited_for_long() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}/v1", silent.local_addr().unwrap());
    let url = format!("url: '{address}', engine: vllm, ready: {{ within: 0s }}");
    let lab = Lab::new();
    lab.write("plan.yaml", &lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url));
    let start = Instant::now();
    let running = lab.start(&["run", "plan.yaml"]);
    let ended = running.end();
    // Without the limit it would take ten minutes; this bound is far from both values.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(ended.code, Some(6), "{}", ended.stderr);
    for said in [
        format!("demo: waiting for {address} to respond"),
        format!("demo: {address} did not respond to /models within 10s; wait until it has loaded its model"),
    ] {
        assert!(ended.stderr.contains(&said), "{said}\n{}", ended.stderr);
    }
}

fn a_key_that_the_address_of_a_silent_server_repeats_is_not_printed() {
    const KEY: &str = "abcd-efgh-ijkl";
    let lab = Lab::new();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!(
        "url: 'http://127.0.0.1:{port}/{KEY}', engine: vllm, ready: {{ within: 0s }}, api_key: {{ secret: env:SWEEP_KEY }}"
    );
    let plan = lab::sweeps::PLAN.replace("engine: mock, mock: { ttft: 2ms, itl: 1ms, slots: 4 }", &url);
    lab.write("plan.yaml", &plan);
    for args in [&["probe", "plan.yaml"][..], &["run", "plan.yaml", "-v"]] {
        let ended = Ended::from(lab.command(args).env("SWEEP_KEY", KEY).output().unwrap());
        assert_ne!(ended.code, Some(0), "{}", ended.stderr);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains(KEY), "{args:?}\n{said}");
    }
}

lab::measured_tests![
    a_server_that_says_nothing_is_not_waited_for_long,
    a_key_that_the_address_of_a_silent_server_repeats_is_not_printed,
];
