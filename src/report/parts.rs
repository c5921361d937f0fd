//! Renders how the time of a run's requests was spent: a table of means, each as the sum of its parts.

use comfy_table::Cell;

use crate::analysis::{Part, Whole};

use super::format::{digits, fill};
use super::grid::{self, right};

/// Renders the table; returns an empty string if nothing is known.
pub(super) fn block(wholes: &[Whole]) -> String {
    if wholes.is_empty() {
        return String::new();
    }
    let mut table = grid::table();
    table.set_header(std::iter::once(Cell::new("")).chain(wholes.iter().flat_map(heading)));
    for name in names(wholes) {
        let cells = wholes.iter().flat_map(|whole| cells(whole, name));
        table.add_row(std::iter::once(Cell::new(format!("  {}", words(name)))).chain(cells));
    }
    let sum = wholes.iter().flat_map(|whole| [right(digits(whole.mean_ms)), right("")]);
    table.add_row(std::iter::once(Cell::new("  from the schedule")).chain(sum));
    let counts: Vec<String> = wholes.iter().map(|whole| format!("{} of {}", title(whole), whole.requests)).collect();
    let head = format!("where the time went: means of requests that ended in the window, {}", counts.join(", "));
    fill("", 2, &head) + &grid::text(table, 2, &[]) + &reasons(wholes)
}

fn title(whole: &Whole) -> String {
    whole.name.to_uppercase()
}

fn heading(whole: &Whole) -> [Cell; 2] {
    [right(format!("{} ms", title(whole))), right("share")]
}

/// Returns the names of all parts, in the order of the sum with the most parts.
fn names(wholes: &[Whole]) -> Vec<&'static str> {
    let longest = wholes.iter().max_by_key(|whole| whole.parts.len());
    longest.iter().flat_map(|whole| &whole.parts).map(|part| part.name).collect()
}

fn cells(whole: &Whole, name: &str) -> [Cell; 2] {
    match whole.parts.iter().find(|part| part.name == name).map(|part| &part.ms) {
        Some(Ok(ms)) if whole.mean_ms > 0.0 => {
            let percent = (ms / whole.mean_ms * 100.0).round();
            [right(in_ms(*ms)), right(format!("{}%", unsigned_zero(percent)))]
        }
        Some(Ok(ms)) => [right(in_ms(*ms)), right("")],
        Some(Err(_)) => [right("n/a"), right("")],
        None => [right(""), right("")],
    }
}

/// Formats milliseconds. Less than half a microsecond is shown as 0, because the remainder of a sum is only
/// as exact as the means.
fn in_ms(ms: f64) -> String {
    digits(if ms.abs() < 5e-4 { 0.0 } else { ms })
}

/// Removes the sign of a negative zero.
fn unsigned_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

/// Returns the name of a part in words.
pub(crate) fn words(name: &str) -> String {
    match name {
        "outside_server" => "outside the server".to_owned(),
        "server_unassigned" => "in the server, unassigned".to_owned(),
        name => name.replace('_', " "),
    }
}

/// Lists the reasons why parts are unknown, each once.
fn reasons(wholes: &[Whole]) -> String {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for whole in wholes {
        for Part { name, ms, .. } in &whole.parts {
            let Err(why) = ms else { continue };
            match said.iter_mut().find(|(what, other)| *what == words(name) && other[0] == *why) {
                Some((_, of)) => of.push(title(whole)),
                None => said.push((words(name), vec![why.clone(), title(whole)])),
            }
        }
    }
    let line = |(what, rest): &(String, Vec<String>)| {
        fill("  ", 4, &format!("{what} ({}): n/a ({})", rest[1..].join(", "), rest[0]))
    };
    said.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_a_sum_with_reasons() {
        let part = |name: &'static str, ms: Result<f64, &str>| Part { name, doc: "", ms: ms.map_err(str::to_owned) };
        let parts = |more: &[Part]| {
            let first = [("client", 0.2), ("connection", 0.0), ("outside_server", 1.3), ("queue", 18.5)];
            let known = first.map(|(name, ms)| part(name, Ok(ms)));
            known.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>()
        };
        let why = "no page has prefill_seconds";
        let rest = |unknown| [part("server_unassigned", Err("unknown without prefill")), part("unknown", Ok(unknown))];
        let ttft = [vec![part("prefill", Err(why))], rest(32.1).to_vec()].concat();
        let e2e = [vec![part("prefill", Err(why)), part("decode", Ok(120.0))], rest(32.3).to_vec()].concat();
        let wholes = [
            Whole { name: "ttft", requests: 812, mean_ms: 52.1, parts: parts(&ttft) },
            Whole { name: "e2e", requests: 810, mean_ms: 172.3, parts: parts(&e2e) },
        ];
        insta::assert_snapshot!(block(&wholes));
        assert_eq!(block(&[]), "");
    }
}
