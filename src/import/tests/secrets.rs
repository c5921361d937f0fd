//! Tests of short and long secrets in every kind of place, and of common texts that are not secrets.

use super::made;
use crate::import::{ImportError, Imported};

const LINE: &str = "vllm bench serve --model m --base-url http://h:1 --max-concurrency 4";

fn of(text: &str) -> Result<Imported, ImportError> {
    match text.contains('\n') {
        true => made("x.sh", Some(text), &[]),
        false => made("the command line", None, &shlex::split(text).unwrap()),
    }
}

fn plan(text: &str) -> Imported {
    of(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns everything that an import shows: the plan and the lists.
fn said(made: &Imported) -> String {
    [&[made.plan.clone()][..], &made.missing, &made.differs, &made.needless].concat().join("\n")
}

#[test]
fn a_short_secret_is_shown_nowhere() {
    for text in [
        "export OPENAI_API_BASE='http://bob:hunter2@h/v1?key=SEKRET'\npython token_benchmark_ray.py --model m\n",
        "PGURL='http://bob:hunter2@h:1/v1?key=SEKRET' vllm serve m &\nvllm bench serve --model m --max-concurrency 4\n",
        &format!("{LINE} --metadata 'owner=me,token=SEKRET'"),
        &format!("{LINE} --metadata 'a=1;password=hunter2'"),
        "OPENAI_API_BASE=http://h/v1 python token_benchmark_ray.py --model m --metadata 'owner=me,token=SEKRET'",
        &format!("{LINE} --extra-body '{{\"chat_template_kwargs\":{{\"x\":{{\"auth_token\":\"SEKRET\"}}}}}}'"),
        &format!("{LINE} --chat-template-kwargs '{{\"password\":\"hunter2\"}}'"),
        &format!("{LINE} --extra-body '{{\"guided_json\":{{\"x\":\"sk-SEKRETaaaaaaaaaaaa\"}}}}'"),
        &format!("{LINE} --label sk-SEKRETaaaaaaaaaaaa"),
        &format!("{LINE} --label http://bob:hunter2@h"),
        "vllm bench serve --model m --base-url http://bob:hunter2@h:1?k=SEKRET --max-concurrency 4",
    ] {
        let made = plan(text);
        let said = said(&made);
        assert!(!said.contains("hunter2") && !said.contains("SEKRET"), "{text}: {said}");
        assert!(
            !made.plan.lines().any(|line| !line.starts_with('#')
                && line.split("  # ").next().unwrap().contains("***")
                && !line.starts_with("notes")),
            "{said}"
        );
    }
    for model in ["https://bob:hunter2@h/m", "https://user:pw@host/m"] {
        let error = of(&format!("vllm bench serve --model {model} --max-concurrency 4")).unwrap_err().to_string();
        assert!(!error.contains("hunter2") && !error.contains("pw@") && error.contains("`id`"), "{error}");
    }
}

#[test]
fn what_is_left_out_for_a_secret_is_listed_with_the_remedy() {
    for (text, what) in [
        (
            format!("{LINE} --extra-body '{{\"guided_json\":{{\"x\":\"sk-aaaaaaaaaaaaaaaaaaaaaaaa\"}}}}'"),
            "--extra-body guided_json",
        ),
        (
            format!("{LINE} --extra-body '{{\"chat_template_kwargs\":{{\"api_key\":\"zz\"}}}}'"),
            "--extra-body chat_template_kwargs",
        ),
        (format!("{LINE} --label sk-aaaaaaaaaaaaaaaaaaaaaaaa"), "--label ***"),
    ] {
        let made = plan(&text);
        let missing = made.missing.join("\n");
        assert!(missing.contains(what) && missing.contains("{ secret: env:NAME }"), "{text}: {missing}");
        assert_eq!(made.counts.missing, 1, "{missing}");
    }
    let server =
        plan("PGURL='http://bob:hunter2@h:1/v1' vllm serve m &\nvllm bench serve --model m --max-concurrency 4\n");
    assert!(server.plan.contains("PGURL: { secret: env:PGURL }"), "{}", server.plan);
    let notes = plan(&format!("{LINE} --metadata owner=me,token=ab"));
    assert!(
        notes.plan.contains("notes: \"owner=me,token=***\"") && notes.differs.join("").contains("notes"),
        "{}",
        notes.plan
    );
}

#[test]
fn common_texts_stay_where_they_are_no_secret() {
    for (text, part) in [
        (
            "aiperf profile -m m -u http://h:1 --concurrency 2 --osl 5 --goodput time_to_first_token:500".to_owned(),
            "# --goodput time_to_first_token:500",
        ),
        (
            "vllm bench serve --model m --base-url http://vllm:pw@h:1 --max-concurrency 4".to_owned(),
            "default of vllm bench serve",
        ),
        ("vllm bench serve --model m --base-url http://model:pw@h:1 --max-concurrency 4".to_owned(), "# --model m"),
        (
            "vllm bench serve --model m --base-url http://user:pw@h:1 --max-concurrency 4".to_owned(),
            "user name, password or query",
        ),
        (format!("{LINE} --api-key random --dataset-name random"), "--dataset-name random"),
        (format!("{LINE} --api-key 1024 --random-input-len 1024"), "--random-input-len 1024"),
    ] {
        let made = plan(&text);
        assert!(made.plan.contains(part), "`{part}` of {text}: {}", made.plan);
    }
    let sweep = "vllm bench sweep serve --serve-cmd 'vllm serve m' --bench-cmd 'vllm bench serve --model m --max-concurrency 4' \
                 --bench-params p --api-key sk-1 -o out1/dir --output-dir out1/dir";
    assert!(said(&plan(sweep)).contains("out1/dir"), "{}", said(&plan(sweep)));
}

#[test]
fn credentials_of_an_address_are_not_mapped_in_every_format() {
    let files = [
        (
            "x.yaml",
            "server: {type: vllm, model_name: m, base_url: 'http://u:pw9@h:1'}\nload: {type: constant, stages: [{rate: 1, duration: 30}]}\ndata: {type: random, input_distribution: {mean: 10, std_dev: 0, min: 10, max: 10}, output_distribution: {mean: 10, std_dev: 0, min: 10, max: 10}}\napi: {type: completion}\n",
        ),
        (
            "x.json",
            "{\"endpoints\": [\"http://u:pw9@h:1/v1\"], \"models\": [\"m\"], \"scenarios\": [\"B1\"], \"batch_sizes\": [1]}",
        ),
    ];
    let commands = [
        "vllm bench serve --model m --base-url http://u:pw9@h:1 --max-concurrency 4",
        "aiperf profile -m m -u http://u:pw9@h:1 --concurrency 2 --osl 5",
        "genai-perf profile -m m -u http://u:pw9@h:1 --concurrency 2 --endpoint-type chat",
        "python3 -m sglang.bench_serving --model m --base-url http://u:pw9@h:1 --dataset-name random --max-concurrency 4",
        "guidellm benchmark --target http://u:pw9@h:1 --model m --profile poisson --rate 3 --max-seconds 60 --data prompt_tokens=100,output_tokens=10",
        "OPENAI_API_BASE=http://u:pw9@h:1/v1 python token_benchmark_ray.py --model m",
    ];
    let of_files = files.map(|(name, text)| made(name, Some(text), &[]));
    for (number, made) in of_files.into_iter().chain(commands.map(of)).enumerate() {
        let made = made.unwrap_or_else(|error| panic!("{number}: {error}"));
        let listed =
            made.missing.iter().filter(|one| one.contains("user name, password or query of the address")).count();
        assert_eq!(listed, 1, "{number}: {}", said(&made));
        assert!(made.counts.missing > 0 && !said(&made).contains("pw9"), "{number}: {}", said(&made));
    }
}
