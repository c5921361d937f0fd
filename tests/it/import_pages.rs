//! Tests docs/COMING_FROM.md, which shows input of each tool and the resulting plan; these must
//! match.

use std::path::Path;

use serde_json::Value;

use lab::Lab;

/// Returns the first two code blocks under a heading.
fn blocks(heading: &str) -> [String; 2] {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/COMING_FROM.md")).unwrap();
    let page = docs.split(&format!("\n{heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap().to_owned();
    let mut blocks: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(line) if is_inside => *blocks.last_mut().unwrap() += &format!("{line}\n"),
            Some(line) => blocks.push(format!("{line}\n")),
            None => {}
        }
        is_inside = line.starts_with("    ");
    }
    let mut blocks = blocks.into_iter();
    [blocks.next().unwrap(), blocks.next().unwrap()]
}

/// Returns the parts of the first text that are missing or different in the second.
fn missing(part: &Value, whole: &Value, at: &str, found: &mut Vec<String>) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                match whole.get(key) {
                    Some(other) => missing(value, other, &format!("{at}.{key}"), found),
                    None => found.push(format!("{at}.{key} is not there")),
                }
            }
        }
        (part, whole) if part == whole => {}
        (part, whole) => found.push(format!("{at} is {whole}, not {part}")),
    }
}

#[test]
fn what_the_docs_show_of_a_tool_becomes_the_plan_beside_it() {
    for (heading, file) in [
        ("## vLLM", "bench.sh"),
        ("### vllm bench sweep", "sweep.sh"),
        ("## AIPerf and genai-perf", "bench.sh"),
        ("## inference-perf", "config.yaml"),
    ] {
        let lab = Lab::new();
        let [source, plan] = blocks(heading);
        // A script may contain a file that it names, as in `# serve.json: […]`.
        let named = source.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
        named.for_each(|(name, text)| drop(lab.write(name, text)));
        lab.write(file, &source);
        lab.ok(&["import", file, "-o", "plan.yaml"]);
        lab.ok(&["check", "plan.yaml"]);
        let read = |text: &str| -> Value { serde_yaml::from_str(text).unwrap() };
        let (said, made) = (read(&plan), read(&std::fs::read_to_string(lab.path().join("plan.yaml")).unwrap()));
        let mut found = Vec::new();
        missing(&said, &made, heading, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
