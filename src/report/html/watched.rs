//! The page that `report --watch` serves: the current state of a sweep, followed by the report. The report is
//! rebuilt from time to time, and the current state is inserted into each response.

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use super::error::PageError;
use super::render;
use super::view::{Cell, Table};
use crate::report::format::{cut, digits, duration, plain};
use crate::report::progress::{LiveFile, LiveRun, LiveWait, phase};

/// The placeholder for the current state in a watched page. Texts are escaped, so no text of the page can
/// equal the placeholder.
pub(crate) const LIVE_PLACE: &str = "<!--what-is-going-on-->";

/// Maximum number of characters of an error's message.
const LONGEST: usize = 300;

/// A watched page, with a placeholder for the current state.
pub(crate) struct Watched {
    /// The page as HTML.
    pub(crate) html: String,
}

/// The current state of a results folder.
pub(crate) struct LiveView {
    /// The last state of a running sweep; `None` if none is running.
    pub(crate) state: Option<LiveFile>,
    /// Whether the process of the sweep no longer exists.
    pub(crate) is_stale: bool,
    /// The name of the results folder.
    pub(crate) folder: String,
    /// A sentence on the number of runs with results, if known.
    pub(crate) results: Option<String>,
    /// Problems to report to the user.
    pub(crate) notes: Vec<String>,
}

/// The current state, in the form that the template expects.
#[derive(Debug, Default, Serialize)]
struct Shown {
    title: String,
    tone: &'static str,
    /// The number of finished runs, and the total number of runs.
    progress: Option<(usize, usize)>,
    sentences: Vec<String>,
    under_way: Option<Table>,
    errors: Vec<String>,
    waits: Vec<String>,
    notes: Vec<String>,
}

/// Renders the current state as HTML.
pub(crate) fn live(view: &LiveView) -> Result<String, PageError> {
    let mut shown = match &view.state {
        Some(state) => running(state, view.is_stale),
        None => Shown {
            title: "No sweep is running".to_owned(),
            tone: "plain",
            sentences: vec![format!("Nothing writes into {}.", view.folder)],
            ..Shown::default()
        },
    };
    shown.sentences.extend(view.results.clone());
    shown.notes = view.notes.clone();
    Ok(render::live(Value::from(Serde(shown)))?)
}

fn running(state: &LiveFile, is_stale: bool) -> Shown {
    let sweep = &state.sweep;
    let done = sweep.done();
    let written = state.written.0.strftime("%Y-%m-%d %H:%M:%S UTC");
    let parts = [
        (sweep.settled, "settled before"),
        (sweep.committed, "committed"),
        (sweep.failed, "failed"),
        (sweep.given_up, "given up"),
        (sweep.skipped, "skipped"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { String::new() } else { format!(" ({parts})") };
    let mut sentences = vec![format!("{done} of {} runs are done{parts}.", sweep.runs)];
    let (title, tone) = if is_stale {
        sentences.insert(
            0,
            format!(
                "Its process ({}) was killed: it ended without a final state. This is the last state it wrote, at \
                 {written}; the same `sweepline run` continues with the missing runs.",
                state.pid
            ),
        );
        (format!("{}: stale", plain(&state.plan)), "bad")
    } else {
        let left = sweep.left().map(|left| format!("{}. ", left.replacen("about", "About", 1)));
        let stopping = if sweep.stopping { "A stop was requested. " } else { "" };
        sentences.push(format!("{}{stopping}Process {}, as of {written}.", left.unwrap_or_default(), state.pid));
        (format!("{} is running", plain(&state.plan)), "good")
    };
    let error = |run: &LiveRun| {
        let last = run.latest_failure.as_ref()?;
        Some(format!("{}: {} failed, latest: {}", plain(&run.name), run.failed, cut(last, LONGEST)))
    };
    let trouble = sweep.last_trouble.as_ref().map(|what| format!("Latest problem: {}", cut(what, LONGEST)));
    Shown {
        title,
        tone,
        progress: Some((done, sweep.runs)),
        sentences,
        under_way: under_way(&sweep.running),
        errors: sweep.running.iter().filter_map(error).chain(trouble).collect(),
        waits: sweep.waiting.iter().map(wait).collect(),
        notes: Vec::new(),
    }
}

fn wait(wait: &LiveWait) -> String {
    let waited = duration(wait.waited_s as u64);
    let within = wait.within_s.map(|within| format!(" of {}", duration(within as u64))).unwrap_or_default();
    format!("{}: waiting, {waited}{within}: {}", plain(&wait.endpoint), cut(&wait.reason, LONGEST))
}

fn under_way(runs: &[LiveRun]) -> Option<Table> {
    let columns = [
        "active run",
        "phase",
        "requests/s#",
        "wanted/s#",
        "in flight#",
        "waiting#",
        "TTFT, ms#",
        "TPOT, ms#",
        "tokens/s#",
        "done#",
        "failed#",
    ];
    let mut table = Table::new("Rates and latencies of the last 5 s", &columns);
    for run in runs {
        let number = |value: Option<f64>| value.map_or_else(|| Cell::text("n/a"), |value| Cell::text(&digits(value)));
        table.rows.push(vec![
            Cell::text(&run.name),
            Cell::text(&phase(run)),
            number(run.sent_per_s),
            run.wanted_per_s.map_or_else(|| Cell::text("closed loop"), |wanted| Cell::text(&digits(wanted))),
            Cell::count(run.in_flight),
            Cell::count(run.waiting),
            number(run.ttft_ms),
            number(run.tpot_ms),
            number(run.tokens_per_s),
            Cell::count(run.ended),
            Cell::count(run.failed),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Renders the page that is served before a report exists.
pub(crate) fn waiting(title: &str, sentence: &str) -> Result<String, PageError> {
    Ok(render::waiting(title, sentence, LIVE_PLACE)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::progress::{LivePhase, LiveSweep};
    use crate::store::Moment;

    fn state() -> LiveFile {
        let run = LiveRun {
            number: 3,
            id: "0".repeat(64),
            name: "<b>lean</b> · short · 5 qps".to_owned(),
            standing: None,
            phase: LivePhase::Measure,
            phase_s: 3.2,
            phase_length_s: Some(10.0),
            requests_wanted: None,
            requests_in_window: 12,
            at_most_s: None,
            in_flight: 7,
            waiting: 0,
            sent_per_s: Some(4.8),
            wanted_per_s: Some(5.0),
            tokens_per_s: None,
            ttft_ms: Some(12.3),
            tpot_ms: None,
            ended: 20,
            failed: 2,
            latest_failure: Some("http_503: <script>alert(1)</script>".to_owned()),
        };
        let sweep = LiveSweep {
            runs: 9,
            settled: 1,
            committed: 1,
            left_s: Some(61.0),
            running: vec![run],
            ..LiveSweep::default()
        };
        let (started, written) = (Moment::now(), Moment::now());
        LiveFile { format: 1, plan: "night".to_owned(), pid: 77, started, written, sweep }
    }

    fn html(state: Option<LiveFile>, is_stale: bool) -> String {
        let (results, notes) = (Some("2 of 9".to_owned()), vec!["a & b".to_owned()]);
        live(&LiveView { state, is_stale, folder: "results".to_owned(), results, notes }).expect("a fragment")
    }

    #[test]
    fn what_is_going_on_is_said_and_what_others_wrote_is_inert() {
        let running = html(Some(state()), false);
        for said in [
            "night is running",
            "2 of 9 runs are done",
            "About 1m01s left",
            "4.80",
            "5.00",
            "12.3",
            "measure 3s of 10s",
            "2 failed, latest: http_503",
            "a &amp; b",
        ] {
            assert!(running.contains(said), "{said} is not in {running}");
        }
        assert!(!running.contains("<script") && !running.contains("<b>lean"), "{running}");
        let stale = html(Some(state()), true);
        assert!(stale.contains("night: stale") && stale.contains("Its process (77) was killed"), "{stale}");
        assert!(!stale.contains("left."), "the remaining time of a killed sweep is unknown: {stale}");
        let none = html(None, false);
        assert!(none.contains("No sweep is running") && !none.contains("<progress"), "{none}");
    }
}
