//! The verdict of a run, as every command that shows it states it.

use serde_json::Value;

use super::plans::plan;
use super::{Ended, Lab, Run};

/// Returns a plan with one sweep `s` over endpoint `a`, from its load, the sweep's keys next to the
/// matrix, the phases, and the remaining lines.
pub fn one(port: u16, load: &str, sweep: &str, phases: &str, more: &str) -> String {
    let matrix = format!("endpoint: [a], model: [m], scenario: [short], {load}");
    let rest = format!("{more}phases: {{ {phases} }}\nsweeps: {{ s: {{ matrix: {{ {matrix} }}{sweep} }} }}\n");
    plan(&[("a", port)], &rest)
}

/// The verdict of a run, from each command that shows it.
pub struct Judged {
    pub ended: Ended,
    pub run: Run,
    pub state: String,
    pub reasons: Vec<String>,
    pub text: String,
}

/// Returns the verdict of the lab's only run, and checks that the table, `show` and `export` agree.
pub fn judged(lab: &Lab, ended: Ended) -> Judged {
    let run = lab.only_run();
    let id = run.json["id"].as_str().unwrap()[..16].to_owned();
    let shown = lab.ok(&["show", &id, "--plan", "plan.yaml", "--format", "json"]).json();
    let verdict = &shown["verdict"];
    let state = verdict["state"].as_str().unwrap().to_owned();
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|reason| reason["name"].as_str().unwrap().to_owned()).collect()
    };
    let reasons = [names(&verdict["reasons"]), names(&verdict["labels"])].concat();
    let exported = lab.ok(&["export", "plan.yaml", "--format", "json"]).json()[0].clone();
    assert_eq!(exported["verdict"], state.as_str(), "{exported}");
    let page = lab.ok(&["show", &id, "--plan", "plan.yaml"]).stdout;
    for name in &reasons {
        assert!(ended.stdout.contains(name.as_str()), "the table names {name}: {}", ended.stdout);
        assert!(page.contains(name.as_str()), "`show` names {name}: {page}");
        assert!(exported.to_string().contains(name.as_str()), "`export` names {name}: {exported}");
    }
    assert!(ended.stdout.contains(&state), "{}", ended.stdout);
    assert_eq!(ended.code, Some(if state == "invalid" { 3 } else { 0 }), "{}{}", ended.stdout, ended.stderr);
    Judged { ended, run, state, reasons, text: verdict.to_string() }
}

impl Judged {
    /// Asserts that the run has the reason, with at least this weight.
    pub fn has(&self, reason: &str, weight: &str) {
        assert!(self.reasons.iter().any(|name| name == reason), "no {reason}: {}\n{}", self.text, self.ended.stderr);
        assert!(self.state == weight || self.state == "invalid", "{reason} makes it {weight}: {}", self.text);
    }
}

/// Runs a plan with one run, and returns its verdict.
pub fn run(lab: &Lab, plan: &str) -> Judged {
    lab.write("plan.yaml", plan);
    let ended = lab.run(&["run", "plan.yaml"]);
    judged(lab, ended)
}
