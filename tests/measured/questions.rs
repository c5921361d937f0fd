//! Tests answers to questions after a sweep of a real inference server: where the curve bends, which
//! setting is better, the capacity for a load, and a workbook to share. Two settings of the server are two
//! endpoints.

use std::os::unix::fs::PermissionsExt;

use lab::Lab;
use lab::realserver::{RealServer, up};
use lab::sweeps::honest;
use lab::workbooks::{office, python, recalculated};

/// Returns a plan with one server that batches requests and one that serves them one by one but is
/// cheaper.
fn plan(together: u16, alone: u16) -> String {
    format!(
        "
sweepline: 1
name: batching
seed: 7
endpoints:
  together: {{ url: http://127.0.0.1:{together}/v1, resource: box, hardware: {{ gpus: 1, price_per_hour: 2 }} }}
  alone: {{ url: http://127.0.0.1:{alone}/v1, resource: box, hardware: {{ gpus: 1, price_per_hour: 1 }} }}
models: {{ tiny: {{ id: default_model }} }}
scenarios: {{ chat: {{ prompt_tokens: 60, output_tokens: 24 }} }}
phases: {{ fill: 200ms, stabilize: 500ms, measure: 3s, drain: 20s }}
slo: {{ ttft: {{ p50: 10s }} }}
# A busy machine sends late; what is asked here is not how exact the client is.
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }} }}
compare: {{ by: endpoint, baseline: alone, metrics: [ttft_p50, output_throughput] }}
sweeps:
  rates: {{ matrix: {{ endpoint: [together, alone], model: tiny, scenario: chat, qps: [1.5] }}, repeats: 3 }}
  crowd: {{ matrix: {{ endpoint: [together, alone], model: tiny, scenario: chat, batch_size: [2, 8] }}, repeats: 3 }}
"
    )
}

fn a_real_server_with_two_settings_is_asked_about() {
    let lab = Lab::measured_time();
    let Some(together) = RealServer::start(lab.path()) else { return };
    let script = std::fs::read_to_string(up()).unwrap();
    let alone =
        script.replace("--log-level WARNING", "--log-level WARNING --decode-concurrency 1 --prompt-concurrency 1");
    assert_ne!(alone, script, "the settings reached the servers");
    lab.write("alone.sh", &alone);
    let script = lab.path().join("alone.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let alone = RealServer::start_with(&script, lab.path());
    lab.write("plan.yaml", &plan(together.port, alone.port));
    honest(&lab.run(&["run", "plan.yaml", "-q"]));

    let curves = lab.ok(&["curves", "plan.yaml", "--format", "json"]).json();
    lab.follows("curves", &curves);
    let curves = curves["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 4, "two sweeps of two endpoints");
    let rungs =
        curves.iter().flat_map(|curve| curve["rungs"].as_array().unwrap().iter().map(move |rung| (curve, rung)));
    for (curve, rung) in rungs {
        assert_eq!(rung["runs"].as_array().unwrap().len(), 3, "{curve:#}");
        let throughput = &rung["figures"]["output_throughput_tokens_per_s"];
        assert!(throughput["value"].as_f64() > Some(1.0), "{curve:#}");
        assert_eq!(throughput["interval"], "t over runs, log scale");
    }

    let comparison = lab.ok(&["compare", "plan.yaml", "--format", "json"]).json();
    lab.follows("compare", &comparison);
    let cells = comparison["families"][0]["cells"].as_array().unwrap();
    let crowd = cells.iter().find(|cell| cell["cell"]["batch_size"] == 8).unwrap();
    let test = crowd["tests"].as_array().unwrap().iter().find(|test| test["metric"] == "output_throughput").unwrap();
    assert_eq!(test["rounds"], 3, "{test:#}");
    assert!(test["change"]["value"].as_f64() > Some(1.0), "eight at once are faster with batching: {test:#}");

    // About eight requests do not show that a server keeps up, however easily it kept up.
    let capacity = lab.ok(&["capacity", "plan.yaml", "--target-qps", "15"]);
    let words = capacity.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("it is not shown whether the server keeps up (a window of"), "{words}");
    assert!(!words.contains("cheapest"), "{words}");
    assert!(words.contains("a closed loop does not measure arrival rates"), "{words}");

    lab.ok(&["report", "plan.yaml"]);
    let page = std::fs::read_to_string(lab.path().join("report.html")).unwrap();
    assert!(
        page.contains("together against alone: ") && page.contains("id=\"comparison\""),
        "it states which one is better"
    );

    let Some(python) = python() else { return };
    lab.ok(&["export", "plan.yaml", "-o", "answers.xlsx"]);
    let mut books = vec![lab.path().join("answers.xlsx")];
    books.extend(office().map(|office| recalculated(&lab, office, "answers.xlsx")));
    for book in books {
        let script = "import openpyxl, sys; book = openpyxl.load_workbook(sys.argv[1]); \
                      print(' '.join(book.sheetnames), book['runs'].max_row, book['curves'].max_row)";
        let output = std::process::Command::new(&python).args(["-c", script]).arg(&book).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            told.trim(),
            "runs curves requests charts chart_data definitions about 19 7",
            "{}: {}",
            book.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

lab::measured_tests![a_real_server_with_two_settings_is_asked_about];
