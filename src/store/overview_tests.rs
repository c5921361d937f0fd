//! Tests that an overview of indexed runs equals an overview for which every run is read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::overview::Rules;
use super::tests::{cut_end, cut_front, flip_a_bit, id, remove, results, run_once, swap_id, uncover};
use super::*;

/// Rules that add every run to the index immediately.
const ALL: Rules = Rules { worth: 0, settled: Duration::ZERO, news: 1 };
/// Rules under which the index is not used.
const NONE: Rules = Rules { worth: usize::MAX, ..ALL };

fn overview(dir: &Path, rules: Rules) -> Overview {
    Store::open(dir).overview_by(rules, &|_| None).unwrap()
}

/// Returns the summaries in an overview, sorted by the run's id, and the number of records that were read
/// for it.
fn said(dir: &Path, rules: Rules) -> (Vec<(ShortId, Brief)>, usize) {
    let overview = overview(dir, rules);
    let mut runs: Vec<(ShortId, Brief)> =
        overview.iter().map(|(id, brief)| (id, Brief { stamp: None, ..brief.clone() })).collect();
    runs.sort_by_key(|(id, _)| *id);
    (runs, overview.read())
}

/// Creates three runs and adds them to the index.
fn remembered(dir: &Path) {
    "abc".chars().for_each(|digit| drop(run_once(dir, &id(digit))));
    let first = overview(dir, ALL);
    assert_eq!(first.read(), 3);
    Store::open(dir).remember(&first);
    let (runs, read) = said(dir, ALL);
    assert_eq!((runs.len(), read), (3, 0), "nothing has changed");
    assert_eq!(runs, said(dir, NONE).0);
}

#[test]
fn what_is_remembered_is_what_would_be_read() {
    type Change<'a> = (&'a str, fn(&Path));
    let a = |name: &str| format!("runs/{}/{name}", short(&id('a')));
    let files: [Change<'_>; 8] = [
        ("run.json", flip_a_bit),
        ("run.json", uncover),
        ("run.json", cut_end),
        ("run.json", swap_id),
        ("run.json", remove),
        ("requests.parquet", cut_front),
        ("events.parquet", remove),
        ("texts.parquet", |path| fs::write(path, "texts").unwrap()),
    ];
    let entry = format!("inventory/{}.json", short(&id('a')));
    let others: [Change<'_>; 4] = [
        (&entry, flip_a_bit),
        (&entry, remove),
        ("runs", |path| fs::remove_dir_all(path.join(short(&id('a')))).unwrap()),
        ("", |path| drop(run_once(path, &id('a')))),
    ];
    let files = files.map(|(name, change)| (a(name), change));
    for (place, change) in files.into_iter().chain(others.map(|(place, change)| (place.to_owned(), change))) {
        let (_keep, dir) = results();
        remembered(&dir);
        let before = said(&dir, NONE).0;
        change(&dir.join(&place));
        let (now, read) = said(&dir, ALL);
        assert_eq!(now, said(&dir, NONE).0, "{place}");
        assert_ne!(now, before, "{place}: the change is noticed");
        assert_eq!(read, usize::from(now.len() == 3), "{place}: only the changed run is read");
    }
}

#[test]
fn a_file_that_was_just_written_is_not_remembered() {
    let (_keep, dir) = results();
    run_once(&dir, &id('a'));
    let rules = Rules { settled: Duration::from_secs(3_600), ..ALL };
    Store::open(&dir).remember(&overview(&dir, rules));
    assert_eq!(said(&dir, ALL).1, 1);
}

#[test]
fn an_index_that_is_damaged_or_gone_is_read_as_none() {
    for damage in [flip_a_bit as fn(&Path), cut_front, remove] {
        let (_keep, dir) = results();
        remembered(&dir);
        damage(&Store::open(&dir).layout().index());
        assert_eq!(said(&dir, ALL).1, 3);
        remembered_again(&dir);
    }
}

fn remembered_again(dir: &Path) {
    Store::open(dir).remember(&overview(dir, ALL));
    assert_eq!(said(dir, ALL).1, 0);
}

#[test]
fn a_writer_enters_what_is_behind_and_reads_nothing_else() {
    let (_keep, dir) = results();
    remembered(&dir);
    remove(&dir.join(format!("inventory/{}.json", short(&id('a')))));
    assert_eq!(said(&dir, ALL).0.iter().filter(|(_, brief)| brief.wants_entry()).count(), 1);
    drop(Store::lock(&dir).unwrap());
    assert_eq!(said(&dir, ALL).0.iter().filter(|(_, brief)| brief.wants_entry()).count(), 0);
}
