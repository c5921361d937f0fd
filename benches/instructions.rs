//! The steps of the hot path that use neither socket nor clock, for counting instructions with `callgrind`,
//! whose counts do not depend on other users of the machine. Run the bench with a step and with `none`; the
//! difference is the cost of the step:
//!
//!     cargo bench --bench instructions --no-run
//!     valgrind --tool=callgrind target/release/deps/instructions-… STEP 2000
//!
//! Steps: `http` (head and chunks), `frame` (events), `parse` (every event in full), `template`, `record`
//! (framing, parsing, tally), `none`. Each step processes one stream of 128 tokens, as vLLM writes it, the
//! given number of times. The bench compares nothing; docs/ENGINE.md has the current and earlier figures.

use std::hint::black_box;

use sweepline::engine::steps;

const TOKENS: u32 = 128;

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-4f1c2a9be7d04c5d8a1f\",\"object\":\"chat.completion.chunk\",\"created\":1795276800,\
         \"model\":\"meta-llama/Llama-3.1-70B-Instruct\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
         \"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// Returns the body of one response, one event per piece.
fn pieces() -> Vec<String> {
    let words = [" the", " router", " keeps", " a", " list", " of", " open", " requests"];
    let mut pieces = vec![event(r#"{"role":"assistant","content":""}"#, "null")];
    let token = |k: usize| event(&format!(r#"{{"content":"{}"}}"#, words[k % words.len()]), "null");
    pieces.extend((0..TOKENS as usize).map(token));
    pieces.push(event("{}", "\"length\""));
    pieces.push(
        "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":128}}\n\n".into(),
    );
    pieces.push("data: [DONE]\n\n".into());
    pieces
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let times = words.get(1).and_then(|times| times.parse().ok()).unwrap_or(1);
    let step = words.first().map_or("none", String::as_str);
    let pieces = pieces();
    let bytes: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
    let data = |piece: &String| piece.trim_start_matches("data: ").trim_end().as_bytes().to_vec();
    let events: Vec<Vec<u8>> = pieces.iter().map(data).filter(|data| data != b"[DONE]").collect();
    let chunk = |piece: &String| format!("{:x}\r\n{piece}\r\n", piece.len());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let wire = [head.to_owned(), pieces.iter().map(chunk).collect(), "0\r\n\r\n".to_owned()].concat().into_bytes();
    for _ in 0..times {
        match step {
            "http" => steps::http(&wire, |piece| keep(piece.len())),
            "frame" => steps::frame(bytes.iter().copied(), |data| keep(data.len())),
            "parse" => keep(events.iter().filter(|event| steps::parse(event)).count()),
            "template" => keep(steps::template(&events)),
            "record" => keep(steps::record(&bytes, TOKENS, &mut || 10_000_000)),
            "none" => {}
            other => panic!("unknown step: {other}"),
        }
    }
}

/// Keeps the compiler from removing the computation of `value`.
fn keep<T>(value: T) {
    black_box(value);
}
