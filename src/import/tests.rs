//! Whatever is imported: an answer, never a panic, and a plan that is one.

use proptest::prelude::*;

use super::*;

fn made(name: &str, text: Option<&str>, command: &[String]) -> Result<Imported, ImportError> {
    let read = |path: &str| Ok(format!("[{{\"num_prompts\": 5, \"{path}\": true}}]"));
    import(&Wishes {
        name: name.to_owned(),
        text: text.map(str::to_owned),
        command: command.to_vec(),
        format: Format::Auto,
        model: None,
        url: None,
        read: &read,
    })
}

/// Words that mean something to a shell or to the tools, and some that do not.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "vllm",
        "bench",
        "serve",
        "sweep",
        "benchmark_serving.py",
        "--model",
        "m",
        "--request-rate",
        "inf",
        "0",
        "-1",
        "1e9",
        "0.1",
        "--max-concurrency",
        "--num-prompts",
        "--dataset-name",
        "random",
        "sharegpt",
        "--goodput",
        "ttft:1",
        "--extra-body",
        "'{\"temperature\": 1}'",
        "--header",
        "Authorization=x",
        "--base-url",
        "http://h",
        "--",
        "=",
        "$A",
        "${A",
        "$(",
        ")",
        "((",
        "))",
        "for",
        "in",
        "do",
        "done",
        ";",
        "\n",
        "\\\n",
        "|",
        "&",
        "'",
        "\"",
        "`",
        "#",
        "A=(1 2)",
        "A=3",
        "{1..3}",
        "$((A*2))",
        "${A[@]}",
        "--bench-cmd",
        "--serve-cmd",
        "--bench-params",
        "--burstiness",
        "--seed",
        "--header=",
        "--temperature",
        "nan",
        "é",
        "\u{e000}",
    ];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), ".{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_script_makes_it_panic(words in prop::collection::vec(word(), 0..40)) {
        let text = words.join(" ");
        // A text that is a plan was checked; one that makes none with mistakes of ours in it would be a mistake here.
        if let Err(ImportError::Plan { errors, .. }) = made("x.sh", Some(&text), &[]) {
            prop_assert!(false, "{text:?} makes a plan with mistakes: {}", errors.render(false));
        }
    }

    #[test]
    fn no_command_makes_it_panic(words in prop::collection::vec(word(), 0..30)) {
        let words: Vec<String> = ["vllm", "bench", "serve", "--model", "m"].map(str::to_owned).into_iter().chain(words).collect();
        if let Err(ImportError::Plan { errors, .. }) = made("the command line", None, &words) {
            prop_assert!(false, "{words:?} makes a plan with mistakes: {}", errors.render(false));
        }
    }

    #[test]
    fn any_value_of_any_option_makes_a_plan_or_is_refused(
        option in proptest::sample::select(bench::option_names()),
        value in prop_oneof![".{0,12}", "-?[0-9]{1,20}", "[0-9]{1,4}\\.[0-9]{1,12}", "[a-z:/.]{1,20}"],
    ) {
        let words: Vec<String> = ["vllm", "bench", "serve", "--model", "m", &format!("--{option}"), &value].map(str::to_owned).to_vec();
        match made("the command line", None, &words) {
            Ok(made) => prop_assert!(made.plan.contains(&format!("--{option}")), "{words:?}\n{}", made.plan),
            Err(ImportError::Plan { errors, .. }) => prop_assert!(false, "{words:?}: {}", errors.render(false)),
            Err(_) => {}
        }
    }

    #[test]
    fn no_configuration_makes_it_panic(
        key in proptest::sample::select(closed_loop::KEYS.to_vec()),
        value in prop_oneof![Just("null"), Just("-1"), Just("1e300"), Just("\"\""), Just("[]"), Just("{}"), Just("[[1]]"),
            Just("{\"a\": {\"url\": 5}}"), Just("[{\"name\": \"A1\", \"input_tokens\": 0, \"turns\": 99999}]"), Just("\"\\u0000\\u0085\""),
            Just("[\"a b\", \"a b\", \"é:\", \"1.5\", \"true\"]"), Just("{\"true\": \"x\", \"1e3\": \"y\"}"), Just("[0.5, \"7\"]")],
    ) {
        let mut object: serde_json::Map<String, Value> = serde_json::from_str(
            "{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"scenarios\": [\"B1\"], \"batch_sizes\": [1], \"measure_seconds\": 5}",
        ).unwrap();
        object.insert(key.to_owned(), serde_json::from_str(value).unwrap());
        let text = Value::Object(object).to_string();
        if let Err(ImportError::Plan { errors, .. }) = made("x.json", Some(&text), &[]) {
            prop_assert!(false, "{text} makes a plan with mistakes: {}", errors.render(false));
        }
    }
}
