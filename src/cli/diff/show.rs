//! A comparison of two plans as data, as text, and as Markdown for a pull request.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::expand::PlannedRun;
use crate::plan::Scalar;
use crate::report::format::{fill, plain};
use crate::sweep::event::planned_name;
use crate::units::text::counted;

use super::compare::{Compared, Group};
use super::costs::Costs;
use super::edits::{Edit, Kind};
use super::source::Side;

/// Maximum number of runs of a group that are named in text.
const MOST_NAMES: usize = 3;
/// Column where the text of a group begins.
const INDENT: usize = 22;

/// The differences between two plans.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// The old plan, as file or file@revision.
    pub a: String,
    /// The new plan, as file or file@revision.
    pub b: String,
    /// Runs of the new plan that the old plan lacks.
    pub come: Vec<Run>,
    /// Runs of the old plan that the new plan lacks.
    pub go: Vec<Run>,
    /// Runs of both plans.
    pub stay: Vec<Run>,
    /// The added and removed runs, grouped by the edits that add or remove them.
    pub edits: Vec<Part>,
    /// Edits that add or remove none of these runs but affect what is executed: which of the possible
    /// runs searches and ladders request, or cells that wait for the result of an earlier sweep.
    pub deciding: Vec<Edit>,
    /// Edits that add or remove no run and change no decision.
    pub without_effect: Vec<Edit>,
    /// Duration of the added runs, in seconds, computed by the rule for time in `cost`. Runs that searches and
    /// ladders may request are not counted.
    pub seconds: f64,
    /// Whether one of the plans has a search or a ladder. In that case, all runs that the search or ladder
    /// may request are listed, but only a few are executed.
    pub choose_runs: bool,
    /// The cost of all runs of each plan, and the difference.
    cost: Costs,
}

/// A run of one of the plans.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Run {
    /// The full id, 64 hex digits.
    pub id: String,
    /// The sweep of the run.
    pub sweep: String,
    /// The run's value for each axis.
    pub cell: Map<String, Value>,
    /// The number of the repeat within the cell, counted from 0.
    pub repeat: u32,
    #[serde(skip)]
    name: String,
}

/// Runs that are added and removed by the same edits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Part {
    /// The edits, each of which affects all runs of the group.
    pub edits: Vec<Edit>,
    /// Ids of added runs.
    pub come: Vec<String>,
    /// Ids of removed runs.
    pub go: Vec<String>,
    #[serde(skip)]
    names: [Vec<String>; 2],
}

impl Diff {
    /// Returns the comparison of `a` and `b`.
    pub(crate) fn new(a: &Side, b: &Side, compared: Compared, cost: Costs) -> Diff {
        let (mut come, mut go) = (Vec::new(), Vec::new());
        for group in &compared.groups {
            come.extend(group.come.iter().map(|run| Run::of(run)));
            go.extend(group.go.iter().map(|run| Run::of(run)));
        }
        Diff {
            a: a.name.clone(),
            b: b.name.clone(),
            come,
            go,
            stay: compared.stay.iter().map(|run| Run::of(run)).collect(),
            edits: compared.groups.iter().map(Part::of).collect(),
            deciding: compared.deciding,
            without_effect: compared.without_effect,
            seconds: cost.added().seconds,
            choose_runs: !a.expansion.pools.is_empty() || !b.expansion.pools.is_empty(),
            cost,
        }
    }

    /// Returns the summary line: `2 new runs (about 4m30s), 1 gone, 9 kept`.
    fn summary(&self) -> String {
        let verb = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let added = self.cost.added();
        let time = match added.seconds == 0.0 && added.starts == 0 {
            true => String::new(),
            false => format!(" ({})", added.time_words()),
        };
        let chosen = if self.choose_runs { ", including all that searches and ladders may request" } else { "" };
        format!(
            "{}{time}, {}, {}{chosen}",
            verb(self.come.len(), "new run", "new runs"),
            verb(self.go.len(), "gone", "gone"),
            verb(self.stay.len(), "kept", "kept"),
        )
    }

    /// Returns the text for people.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{} → {}: {}\n", self.a, self.b, self.summary());
        for part in &self.edits {
            out.push('\n');
            part.edits.iter().for_each(|edit| out.push_str(&fill(&format!("{} ", edit.sentence()), 2, &edit.places())));
            for (verb, names) in ["new", "gone"].iter().zip(&part.names) {
                if !names.is_empty() {
                    let count = counted(names.len(), "run");
                    let label = format!("  {:<width$}", format!("{verb:<6}{count}"), width = INDENT - 2);
                    out.push_str(&fill(&label, INDENT, &some(names)));
                }
            }
        }
        for (title, edits) in
            [("decides which runs are executed", &self.deciding), ("affects no run", &self.without_effect)]
        {
            if !edits.is_empty() {
                out.push_str(&format!("\n{title}:\n"));
                let line = |edit: &Edit| fill(&format!("  {} ", edit.sentence()), 4, &edit.places());
                out.extend(edits.iter().map(line));
            }
        }
        out.push_str(&self.cost.text());
        out
    }

    /// Returns the Markdown for a pull request.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!("**{}** → **{}**: {}\n", escaped(&self.a), escaped(&self.b), self.summary());
        out.push_str(&self.cost.markdown());
        if !self.edits.is_empty() {
            out.push_str("\n| edit | where | new | gone |\n|---|---|--:|--:|\n");
            for part in &self.edits {
                let each = |of: &dyn Fn(&Edit) -> String| part.edits.iter().map(of).collect::<Vec<_>>().join("<br>");
                let (edits, places) = (each(&Edit::in_markdown), each(&|edit| escaped(&edit.shortest_place())));
                out.push_str(&format!("| {edits} | {places} | {} | {} |\n", part.come.len(), part.go.len()));
            }
        }
        for (verb, runs) in [("new", &self.come), ("gone", &self.go)].iter().filter(|(_, runs)| !runs.is_empty()) {
            out.push_str(&format!("\n<details><summary>{}: {verb}</summary>\n\n", counted(runs.len(), "run")));
            out.push_str("| run | sweep | what |\n|---|---|---|\n");
            for run in runs.iter() {
                let (sweep, name) = (escaped(&run.sweep), escaped(&run.name));
                out.push_str(&format!("| `{}` | {sweep} | {name} |\n", &run.id[..8]));
            }
            out.push_str("\n</details>\n");
        }
        for (title, edits) in
            [("Decides which runs are executed", &self.deciding), ("Affects no run", &self.without_effect)]
        {
            if !edits.is_empty() {
                out.push_str(&format!("\n{title}:\n\n"));
                let line = |edit: &Edit| format!("- {} ({})\n", edit.in_markdown(), escaped(&edit.shortest_place()));
                out.extend(edits.iter().map(line));
            }
        }
        out
    }
}

impl Run {
    fn of(run: &PlannedRun) -> Run {
        let value = |scalar: &Scalar| serde_json::to_value(scalar).unwrap_or(Value::Null);
        Run {
            id: run.id.to_string(),
            sweep: run.sweep.to_string(),
            cell: run.cell.iter().map(|(axis, scalar)| (axis.to_owned(), value(scalar))).collect(),
            repeat: run.repeat,
            name: planned_name(run),
        }
    }
}

impl Part {
    fn of(group: &Group) -> Part {
        let ids = |runs: &[&PlannedRun]| runs.iter().map(|run| run.id.to_string()).collect();
        let named = |run: &&PlannedRun| format!("{} ({})", plain(&planned_name(run)), &run.id.short()[..8]);
        let names = |runs: &[&PlannedRun]| runs.iter().map(named).collect();
        Part {
            edits: group.edits.clone(),
            come: ids(&group.come),
            go: ids(&group.go),
            names: [names(&group.come), names(&group.go)],
        }
    }
}

impl Edit {
    /// Returns the edit as a sentence: `endpoints.demo.mock.ttft: 2ms → 3ms`, `added:
    /// sweeps.rates.matrix.qps[2] = 60`.
    fn sentence(&self) -> String {
        let text = |value: &Option<String>| plain(value.as_deref().unwrap_or("nothing"));
        let path = plain(&self.path);
        match (self.kind, &self.old, &self.new) {
            (Kind::Changed, None, None) => format!("{path}: changed"),
            (Kind::Changed, old, new) => format!("{path}: {} → {}", text(old), text(new)),
            (Kind::Added, _, None) => format!("added: {path}"),
            (Kind::Added, _, new) => format!("added: {path} = {}", text(new)),
            (Kind::Removed, None, _) => format!("removed: {path}"),
            (Kind::Removed, old, _) => format!("removed: {path} = {}", text(old)),
        }
    }

    /// Returns the places: `(old.yaml:4:50 → new.yaml:4:50)`, or the only place.
    fn places(&self) -> String {
        match (&self.old_place, &self.place) {
            (Some(old), Some(new)) => format!("({old} → {new})"),
            (Some(one), None) | (None, Some(one)) => format!("({one})"),
            (None, None) => String::new(),
        }
    }

    /// Returns the new place, or the old one if there is no new place.
    fn shortest_place(&self) -> String {
        self.place.clone().or_else(|| self.old_place.clone()).unwrap_or_default()
    }

    fn in_markdown(&self) -> String {
        let quoted = |text: &str| format!("`{}`", plain(text).replace('`', "'").replace('|', "\\|"));
        let text = |value: &Option<String>| value.as_deref().map_or("nothing".to_owned(), quoted);
        let path = quoted(&self.path);
        match (self.kind, &self.old, &self.new) {
            (Kind::Changed, None, None) => format!("{path} changed"),
            (Kind::Changed, old, new) => format!("{path}: {} → {}", text(old), text(new)),
            (Kind::Added, _, None) => format!("added {path}"),
            (Kind::Added, _, new) => format!("added {path}: {}", text(new)),
            (Kind::Removed, None, _) => format!("removed {path}"),
            (Kind::Removed, old, _) => format!("removed {path}: {}", text(old)),
        }
    }
}

/// Returns the first names of a list, and the number of the remaining ones.
fn some(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(MOST_NAMES).cloned().collect();
    if names.len() > MOST_NAMES {
        shown.push(format!("… and {} more (--format json has all)", names.len() - MOST_NAMES));
    }
    shown.join(", ")
}

/// Escapes characters that have a meaning in Markdown and HTML.
fn escaped(text: &str) -> String {
    let special = |c: char| "\\`*_[]<>|#".contains(c);
    plain(text).chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
