//! Tests that any input gives a result rather than a panic, and that every resulting plan is valid.

mod fixtures;
mod mutations;
mod secrets;
mod sources;
mod tools;

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn made(name: &str, text: Option<&str>, command: &[String]) -> Result<Imported, ImportError> {
    let read = |path: &str| Ok(format!("[{{\"num_prompts\": 5, \"{path}\": true}}]"));
    import(&Wishes {
        name: name.to_owned(),
        text: text.map(str::to_owned),
        command: command.to_vec(),
        format: "auto".to_owned(),
        quick: false,
        model: None,
        url: None,
        entries: Vec::new(),
        folder: PathBuf::new(),
        read: &read,
    })
}

/// Generates words that mean something to a shell or to the tools, and some that do not.
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
        "--serve-params",
        "-tp",
        "--port",
        "export",
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

/// An address after a header without a value is not a key, and a mask before a name does not turn the
/// name into a YAML alias.
#[test]
fn masks_leave_a_plan_one() {
    let words =
        |text: &str| -> Vec<String> { text.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect() };
    let plan = |text: &str| made("the command line", None, &words(text)).unwrap_or_else(|error| panic!("{error}")).plan;
    let address = plan("vllm bench serve --model m --header '' http://h --base-url http://h");
    assert!(address.contains("url: http://h"), "{address}");
    let braces = plan("vllm bench serve --model {{m}}{ --metadata {{{{=}}");
    assert!(braces.contains("{{ '{{' }}m}}{"), "{braces}");
    let statement = plan("vllm bench serve --model {%m --metadata x={#");
    assert!(statement.contains("{{ '{%' }}m") && statement.contains("{{ '{#' }}"), "{statement}");
    let dashed = plan("vllm bench serve --model m --header Authorization: Bearer --A0a!aa+A-0");
    assert!(!dashed.contains("A0a!aa+A-0"), "{dashed}");
    let key = words("vllm bench serve --model s3cr3t-k3y/m --header X-Key=s3cr3t-k3y");
    let error = made("the command line", None, &key).unwrap_err().to_string();
    assert!(!error.contains("s3cr3t-k3y") && error.contains("`id` of --model contains"), "{error}");
}

/// A header that the plan cannot contain is listed, and the rest is converted to a plan.
#[test]
fn a_header_that_cannot_be_sent_is_listed() {
    let words = "vllm bench serve --model m --header Content-Type=application/json X-Tenant=a x-tenant=b";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let made = made("the command line", None, &words).unwrap_or_else(|error| panic!("{error}"));
    assert!(made.plan.contains("headers: { x-tenant: { secret: env:X_TENANT } }"), "{}", made.plan);
    let listed = made.missing.join("\n");
    for part in ["sweepline sets this header itself", "it occurs twice: the last one counts"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_script_makes_it_panic(words in prop::collection::vec(word(), 0..40)) {
        let text = words.join(" ");
        // A text that is itself a plan has already been checked, so this error means that the import created
        // an invalid plan.
        if let Err(ImportError::Plan { errors, .. }) = made("x.sh", Some(&text), &[]) {
            prop_assert!(false, "{text:?} makes an invalid plan: {}", errors.render(false));
        }
    }

    #[test]
    fn no_command_of_a_server_makes_it_panic(
        words in prop::collection::vec(word(), 0..12),
        key in "[a-z_.-]{1,8}",
        value in prop_oneof![Just("null"), Just("true"), Just("\"{{x}}\""), Just("\"{%\""), Just("{\"a\": {\"b\": 1}}"), Just("1e300"), Just("0.10"), Just("[1]"), Just("\"none\"")],
    ) {
        let read = |_: &str| Ok(format!("[{{\"{key}\": {value}}}, {{\"max-num-seqs\": 4}}, {{}}]"));
        for program in ["vllm serve m", "python -m server"] {
            let serve = format!("{program} {}", words.join(" "));
            let command = ["vllm", "bench", "sweep", "serve", "--serve-cmd", &serve, "--bench-cmd", "vllm bench serve --model m --request-rate 1", "--serve-params", "p"];
            let made = import(&Wishes {
                name: "the command line".to_owned(),
                text: None,
                command: command.map(str::to_owned).to_vec(),
                format: "auto".to_owned(),
        quick: false,
                model: None,
                url: None,
                entries: Vec::new(),
                folder: PathBuf::new(),
                read: &read,
            });
            if let Err(ImportError::Plan { errors, .. }) = made {
                prop_assert!(false, "{serve:?} with {key}: {value} makes an invalid plan: {}", errors.render(false));
            }
        }
    }

    #[test]
    fn no_command_makes_it_panic(words in prop::collection::vec(word(), 0..30)) {
        let words: Vec<String> = ["vllm", "bench", "serve", "--model", "m"].map(str::to_owned).into_iter().chain(words).collect();
        if let Err(ImportError::Plan { errors, .. }) = made("the command line", None, &words) {
            prop_assert!(false, "{words:?} makes an invalid plan: {}", errors.render(false));
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
    fn a_ratio_of_nothing_is_named(value in "0(\\.0{1,3})?|-0|\\{\"input\": 0, \"output\": 0\\}") {
        let words: Vec<String> = ["vllm", "bench", "serve", "--model", "m", "--random-range-ratio", &value].map(str::to_owned).to_vec();
        let made = made("the command line", None, &words).unwrap_or_else(|error| panic!("{error}"));
        prop_assert!(made.plan.contains("--random-range-ratio") && !made.plan.contains("lengths:"), "{}", made.plan);
    }

    #[test]
    fn no_configuration_makes_it_panic(
        key in proptest::sample::select(closed_loop::KEYS.to_vec()),
        value in prop_oneof![Just("null"), Just("-1"), Just("1e300"), Just("\"\""), Just("[]"), Just("{}"), Just("[[1]]"),
            Just("{\"a\": {\"url\": 5}}"), Just("[{\"name\": \"A1\", \"input_tokens\": 0, \"turns\": 99999}]"), Just("\"\\u0000\\u0085\""),
            Just("[\"a b\", \"a b\", \"é:\", \"1.5\", \"true\"]"), Just("{\"true\": \"x\", \"1e3\": \"y\"}"), Just("[0.5, \"7\"]")],
    ) {
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(
            "{\"endpoints\": [\"http://h\"], \"models\": [\"m\"], \"scenarios\": [\"B1\"], \"batch_sizes\": [1], \"measure_seconds\": 5}",
        ).unwrap();
        object.insert(key.to_owned(), serde_json::from_str(value).unwrap());
        let text = serde_json::Value::Object(object).to_string();
        if let Err(ImportError::Plan { errors, .. }) = made("x.json", Some(&text), &[]) {
            prop_assert!(false, "{text} makes an invalid plan: {}", errors.render(false));
        }
    }

    #[test]
    fn a_secret_put_anywhere_is_in_no_output(
        // The secret contains a character that does not occur in variable names, because `KEY=NAME` refers to
        // the place of a key.
        secret in "[A-Za-z0-9!%+_@-]{1,6}[A-Z][0-9][a-z][.!-][A-Za-z0-9+_.!-]{6,20}={0,2}",
        place in 0..PLACES.len(),
        with_rest in any::<bool>(),
    ) {
        let (kind, template) = PLACES[place];
        // Invalid options next to the secret turn some of these imports into errors.
        let rest = if with_rest { " --request-rate $UNKNOWN --num-prompts x" } else { "" };
        let text = template.replace("KEY", &secret).replace("BENCH", &format!("vllm bench serve --model m{rest}"));
        let (file, text, command) = match kind {
            "sh" => ("x.sh", Some(text.as_str()), Vec::new()),
            "json" => ("x.json", Some(text.as_str()), Vec::new()),
            _ => ("the command line", None, shlex::split(&text).unwrap()),
        };
        let said = match made(file, text, &command) {
            Ok(made) => format!("{}{}{}", made.plan, made.missing.join("\n"), made.needless.join("\n")),
            Err(error) => error.to_string(),
        };
        prop_assert!(!said.contains(&secret), "{template}: {said}");
    }
}

/// Every option, variable and field that could contain a secret, `KEY`, in every form.
const PLACES: [(&str, &str); 53] = [
    ("line", "BENCH --header 'Authorization: Bearer KEY'"),
    ("line", "BENCH --header Authorization: Bearer KEY"),
    ("line", "BENCH --header 'X-Api-Key:KEY'"),
    ("line", "BENCH --header 'X-Api-Key: KEY' 'Cookie: a=KEY; b=KEY'"),
    ("line", "BENCH --header X-Team=KEY api-key=KEY Some-Thing:KEY"),
    ("line", "BENCH --header=Authorization=KEY"),
    ("line", "BENCH '--header=Authorization: Basic KEY'"),
    ("line", "BENCH --header KEY"),
    ("line", "BENCH --head 'X-Odd: KEY' --request-id-prefix KEY"),
    ("line", "BENCH --header '{\"Authorization\": \"Bearer KEY\", \"X-Odd\": \"KEY\"}' --label KEY"),
    ("line", "BENCH --extra-headers 'X-Odd: KEY' --extra_headers X-Odd=KEY"),
    ("line", "BENCH --header 'A: KEY' --header 'A: other' --label KEY"),
    ("line", "BENCH -H 'Authorization: Bearer KEY'"),
    ("line", "BENCH --insecure 'X-Api-Key: KEY' Bearer KEY"),
    ("line", "BENCH --insecure KEY"),
    ("line", "BENCH --api-key KEY"),
    ("line", "BENCH --api-key=KEY --api_key KEY --openai-api-key KEY"),
    ("line", "BENCH --hf-token KEY --token KEY --password=KEY --auth KEY"),
    ("line", "BENCH --base-url https://me:KEY@host:1"),
    ("line", "BENCH --base-url https://KEY@host:1/v1"),
    ("line", "BENCH --base-url me:KEY@host:1"),
    ("line", "BENCH --base-url 'https://host/v1?api_key=KEY'"),
    ("line", "BENCH --base-url 'https://host/v1?code=KEY&x=KEY#KEY'"),
    ("line", "BENCH --base-url 'ftp://me:KEY@host/?sig=KEY'"),
    ("line", "BENCH --base-url 'https://host/v1?KEY'"),
    ("line", "BENCH --metadata token=KEY api-key=KEY 'note=Bearer KEY'"),
    (
        "line",
        "BENCH --extra-body '{\"api_key\": \"KEY\", \"headers\": {\"X-Odd\": \"KEY\"}, \"deep\": [{\"token\": \"KEY\"}]}'",
    ),
    ("line", "HF_TOKEN=KEY BENCH --label KEY"),
    (
        "line",
        "vllm bench sweep serve --serve-cmd 'vllm serve m --api-key KEY' --bench-cmd 'BENCH --header X-Api-Key:KEY --api-key KEY' --bench-params p",
    ),
    (
        "line",
        "vllm bench sweep serve --serve-cmd 'vllm serve m' --bench-cmd 'curl -H X-Odd:KEY -u me:KEY http://h' --bench-params p",
    ),
    ("sh", "export HF_TOKEN=KEY\nBENCH --label $HF_TOKEN --request-id-prefix KEY\n"),
    ("sh", "HF_TOKEN='KEY' BENCH --header \"Authorization: Bearer $HF_TOKEN\"\n"),
    ("sh", "H='X-Odd: KEY'\nBENCH --header \"$H\" --request-rate \"$H\"\n"),
    ("sh", "H=('X-Odd: KEY' 'Authorization: Bearer KEY')\nBENCH --header \"${H[@]}\"\n"),
    ("sh", "for key in KEY other; do\n  BENCH --api-key $key\ndone\n"),
    ("sh", "BENCH \\\n  --header \\\n  \"Authorization: Bearer KEY\" \\\n  --save-result\n"),
    ("sh", "BENCH --base-url https://me:KEY@$HOST\n"),
    ("sh", "BENCH --header \"X-Odd: KEY$TAIL\" --label \"KEY$TAIL\"\n"),
    ("sh", "BENCH --request-rate $(curl -H 'X-Odd: KEY' http://h)\n"),
    ("sh", "BENCH --label `curl -H X-Odd:KEY http://h`\n"),
    ("sh", "BENCH --request-rate ${RATE:?KEY}\n"),
    ("sh", "vllm serve m --api-key KEY other\nBENCH\n"),
    (
        "line",
        "vllm bench sweep serve --serve-cmd 'env HF_TOKEN=KEY vllm serve m --hf-token KEY --api-key=KEY' --bench-cmd 'BENCH --label KEY' --serve-params p",
    ),
    (
        "line",
        "vllm bench sweep serve --serve-cmd 'HF_TOKEN=KEY python -m server --token KEY KEY' --bench-cmd 'BENCH' --serve-params p",
    ),
    ("sh", "export FOO_TOKEN=KEY BAR=KEY\nvllm serve m --served-model-name KEY --download-dir /KEY/x\nBENCH\n"),
    ("sh", "cat > key.txt <<EOF\nKEY\nEOF\nBENCH\n"),
    ("json", "[{\"header\": \"Authorization: Bearer KEY\", \"model\": \"m\"}]"),
    (
        "json",
        "[{\"header\": [\"X-Odd: KEY\", \"X-Even=KEY\"], \"model\": \"m\"}, {\"header\": {\"X-Odd\": \"KEY\"}, \"api_key\": \"KEY\", \"model\": \"m\"}]",
    ),
    ("json", "{\"a\": {\"base_url\": \"https://u:KEY@h?x=KEY\", \"model\": \"m\", \"label\": \"KEY\"}}"),
    (
        "json",
        "[{\"api_key\": \"KEY\", \"tensor_parallel_size\": 2}, {\"api_key\": \"KEY\", \"env\": {\"HF_TOKEN\": \"KEY\"}}]",
    ),
    (
        "json",
        "{\"endpoints\": [{\"url\": \"http://u:KEY@h/v1?x=KEY\", \"api_key\": \"KEY\", \"headers\": {\"X-Odd\": \"KEY\"}}], \"models\": [\"m\"], \"batch_sizes\": [1]}",
    ),
    (
        "json",
        "{\"endpoints\": [\"ftp://u:KEY@h\"], \"headers\": [\"X-Odd: KEY\"], \"models\": [\"m\"], \"batch_sizes\": [1]}",
    ),
    (
        "json",
        "{\"endpoints\": [\"http://h\"], \"accessToken\": \"KEY\", \"notes\": \"use Bearer KEY\", \"api_keys\": [\"KEY\"], \"models\": [\"m\"], \"batch_sizes\": [1, \"KEY\"]}",
    ),
];
