//! The section on symptoms and their usual meaning, as in the output of `diagnose`.

use super::super::naming::{content, load, short};
use super::super::sources::Sources;
use super::super::view::{Block, Cell, Found, Missing, Section, Table};
use crate::analysis::diagnosis::{Diagnosis, Finding, NOT_SHOWN, memory_busy};
use crate::report::format::plain;

const TITLE: &str = "Symptoms";

/// Builds the section, or states why it is missing.
pub(crate) fn symptoms(sources: &Sources) -> Found {
    let seen = || sources.diagnoses.iter().filter(|one| matches!(one.finding, Finding::Seen(_)));
    if seen().next().is_none() && sources.bound.predicted.is_empty() {
        let checked = sources.diagnoses.iter().filter(|one| matches!(one.finding, Finding::NotSeen(_))).count();
        let of = sources.diagnoses.len();
        let why = match checked {
            0 => format!("none of {of} symptoms could be checked: `sweepline diagnose` lists what is needed"),
            _ => {
                let within = sources.diagnoses.iter().filter(|one| is_not_shown(one)).count();
                let within = match within {
                    0 => String::new(),
                    1 => "; the figures for 1 may be chance".to_owned(),
                    within => format!("; the figures for {within} may be chance"),
                };
                format!("{checked} of {of} symptoms were checked and none is shown{within}: see `sweepline diagnose`")
            }
        };
        return Err(Missing { title: TITLE, why });
    }
    let mut blocks = Vec::new();
    for diagnosis in seen() {
        let Finding::Seen(evidence) = &diagnosis.finding else { continue };
        let symptom = &diagnosis.symptom;
        blocks.push(Block::Heading { text: symptom.title.to_owned() });
        blocks.push(Block::List { items: evidence.iter().map(|one| plain(&one.text)).collect() });
        let facts = [
            ("likely", symptom.regime),
            ("confirm with", symptom.confirm),
            ("refuted by", symptom.refute),
            ("try first", symptom.response),
        ];
        blocks.push(Block::Facts { facts: facts.map(|(name, text)| (name.to_owned(), text.to_owned())).into() });
    }
    blocks.extend(not_shown(sources));
    if !sources.bound.predicted.is_empty() {
        blocks.push(Block::Heading { text: "Decoding compared with the limit of memory bandwidth".to_owned() });
        blocks.push(Block::Table { table: bound(sources) });
    }
    blocks.push(Block::Text { text: format!("Not measured: {}.", plain(&sources.not_measured)) });
    Ok(Section { id: "symptoms", title: TITLE, blocks })
}

fn is_not_shown(one: &Diagnosis) -> bool {
    matches!(&one.finding, Finding::NotSeen(why) if why.starts_with(NOT_SHOWN))
}

/// Returns the symptoms that the figures suggest without showing them, because their intervals do not rule
/// out chance; `None` if there are none.
fn not_shown(sources: &Sources) -> Option<Block> {
    let of = |one: &Diagnosis| match &one.finding {
        Finding::NotSeen(why) if is_not_shown(one) => Some(plain(&format!("{}: {why}", one.symptom.title))),
        _ => None,
    };
    let items: Vec<String> = sources.diagnoses.iter().filter_map(of).collect();
    let title = "Not shown: indicated by the figures only within their intervals".to_owned();
    (!items.is_empty()).then_some(Block::Folded { title, items })
}

fn bound(sources: &Sources) -> Table {
    let columns = [
        "run",
        "endpoint",
        "model",
        "scenario",
        "load",
        "measured, tokens/s#",
        "weights allow#",
        "with KV cache#",
        "measured ÷ allowed#",
        "memory busy#",
    ];
    let mut table = Table::new("Tokens per second of one stream", &columns);
    for one in sources.bound.predicted {
        let labels = one.run.labels;
        table.rows.push(vec![
            Cell::text(&short(&labels.run_id)),
            Cell::text(&labels.endpoint),
            Cell::text(&labels.model),
            Cell::text(&content(labels)),
            Cell::text(&load(labels)),
            Cell::number(one.measured()),
            Cell::number(Some(one.prediction.by_weights)),
            Cell::number(one.prediction.with_kv),
            Cell::number(one.ratio()),
            Cell::number(memory_busy(&one.run)),
        ]);
    }
    table
}
