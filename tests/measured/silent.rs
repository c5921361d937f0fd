//! Tests servers that accept a connection and then say nothing, or do not finish. The program waits ten
//! seconds for them.

use std::net::{Ipv4Addr, TcpListener};

use lab::{Ended, Lab};

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

lab::measured_tests![a_key_that_the_address_of_a_silent_server_repeats_is_not_printed,];
