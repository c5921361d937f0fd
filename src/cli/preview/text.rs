//! The preview as text, by sweep: runs with the same reason are grouped, followed by the cost and
//! its rules.

use indexmap::IndexMap;

use crate::analysis::comparison::{allowed, percent};
use crate::expand::Waits;
use crate::report::format::{digits, fill, plain};
use crate::report::grid::{self, grid, lines};
use crate::report::{has_screen, priced};
use crate::sweep::resume::Action;
use crate::units::text::counted;

use super::super::budget::BudgetState;
use super::super::estimate::Cost;
use super::super::probe;
use super::entries::{Counts, Entry, MarginCost, Preview};
use super::pending::PendingCell;
use super::repeats;

/// Maximum number of runs of a group that are named.
const MOST_NAMES: usize = 3;
/// Column where the text of a group begins.
const INDENT: usize = 22;

/// The note on the order in which runs are shown and the order in which they are measured.
const ORDER: &str = "runs are shown in the order of the plan's matrices; `run` measures the cells of a repeat in an \
                     order shuffled by the plan's seed";

/// The note on the order of display and the order of measurement if the plan launches servers.
const ORDER_OF_SERVERS: &str = "runs are shown in the order of the plan's matrices; `run` measures runs that need the \
                                same server one after another, in an order shuffled by the plan's seed; a comparison \
                                between servers keeps its rounds";

/// Returns the whole preview; with `all`, each run has its own line.
pub(crate) fn text(preview: &Preview, all: bool) -> String {
    let mut out = format!("{} ({}) against {}\n", plain(&preview.plan), preview.file, preview.results);
    if all {
        out.push('\n');
        out.push_str(&table(&preview.runs));
    } else {
        for part in &preview.sweeps {
            let runs: Vec<&Entry> = preview.runs.iter().filter(|entry| entry.sweep == part.sweep).collect();
            let waiting: Vec<&PendingCell> = preview.pending.iter().filter(|cell| cell.sweep == part.sweep).collect();
            if !runs.is_empty() || !waiting.is_empty() {
                let place = part.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
                let counts = counts(&part.totals.states, &waiting);
                out.push_str(&format!("\n{}{place}: {counts}\n", plain(&part.sweep)));
                out.push_str(&groups(&runs));
                out.push_str(&pending_groups(&waiting));
                let choices = preview.choices.iter().filter(|choice| choice.sweep == part.sweep);
                out.push_str(&choices.map(|choice| labelled(choice.chooses, &choice.words())).collect::<String>());
                let repeats = repeats::words(preview.repeats.iter().filter(|cell| cell.sweep == part.sweep));
                out.push_str(&repeats.map(|words| labelled("repeats", &plain(&words))).unwrap_or_default());
                let workers = part.workers.map(|workers| format!("{workers} send the load of each run together"));
                out.push_str(&workers.map(|words| labelled("workers", &words)).unwrap_or_default());
                if part.totals.to_do.runs > 0 {
                    out.push_str(&labelled("to do", &in_one_line(&part.totals.to_do)));
                }
                out.push_str(&part.margin.iter().map(|margin| labelled("margin", &shown(margin))).collect::<String>());
            }
        }
        let orphans: Vec<&Entry> = preview.runs.iter().filter(|entry| entry.state == Action::Orphan).collect();
        if !orphans.is_empty() {
            out.push_str(&fill(
                "\norphans: ",
                2,
                &format!("{}: {}", counted(orphans.len(), "run"), preview.rules.orphan),
            ));
            out.push_str(&fill("  ", 2, &names(&orphans)));
        }
    }
    let more = if preview.choices.iter().any(|choice| choice.next.is_some()) {
        ", and those that searches and ladders request later"
    } else {
        ""
    };
    let waiting: Vec<&PendingCell> = preview.pending.iter().collect();
    out.push_str(&format!("\nin all: {}{more}\n", counts(&preview.totals.states, &waiting)));
    out.push_str(&totals(preview));
    let budget = preview.budget.iter().flat_map(BudgetState::words);
    out.push_str(&budget.map(|words| labelled("budget", &words)).collect::<String>());
    out.push_str(&preview.data.iter().map(|data| labelled(data.note.used_for, &data.words())).collect::<String>());
    out.push_str(&servers(preview));
    out
}

/// Returns how much rounds may differ if the repeats are to show a margin: `5 repeats show 2 % in 4 of 5
/// cases if rounds of equal arms differ by less than 1.5 %`.
fn shown(margin: &MarginCost) -> String {
    let (repeats, share) = (margin.repeats, allowed(margin.margin));
    let differ = percent(margin.rounds_may_differ_by);
    format!("{repeats} repeats show {share} in 4 of 5 cases if rounds of equal arms differ by less than {differ}")
}

/// Returns the counts: `3 new, 1 to redo, 4 cached, 2 pending`; runs that wait for an earlier sweep are
/// counted under their state.
fn counts(counts: &Counts, waiting: &[&PendingCell]) -> String {
    let Counts { new, redo, given_up, pending, pruned, cached, orphan } = counts;
    let of = |state: Waits| -> usize {
        waiting.iter().filter(|cell| cell.state == state).map(|cell| cell.repeats as usize).sum()
    };
    let (pending, pruned) = (&(pending + of(Waits::Pending)), &(pruned + of(Waits::Pruned) + of(Waits::LeftOut)));
    let [blocked, stopped, undecided] = &[Waits::Blocked, Waits::Stopped, Waits::Undecided].map(of);
    let all = [
        (new, "new"),
        (redo, "to redo"),
        (given_up, "given up"),
        (pending, "pending"),
        (blocked, "blocked"),
        (stopped, "stopped by a gate"),
        (undecided, "behind an undecided gate"),
        (pruned, "pruned"),
        (cached, "cached"),
        (orphan, if *orphan == 1 { "orphan" } else { "orphans" }),
    ];
    let said: Vec<String> =
        all.iter().filter(|(count, _)| **count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if said.is_empty() { "no runs".to_owned() } else { said.join(", ") }
}

fn labelled(label: &str, words: &str) -> String {
    fill(&format!("  {label:<width$}", width = INDENT - 2), INDENT, words)
}

/// Returns a line for each state and reason, with the names of the first runs that share them.
fn groups(entries: &[&Entry]) -> String {
    let mut groups: IndexMap<(Action, &str), Vec<&Entry>> = IndexMap::new();
    for entry in entries {
        // With hundreds of runs, individual commit times are not of interest.
        let reason = if entry.state == Action::Cached { "" } else { entry.reason.as_str() };
        groups.entry((entry.state, reason)).or_default().push(entry);
    }
    let order = |state: &Action| Action::ALL.iter().position(|other| other == state);
    groups.sort_by(|(a, _), _, (b, _), _| order(a).cmp(&order(b)));
    let group = |((state, reason), entries): (&(Action, &str), &Vec<&Entry>)| {
        let label = format!("{:<7} {}", state.name(), counted(entries.len(), "run"));
        let reason = if *state == Action::Cached { committed(entries) } else { plain(reason) };
        format!("{}{}", labelled(&label, &reason), fill(&" ".repeat(INDENT), INDENT, &names(entries)))
    };
    groups.iter().map(group).collect()
}

/// Returns a line for each state and reason of cells that have no runs (yet), with the names of the first
/// cells.
fn pending_groups(waiting: &[&PendingCell]) -> String {
    let mut groups: IndexMap<(Waits, &str), Vec<&PendingCell>> = IndexMap::new();
    for cell in waiting {
        groups.entry((cell.state, &cell.why)).or_default().push(cell);
    }
    let group = |((state, why), cells): (&(Waits, &str), &Vec<&PendingCell>)| {
        let runs: usize = cells.iter().map(|cell| cell.repeats as usize).sum();
        let state = if *state == Waits::LeftOut { "skipped" } else { state.name() };
        let label = format!("{state:<7} {}", counted(runs, "run"));
        let mut names: Vec<String> = cells.iter().take(MOST_NAMES).map(|cell| plain(&cell.name())).collect();
        names.extend((cells.len() > MOST_NAMES).then(|| format!("… and {} more", cells.len() - MOST_NAMES)));
        format!("{}{}", labelled(&label, &plain(why)), fill(&" ".repeat(INDENT), INDENT, &names.join(", ")))
    };
    groups.iter().map(group).collect()
}

/// Returns `committed 2026-01-02T03:04:05Z`, or the range if there are several times.
fn committed(entries: &[&Entry]) -> String {
    let first = entries.iter().map(|entry| entry.reason.as_str()).min().unwrap_or_default();
    let last = entries.iter().map(|entry| entry.reason.as_str()).max().unwrap_or_default();
    match first == last {
        true => first.to_owned(),
        false => format!("{first} to {}", last.trim_start_matches("committed ")),
    }
}

/// Returns the first names of a group, with their ids.
fn names(entries: &[&Entry]) -> String {
    let named = entries.iter().take(MOST_NAMES);
    let mut names: Vec<String> = named.map(|entry| format!("{} ({})", plain(&entry.name), &entry.id[..8])).collect();
    match entries.len().saturating_sub(MOST_NAMES) {
        0 => {}
        more => names.push(format!("… and {more} more (--all)")),
    }
    names.join(", ")
}

fn table(entries: &[Entry]) -> String {
    let header = ["state", "run", "sweep", "what", "reason"];
    let is_limited = has_screen();
    let mut table = if is_limited { grid::table() } else { grid(header) };
    table.set_header(header);
    for entry in entries {
        let cells = [entry.state.name(), &entry.id[..8], &entry.sweep, &entry.name, &entry.reason];
        table.add_row(cells.map(plain));
    }
    if is_limited {
        return grid::text(table, 2, &[2, 3, 4]);
    }
    lines(table).iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the cost in one line: `3 runs · 1200 requests · 60000 prompt and 15000 output tokens · about
/// 4m30s · 0.78 at the declared prices`.
fn in_one_line(cost: &Cost) -> String {
    let mut parts = vec![counted(cost.runs, "run"), requests(cost)];
    parts.extend((cost.requests > 0).then(|| tokens(cost)));
    parts.push(cost.time_words());
    parts.extend(money(cost).map(|money| format!("{money} at the declared prices")));
    parts.join(" · ")
}

fn requests(cost: &Cost) -> String {
    let unknown = match cost.runs_with_unknown_requests {
        0 => None,
        count if count == cost.runs => Some("requests unknown until measured".to_owned()),
        count => Some(format!("those of {} unknown until measured", counted(count, "run"))),
    };
    if cost.runs_with_unknown_requests == cost.runs {
        return unknown.unwrap_or_else(|| "0 requests".to_owned());
    }
    let sources: Vec<&str> = cost.estimated_from.iter().take(MOST_NAMES).map(String::as_str).collect();
    let more = cost.estimated_from.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let from = match sources.is_empty() {
        true => String::new(),
        false => format!(" (closed loops estimated from {}{more})", sources.join(", ")),
    };
    let unknown = unknown.map(|unknown| format!(", {unknown}")).unwrap_or_default();
    format!("{} requests{from}{unknown}", cost.requests)
}

fn tokens(cost: &Cost) -> String {
    format!("{} prompt and {} output tokens", cost.prompt_tokens, cost.output_tokens)
}

/// Returns the known part of the money; `None` if no run has a known length.
fn money(cost: &Cost) -> Option<String> {
    let known = cost.money.filter(|_| cost.runs_of_unknown_length < cost.runs);
    known.map(|money| priced(digits(money), cost.currency))
}

/// Returns the cost of all runs to do, each figure with its rule.
fn totals(preview: &Preview) -> String {
    let (cost, rules) = (&preview.totals.to_do, &preview.rules);
    if cost.runs == 0 {
        return "  nothing to do\n".to_owned();
    }
    let states = &preview.totals.states;
    let shared = states.new + states.redo - cost.runs;
    let shared = match shared {
        0 => String::new(),
        1 => "; 1 more run is identical to one of these and counts once".to_owned(),
        more => format!("; {more} more runs are identical to some of these and count once"),
    };
    let mut out = labelled("to do", &format!("{}{shared}", counted(cost.runs, "run")));
    let with_rule = |label: &str, figure: String, rule: &str| labelled(label, &format!("{figure}: {rule}"));
    out.push_str(&with_rule("requests", requests(cost), rules.requests));
    if cost.requests > 0 {
        out.push_str(&with_rule("tokens", tokens(cost), rules.tokens));
    }
    out.push_str(&with_rule("time", cost.time_words(), rules.time));
    if let Some(money) = money(cost) {
        let lacking: Vec<&str> = cost.without_price.iter().map(String::as_str).collect();
        let lacking = match lacking.is_empty() {
            true => String::new(),
            false => format!("; without a price: {}", plain(&lacking.join(", "))),
        };
        out.push_str(&with_rule("money", money, &format!("{}{lacking}", rules.money)));
    }
    let starts = preview.starts.iter().map(|starts| labelled("starts", &plain(&starts.words())));
    out.push_str(&starts.collect::<String>());
    let hooks = preview.hooks.iter().map(|hook| labelled("hooks", &plain(&hook.words())));
    out.push_str(&hooks.collect::<String>());
    let commands = preview.token_commands.iter().map(|command| labelled("secrets", &plain(&command.words())));
    out.push_str(&commands.collect::<String>());
    // Hooks and the commands that print tokens have their own lines.
    let executes = preview.executes.iter().filter(|command| command.is_of_processes());
    out.push_str(&executes.map(|command| labelled("executes", &plain(&command.words()))).collect::<String>());
    let sends = preview.sends.iter().map(|secret| labelled("sends", &plain(&secret.words())));
    out.push_str(&sends.collect::<String>());
    let scrapes = preview.scrapes.iter().map(|scrapes| labelled("scrapes", &plain(&scrapes.words())));
    out.push_str(&scrapes.collect::<String>());
    out.push_str(&labelled("order", if preview.starts.is_empty() { ORDER } else { ORDER_OF_SERVERS }));
    out
}

/// Returns the servers' reports, and how they differ from the servers on which the results were measured.
fn servers(preview: &Preview) -> String {
    let Some(asked) = &preview.endpoints else { return String::new() };
    let mut out = format!("\n{}", probe::text(asked));
    for differs in preview.differing.iter().flatten() {
        let whose = differs.endpoint.as_ref().map_or("this machine".to_owned(), |endpoint| plain(endpoint));
        out.push_str(&format!(
            "{whose}: {} differs: {} with {}, now {}\n",
            differs.what,
            counted(differs.runs, "run"),
            plain(&differs.committed),
            plain(&differs.now),
        ));
    }
    out
}
