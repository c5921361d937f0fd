//! Tests `currency` of a plan: it is shown with amounts of money, does not convert anything, and is not
//! part of any id.

use serde_json::Value;

use lab::Lab;

fn plan(currency: &str) -> String {
    format!(
        "sweepline: 1
name: priced
{currency}endpoints: {{ demo: {{ engine: mock, mock: {{ ttft: 5ms, itl: 1ms }}, hardware: {{ price_per_hour: 3.60 }} }} }}
models: {{ m: {{ id: tiny }} }}
scenarios: {{ short: {{ base: B1, output_tokens: 4 }} }}
phases: {{ fill: 0s, stabilize: 100ms, measure: 400ms, drain: 5s }}
validity: {{ client_late: {{ suspect: 100%, invalid: 100% }}, unsteady: {{ suspect: 100% }} }}
sweeps: {{ s: {{ matrix: {{ scenario: short, qps: 20 }} }} }}
"
    )
}

#[test]
fn money_has_a_currency_where_the_plan_names_it() {
    let lab = Lab::new();
    lab.write("plan.yaml", &plan("currency: EUR\n"));
    lab.write("plain.yaml", &plan(""));
    lab.write("dollars.yaml", &plan("currency: USD\n"));
    lab.write("wrong.yaml", &plan("currency: euro\n"));
    let refused = lab.run(&["check", "wrong.yaml"]);
    assert_eq!(refused.code, Some(2));
    let said = format!("{}{}", refused.stdout, refused.stderr);
    for words in ["`euro` is not a currency code", "wrong.yaml:3:11", "write three capital letters"] {
        assert!(said.contains(words), "{words}: {said}");
    }

    let ids = |plan: &str| {
        let preview = lab.ok(&["preview", plan, "--format", "json"]).json();
        preview["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(ids("plan.yaml"), ids("plain.yaml"), "the same runs");
    assert!(lab.ok(&["preview", "plan.yaml"]).stdout.contains(" EUR"), "the cost of the remaining runs");
    assert!(!lab.ok(&["preview", "plain.yaml"]).stdout.contains("EUR"));

    lab.run(&["run", "plan.yaml", "-q"]);
    let of = |plan: &str| lab.ok(&["export", plan, "--format", "json"]).json()[0].clone();
    let (named, plain) = (of("plan.yaml"), of("plain.yaml"));
    assert_eq!((&named["currency"], &named["price_per_hour"]), (&"EUR".into(), &3.6.into()));
    assert_eq!((&plain["currency"], &plain["price_per_hour"]), (&Value::Null, &3.6.into()));
    // No difference is shown across two currencies.
    let diff = lab.ok(&["diff", "plan.yaml", "dollars.yaml"]).stdout;
    assert!(!diff.contains("3.60 EUR"), "{diff}");
    let json = lab.ok(&["diff", "plan.yaml", "dollars.yaml", "--format", "json"]).json();
    assert_eq!(json["costs"]["change"]["money"], Value::Null, "{}", json["costs"]);
}
