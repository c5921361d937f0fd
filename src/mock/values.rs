//! Responses that consist of vectors or scores: `data` of embeddings, `results` of a ranking.

use super::part::Usage;

/// Length of a vector. Real vectors have hundreds of elements, but clients wait equally long.
const DIMENSIONS: usize = 8;

/// Formats the usage of a response without tokens.
fn usage(usage: Usage) -> String {
    let Usage { prompt, .. } = usage;
    format!(r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{prompt}}}"#)
}

/// Returns a list with this many elements, and with the addition that a fault requires.
fn list(count: usize, element: impl Fn(usize) -> String, extra: &[u8]) -> Vec<u8> {
    let elements: Vec<String> = (0..count).map(element).collect();
    [b"[", elements.join(",").as_bytes(), extra, b"]"].concat()
}

/// Returns the members of a response with this many vectors: `data` and usage.
pub(super) fn vectors(count: usize, extra: &[u8], counts: Usage) -> Vec<u8> {
    let vector = |at: usize| {
        let numbers: Vec<String> = (0..DIMENSIONS).map(|number| format!("0.{}", at + number + 1)).collect();
        format!(r#"{{"object":"embedding","index":{at},"embedding":[{}]}}"#, numbers.join(","))
    };
    [br#""data":"#, &list(count, vector, extra)[..], b",", usage(counts).as_bytes()].concat()
}

/// Returns the members of a response with this many scores, the best first.
pub(super) fn scores(count: usize, extra: &[u8], counts: Usage) -> Vec<u8> {
    let score = |at: usize| format!(r#"{{"index":{at},"relevance_score":{}}}"#, 1.0 / (at + 1) as f64);
    [br#""results":"#, &list(count, score, extra)[..], b",", usage(counts).as_bytes()].concat()
}
