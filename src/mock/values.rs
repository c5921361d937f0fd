//! Creates responses that consist of vectors or scores: the `data` of embeddings, and the `results` of a
//! ranking.

use super::part::Usage;

/// Number of elements of a vector. Real vectors have hundreds of elements, but this makes no difference to
/// how long clients wait.
const DIMENSIONS: usize = 8;

/// Formats the usage of a response that has no completion tokens.
fn usage(usage: Usage) -> String {
    let Usage { prompt, .. } = usage;
    format!(r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{prompt}}}"#)
}

/// Returns a JSON list of `count` elements. The bytes that a fault inserts (`extra`) precede the closing
/// bracket.
fn list(count: usize, element: impl Fn(usize) -> String, extra: &[u8]) -> Vec<u8> {
    let elements: Vec<String> = (0..count).map(element).collect();
    [b"[", elements.join(",").as_bytes(), extra, b"]"].concat()
}

/// Returns the JSON members of a response with `count` vectors: `data` and `usage`.
pub(super) fn vectors(count: usize, extra: &[u8], counts: Usage) -> Vec<u8> {
    let vector = |at: usize| {
        let numbers: Vec<String> = (0..DIMENSIONS).map(|number| format!("0.{}", at + number + 1)).collect();
        format!(r#"{{"object":"embedding","index":{at},"embedding":[{}]}}"#, numbers.join(","))
    };
    [br#""data":"#, &list(count, vector, extra)[..], b",", usage(counts).as_bytes()].concat()
}

/// Returns the members `results` and `usage` of a JSON response with `count` scores, best first.
pub(super) fn scores(count: usize, extra: &[u8], counts: Usage) -> Vec<u8> {
    let score = |at: usize| format!(r#"{{"index":{at},"relevance_score":{}}}"#, 1.0 / (at + 1) as f64);
    [br#""results":"#, &list(count, score, extra)[..], b",", usage(counts).as_bytes()].concat()
}
