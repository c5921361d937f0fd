//! Checks that a search finds its target. The servers are simulated, so the highest load that meets the
//! objective is known. The program's own tests judge the runs.
//!
//! `SWEEPLINE_SIMULATIONS=1000 cargo test --release -p sweepline-analysis --lib search::simulated --
//! --nocapture` prints the table of `docs/SEARCH.md`; by default, there are only a few servers of each
//! kind.

mod methods;
mod servers;

use super::decide::{most_by, next_by};
use super::fitted::Fitted;
use super::grid::Grid;
use super::method::Method;
use super::outcome::{Caveat, End, Outcome};
use super::question::{Next, Question};
use crate::analysis::slo::Answer;
use methods::{Bisection, Stochastic};
use servers::{KINDS, Kind, Server};

fn servers() -> u64 {
    std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW)
}

const FEW: u64 = 2;

/// The result of one search.
struct Searched {
    outcome: Outcome,
    right: bool,
    runs: usize,
    most: usize,
    /// Number of requests before the first long run, and from that run on.
    requests: [u64; 2],
    ladder: u64,
}

impl Searched {
    /// Returns whether any caveat casts doubt on the load.
    fn is_doubted(&self) -> bool {
        let doubts = |caveat: &Caveat| {
            matches!(
                caveat,
                Caveat::Drift { .. } | Caveat::Unsteady { .. } | Caveat::NotMonotone { .. } | Caveat::Coarse { .. }
            )
        };
        !matches!(self.outcome.end, End::Found | End::AboveRange | End::BelowRange)
            || self.outcome.caveats.iter().any(doubts)
    }
}

fn search(method: &impl Method, kind: Kind, seed: u64, ladder: u64) -> Searched {
    let mut server = Server::new(kind, seed);
    let question = server.question;
    let (mut probes, mut is_found, mut long) = (Vec::new(), false, 0);
    let outcome = loop {
        let (load, confirms) = match next_by(method, &question, &probes) {
            Next::Probe { load, .. } => (load, false),
            Next::Confirm { load, .. } => (load, true),
            Next::Ended(outcome) => break outcome,
        };
        let probe = server.run(load, confirms);
        is_found |= confirms;
        long += if is_found { probe.requests } else { 0 };
        probes.push(probe);
    };
    let right = match (kind, outcome.end, outcome.found) {
        (Kind::Never, end, found) => end == End::BelowRange && found.is_none(),
        (Kind::Always, end, found) => end == End::AboveRange && found == Grid::of(&question).loads().last().copied(),
        (_, _, Some(found)) => server.is_right(found),
        (_, _, None) => false,
    };
    if std::env::var_os("SWEEPLINE_SEARCH_LOG").is_some() && !right {
        println!("{kind:?} {seed} knee {:.3} found {:?}", server.knee, outcome);
        for probe in &probes {
            println!(
                "   {:.3} {} {:?} {:.3}",
                probe.load / server.knee,
                probe.confirms,
                probe.answer,
                probe.pressure.unwrap_or(0.0)
            );
        }
    }
    let most = most_by(method, &question);
    Searched { outcome, right, runs: probes.len(), most, requests: [server.requests - long, long], ladder }
}

/// Returns the number of requests of a ladder that measures every step of the resolution from the lower
/// end up to the first load that misses.
fn ladder(kind: Kind, seed: u64) -> u64 {
    let mut server = Server::new(kind, seed);
    let Question { from, to, within, whole, .. } = server.question;
    let mut load = from;
    while load <= to {
        if server.run(load, false).answer == Some(Answer::Misses) {
            break;
        }
        load = if whole { (load * (1.0 + within)).round().max(load + 1.0) } else { load * (1.0 + within) };
    }
    server.requests
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Row {
    wrong: f64,
    unsaid: f64,
    doubted: f64,
    none: f64,
    share: f64,
    share_long: f64,
    runs: f64,
    most_runs: usize,
    over: usize,
}

fn row(searches: &[Searched]) -> Row {
    let share = |is: &dyn Fn(&Searched) -> bool| {
        searches.iter().filter(|searched| is(searched)).count() as f64 / searches.len() as f64
    };
    let of = |value: fn(&Searched) -> f64| median(searches.iter().map(value).collect());
    Row {
        wrong: share(&|searched| !searched.right),
        unsaid: share(&|searched| !searched.right && !searched.is_doubted()),
        doubted: share(&|searched| searched.is_doubted()),
        none: share(&|searched| searched.outcome.found.is_none()),
        share: of(|searched| searched.requests[0] as f64 / searched.ladder as f64),
        share_long: of(|searched| (searched.requests[0] + searched.requests[1]) as f64 / searched.ladder as f64),
        runs: of(|searched| searched.runs as f64),
        most_runs: searches.iter().map(|searched| searched.runs).max().unwrap_or(0),
        over: searches.iter().filter(|searched| searched.runs > searched.most).count(),
    }
}

fn table(name: &str, kind: Kind, method: &(impl Method + Sync), ladders: &[u64]) -> Row {
    let searches = parallel(ladders.len() as u64, |seed| search(method, kind, seed, ladders[seed as usize]));
    let row = row(&searches);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    println!(
        "| {kind:?} | {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
        percent(row.wrong),
        percent(row.unsaid),
        percent(row.doubted),
        percent(row.none),
        percent(row.share),
        percent(row.share_long),
        row.runs,
        row.most_runs
    );
    row
}

/// Computes one value for each seed, in two threads.
fn parallel<T: Send>(count: u64, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let of = &of;
            scope.spawn(move || (half * count / 2..(half + 1) * count / 2).map(of).collect::<Vec<T>>())
        });
        halves.into_iter().flat_map(|half| half.join().expect("a thread")).collect()
    })
}

#[test]
fn searches_find_the_load() {
    let all = std::env::var_os("SWEEPLINE_SIMULATIONS").is_some();
    let only = std::env::var("SWEEPLINE_SEARCH_KIND").ok();
    println!(
        "| server | method | wrong | wrong, not reported | doubted | none found | requests | with long runs | \
        runs | most |"
    );
    let mut wrong_of_all = 0.0;
    for kind in KINDS {
        if only.as_ref().is_some_and(|only| *only != format!("{kind:?}")) {
            continue;
        }
        let ladders = if all { parallel(servers(), |seed| ladder(kind, seed)) } else { vec![1; servers() as usize] };
        if std::env::var_os("SWEEPLINE_SEARCH_METHODS").is_some() {
            table("bisection", kind, &Bisection, &ladders);
            table("stochastic", kind, &Stochastic, &ladders);
        }
        let row = table("fitted", kind, &Fitted { within: 0.05, confirms: true }, &ladders);
        assert_eq!(row.over, 0, "{kind:?}: more runs than the bound");
        // Two standard errors of a share of 5 % over these servers.
        let chance = 2.0 * (0.05 * 0.95 / servers() as f64).sqrt();
        let wrong = match kind {
            Kind::Queue | Kind::Batching | Kind::BatchSize | Kind::Never | Kind::Always => row.wrong,
            Kind::Drifting | Kind::Bimodal | Kind::NonMonotone | Kind::Flat => row.unsaid,
        };
        // A few servers of one kind prove nothing on their own, so all kinds are counted together below.
        assert!(!all || wrong <= 0.05 + chance, "{kind:?}: {wrong}");
        wrong_of_all += wrong * servers() as f64;
        if all && matches!(kind, Kind::Queue | Kind::Batching | Kind::BatchSize) {
            assert!(row.share <= 0.4, "{kind:?}: {} of the requests of a ladder", row.share);
        }
    }
    assert!(all || wrong_of_all <= 2.0, "{wrong_of_all} of {} servers", FEW * KINDS.len() as u64);
}
