//! The prefix cache: responses, log and counters compared with a simple independent cache of whole texts.

use std::io::{Read, Write};

use serde_json::{Value, json};

use lab::mock::{Answer, Mock, read_until, request, with};

/// Splits a prompt into tokens like the mock: the template's marks, and words. Texts here consist of words
/// and spaces only.
fn tokens(messages: &Value) -> Vec<String> {
    let mut tokens = Vec::new();
    for message in messages.as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let text = message["content"].as_str().unwrap();
        tokens.extend(["<start>".to_owned(), format!("<{role}>"), "<text>".to_owned()]);
        tokens.extend(text.split_whitespace().map(str::to_owned));
        tokens.push("<end>".to_owned());
    }
    tokens.extend(["<start>", "<assistant>", "<text>"].map(str::to_owned));
    tokens
}

/// Returns `count` words that start with `name`.
fn words(name: &str, count: usize) -> String {
    (0..count).map(|n| format!("{name}{n}")).collect::<Vec<_>>().join(" ")
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// Returns a streamed chat of `max` tokens.
fn asking(messages: &Value, max: u32) -> Value {
    json!({
        "model": "m", "stream": true, "max_tokens": max, "messages": messages,
        "stream_options": {"include_usage": true},
    })
}

/// Returns `cached_tokens` of a stream.
fn cached(answer: &Answer) -> u64 {
    let events = answer.events();
    let usage = events.iter().find_map(|event| event["usage"].as_object()).expect("a usage");
    usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
}

/// Returns the value of a metric.
fn metric(mock: &Mock, name: &str) -> u64 {
    let answer = mock.get("/metrics", "");
    assert!(answer.head.contains("content-type: text/plain"), "{}", answer.head);
    let text = answer.text();
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap_or_else(|| panic!("{text}"));
    line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
}

/// The simple cache: texts of full blocks, the most recently used at the end.
struct Naive {
    block: usize,
    capacity: usize,
    texts: Vec<Vec<String>>,
    evictions: u64,
}

impl Naive {
    fn blocks(&self, tokens: &[String]) -> Vec<Vec<String>> {
        (1..=tokens.len() / self.block).map(|count| tokens[..count * self.block].to_vec()).collect()
    }

    /// Moves the known blocks of `tokens` to the end, and returns their number of tokens.
    fn find(&mut self, tokens: &[String]) -> usize {
        let blocks = self.blocks(&tokens[..tokens.len() - 1]);
        let found = blocks.iter().take_while(|block| self.texts.contains(block)).count();
        self.used(&blocks[..found]);
        found * self.block
    }

    /// The last block counts as used first.
    fn used(&mut self, blocks: &[Vec<String>]) {
        for block in blocks.iter().rev() {
            self.texts.retain(|text| text != block);
            self.texts.push(block.clone());
        }
    }

    fn keep(&mut self, tokens: &[String]) {
        let blocks = self.blocks(tokens);
        self.used(&blocks[..blocks.len().min(self.capacity)]);
        while self.texts.len() > self.capacity {
            self.texts.remove(0);
            self.evictions += 1;
        }
    }
}

#[test]
fn without_it_nothing_is_cached() {
    let mock = Mock::start(&[]);
    let body = asking(&json!([message("user", &words("a", 100))]), 2);
    assert_eq!([cached(&mock.chat(&body)), cached(&mock.chat(&body))], [0, 0]);
    assert!(mock.log(2).iter().all(|line| line["cached_tokens"] == 0));
    for name in
        ["vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "sweepline_mock:prefix_cache_blocks"]
    {
        assert_eq!(metric(&mock, name), 0, "{name}");
    }
    assert_eq!(mock.post("/reset_prefix_cache", &json!({})).status(), 200);
    assert_eq!(mock.get("/reset_prefix_cache", "").status(), 405);
    assert_eq!(mock.post("/metrics", &json!({})).status(), 405);
}

#[test]
fn what_is_cached_is_not_computed_again() {
    let mock = Mock::start(&["--prefix-cache", "4096", "--prefill", "20ms/token"]);
    let body = asking(&json!([message("user", &words("a", 40))]), 1);
    // 40 words, 4 tokens around them and 3 before the response: two full blocks of 16 below the 47th token.
    assert_eq!([cached(&mock.chat(&body)), cached(&mock.chat(&body))], [0, 32]);
    let whole = mock.chat(&with(body, &json!({"stream": false}))).json();
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
    let log = mock.log(3);
    assert_eq!(log.iter().map(|line| line["cached_tokens"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 32, 32]);
    let ttft = |line: &Value| line["first_write_ns"].as_u64().unwrap() - line["slot_ns"].as_u64().unwrap();
    let (cold, warm) = (ttft(&log[0]), [ttft(&log[1]), ttft(&log[2])]);
    println!("cold {cold} ns, warm {warm:?} ns");
    assert!(cold >= 47 * 20_000_000);
    // 15 tokens: 300 ms, with tolerance for a busy machine up to the cold time.
    assert!(warm.iter().all(|warm| (15 * 20_000_000..47 * 20_000_000).contains(warm)), "{warm:?}");
}

#[test]
fn what_is_cached_need_not_be_told() {
    let mock = Mock::start(&["--prefix-cache", "4096", "--no-cached-tokens"]);
    let body = asking(&json!([message("user", &words("a", 40))]), 2);
    for _ in 0..2 {
        let events = mock.chat(&body).events();
        let usage = events.iter().find_map(|event| event["usage"].as_object()).expect("a usage");
        assert!(usage["prompt_tokens"] == 47 && !usage.contains_key("prompt_tokens_details"), "{usage:?}");
    }
    let whole = mock.chat(&with(body, &json!({"stream": false}))).json();
    assert!(whole["usage"]["prompt_tokens"] == 47 && whole["usage"].get("prompt_tokens_details").is_none(), "{whole}");
    assert_eq!(
        mock.log(3).iter().map(|line| line["cached_tokens"].as_u64()).collect::<Vec<_>>(),
        [Some(0), Some(32), Some(32)]
    );
}

#[test]
fn the_next_turn_finds_prompt_and_answer() {
    for kind in ["plain", "utf8", "escaped"] {
        let mock = Mock::start(&["--prefix-cache", "100000", "--prefix-block", "1", "--words", kind]);
        let mut messages = json!([message("system", "be kind"), message("user", &words("a", 9))]);
        let first = mock.chat(&asking(&messages, 30));
        let answer = first.deltas("content").concat();
        messages.as_array_mut().unwrap().extend([message("assistant", &answer), message("user", "go on")]);
        let second = mock.chat(&asking(&messages, 1));
        let log = mock.log(2);
        let prompts: Vec<_> = log.iter().map(|line| line["prompt_tokens"].as_u64().unwrap()).collect();
        assert_eq!(prompts[0], (2 + 4) + (9 + 4) + 3);
        // The response is followed by its end, a message of two words and the marks before the next
        // response. The last token of the response (for the other kinds the last word: up to nine tokens)
        // was never computed.
        let answer = prompts[1] - prompts[0] - (1 + 2 + 4 + 3);
        let last = if kind == "plain" { 1 } else { 10 };
        let expected = prompts[0] + answer - last..prompts[0] + answer;
        assert!(expected.contains(&cached(&second)), "{kind}: {} of {prompts:?}", cached(&second));
        if kind == "plain" {
            assert_eq!((answer, cached(&second)), (30, prompts[0] + 29));
        }
    }
}

#[test]
fn log_and_counters_agree_with_a_naive_cache() {
    let mock = Mock::start(&["--prefix-cache", "100", "--prefix-block", "8", "--words", "plain"]);
    let mut naive = Naive { block: 8, capacity: 12, texts: Vec::new(), evictions: 0 };
    // Three systems with three users each, in an order that returns to evicted and to cached prompts.
    for n in 0..60usize {
        let (system, user) = (n * n % 3, n / 4 % 3);
        let system = message("system", &words(&format!("s{system}x"), 10 + system));
        let messages = json!([system, message("user", &words(&format!("u{user}x"), 5 + n % 20))]);
        mock.chat(&asking(&messages, 1 + n as u32 % 12));
    }
    let (mut queries, mut hits) = (0, 0);
    for line in mock.log(60) {
        let body: Value = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
        let mut sequence = tokens(&body["messages"]);
        assert_eq!(line["prompt_tokens"], sequence.len());
        let found = naive.find(&sequence);
        assert_eq!(line["cached_tokens"], found, "{}", line["n"]);
        queries += sequence.len() as u64;
        hits += found as u64;
        naive.keep(&sequence);
        sequence.extend(line["answer"].as_str().unwrap().split(' ').map(str::to_owned));
        sequence.pop();
        naive.keep(&sequence);
    }
    println!("{hits} of {queries} tokens hit, {} blocks evicted", naive.evictions);
    assert!(hits > 0 && naive.evictions > 0);
    assert_eq!(metric(&mock, "vllm:prefix_cache_queries_total"), queries);
    assert_eq!(metric(&mock, "vllm:prefix_cache_hits_total"), hits);
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_evictions_total"), naive.evictions);
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_blocks"), naive.texts.len() as u64);
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_capacity_blocks"), 12);
}

#[test]
fn it_is_forgotten_on_request_and_no_model_sees_anothers() {
    let flags = ["--prefix-cache", "4096", "--api-key-env", "MOCK_TEST_KEY"];
    let mock = Mock::start_with(&flags, |command| command.env("MOCK_TEST_KEY", "k"));
    let key = "Authorization: Bearer k\r\nConnection: close\r\n";
    let post = |path: &str, body: &Value, fields: &str| {
        let mut stream = mock.connect();
        stream.write_all(request(path, body, fields).as_bytes()).unwrap();
        Answer::read(&mut stream)
    };
    let body = asking(&json!([message("user", &words("a", 40))]), 1);
    let ask = |body: &Value| cached(&post("/v1/chat/completions", body, key));
    assert_eq!([ask(&body), ask(&body)], [0, 32]);
    let other = with(body.clone(), &json!({"model": "other"}));
    assert_eq!([ask(&other), ask(&other), ask(&body)], [0, 32, 32]);
    // The counters are public, as on a real server; clearing the cache requires the key.
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_blocks"), 4);
    assert_eq!(post("/reset_prefix_cache", &json!({}), "Connection: close\r\n").status(), 401);
    let reset = post("/reset_prefix_cache", &json!({}), key);
    assert_eq!((reset.status(), reset.raw.len()), (200, 0));
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_blocks"), 0);
    assert_eq!(metric(&mock, "vllm:prefix_cache_hits_total"), 3 * 32, "counters never go back");
    assert_eq!([ask(&body), ask(&body)], [0, 32]);
}

#[test]
fn only_what_was_computed_is_kept() {
    let mock = Mock::start(&["--prefix-cache", "4096", "--prefix-block", "4", "--ttft", "1h"]);
    let body = asking(&json!([message("user", &words("a", 40))]), 9);
    let mut stream = mock.connect();
    stream.write_all(request("/v1/chat/completions", &body, "").as_bytes()).unwrap();
    // The role chunk shows that the request has its slot.
    stream.read_exact(&mut [0; 20]).unwrap();
    drop(stream);
    mock.log(1);
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_blocks"), 0);

    // For a response whose client left, everything written except its last token: 47 tokens of the prompt,
    // and one.
    let mock =
        Mock::start(&["--prefix-cache", "4096", "--prefix-block", "4", "--itl", "1h", "--tokens-per-event", "2"]);
    let mut stream = mock.connect();
    stream.write_all(request("/v1/chat/completions", &body, "").as_bytes()).unwrap();
    read_until(&mut stream, "data: ", 2);
    drop(stream);
    assert_eq!(mock.log(1)[0]["outcome"], "client_closed");
    assert_eq!(metric(&mock, "sweepline_mock:prefix_cache_blocks"), 12);
}

#[test]
fn a_cache_smaller_than_a_block_is_refused() {
    let mut command = std::process::Command::new(lab::program());
    let output = command.args(["mock", "--prefix-cache", "31", "--prefix-block", "32"]).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--prefix-cache 31 is less than one block of 32 tokens"), "{said}");
}
