//! Tests the pages of docs/COMING_FROM.md: the command at the beginning of each page produces the plan
//! that follows it.

use std::path::Path;

use lab::Lab;

/// Returns the blocks of a page. A block consists of lines indented by four, with only blank lines
/// between them.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(line) => blocks.last_mut().unwrap().push(line),
            None if blocks.last().is_some_and(|block| !block.is_empty()) => blocks.push(Vec::new()),
            None => {}
        }
    }
    blocks
}

#[test]
fn the_command_of_each_page_makes_its_plan() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/COMING_FROM.md")).unwrap();
    for tool in ["SGLang", "guidellm", "genai-bench", "llmperf"] {
        let page = docs.split(&format!("\n## {tool}\n")).nth(1).unwrap_or_else(|| panic!("no page of {tool}"));
        let blocks = blocks(page.split("\n## ").next().unwrap());
        let lab = Lab::new();
        lab.write("bench.sh", &(blocks[0].join("\n") + "\n"));
        let plan = lab.ok(&["import", "bench.sh"]).stdout;
        let said: Vec<&str> = plan.lines().map(|line| line.split("  #").next().unwrap().trim_end()).collect();
        assert!(blocks[1].len() > 5, "{tool}: the plan is missing");
        for line in &blocks[1] {
            assert!(said.contains(line), "{tool}: `{line}` is not in:\n{plan}");
        }
    }
}
