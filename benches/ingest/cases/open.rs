//! Poisson arrivals of 8-token streams, judged by their arrival times at the mock. The bare reader gets the
//! schedule that the engine had, so that both are judged by the same gaps.

use std::path::Path;
use std::time::Duration;

use sweepline::rows::{Phase, RequestRow};

use crate::args::Args;
use crate::bare::open::Open;
use crate::child::{self, Done, Order};
use crate::log::{Lines, Log};
use crate::mock::Mock;
use crate::report::{Bound, Report, micros, plain, share};
use crate::stats::{Rounds, cv, ks_exponential, quantile};

use super::plan::{self, body};
use super::run::Run;

/// Arrivals per second.
const RATE: f64 = 1_000.0;

/// One round of both sides with the same schedule.
struct Round {
    ours: Run,
    bare: Done,
    rows: Vec<RequestRow>,
}

/// The arrivals of one side of a round in the mock's log.
struct Arrivals {
    ks: f64,
    cv_error: f64,
    count_error: f64,
    late_p99: f64,
}

/// Runs the whole part.
pub fn open(args: &Args, report: &mut Report) {
    report.head("open: Poisson 1 000/s, 8 tokens (TTFT 20 ms, ITL 4 ms), by the arrivals in the mock's log");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("mock.jsonl");
    let mock = Mock::start(&["--slots", "4000", "--log", log.to_str().expect("a plain path")]);
    let rounds: Vec<Round> = (0..args.rounds).map(|round| one(args, &mock, folder.path(), round)).collect();
    mock.end();
    let log = Log::read(&log);
    let bare = rounds.iter().enumerate().map(|(at, round)| round.bare(&log.of(&format!("b{at}"))));
    let bare: Vec<Arrivals> = bare.collect();
    let logs: Vec<Lines> = (0..rounds.len()).map(|at| log.of(&format!("s{at}"))).collect();
    let ours: Vec<Arrivals> = rounds.iter().zip(&logs).map(|(round, log)| round.ours(log)).collect();
    judge(report, &bare, &ours);
    own_column(report, &rounds, &logs);
}

fn judge(report: &mut Report, bare: &[Arrivals], ours: &[Arrivals]) {
    let median = |side: &[Arrivals], of: fn(&Arrivals) -> f64| Rounds::of(side.iter().map(of)).median;
    let mut line = |what: &str, of: fn(&Arrivals) -> f64, show: fn(f64) -> String, bound: fn(f64) -> f64| {
        let bare = median(bare, of);
        report.figure(
            &format!("{what} (bare reader: {})", show(bare)),
            median(ours, of),
            show,
            Some(Bound::Most(bound(bare))),
        );
    };
    line("KS distance of the gaps to the exponential", |a| a.ks, plain, |bare| f64::max(0.04, bare + 0.01));
    line("error of the gaps' coefficient of variation", |a| a.cv_error, plain, |bare| f64::max(0.05, bare + 0.03));
    line("arrivals missing or too many", |a| a.count_error, share, |_| 0.005);
    line("lateness at p99, arrival − schedule", |a| a.late_p99, micros, |bare| f64::max(250.0, bare));
}

/// Compares the engine's own column with the log. Apart from the network, a request is sent and arrives at
/// the same time.
fn own_column(report: &mut Report, rounds: &[Round], logs: &[Lines]) {
    let mut own_p99 = Vec::new();
    let mut difference = Vec::new();
    for (round, log) in rounds.iter().zip(logs) {
        let origin = round.ours.done.seen.start_monotonic_ns;
        let sent = round.measured().filter_map(|row| Some((row, row.sent_ns?)));
        let mut late: Vec<f64> = sent.clone().map(|(row, sent)| (sent - row.scheduled_ns) as f64 / 1e3).collect();
        late.sort_by(f64::total_cmp);
        own_p99.push(quantile(&late, 0.99));
        let apart = sent.filter_map(|(row, sent)| Some((log.get(&row.request)?.arrival_ns? as f64, sent + origin)));
        let apart: Vec<f64> = apart.map(|(arrival, sent)| (arrival - sent as f64) / 1e3).collect();
        difference.push(apart.iter().sum::<f64>() / apart.len() as f64);
    }
    report.figure("lateness at p99 by the engine's own column", Rounds::of(own_p99).median, micros, None);
    let difference = Rounds::of(difference).median;
    report.figure("the log's arrival − the row's send, mean", difference, micros, Some(Bound::Most(50.0)));
}

fn one(args: &Args, mock: &Mock, folder: &Path, round: usize) -> Round {
    let window = args.window(Duration::from_secs(10)).as_millis();
    let phases = format!("fill: 0s, stabilize: 1s, measure: {window}ms, drain: 10s");
    let plan = plan::plan(mock.port, 8, &format!("qps: [{RATE}]"), &phases);
    let body = body(&plan);
    let ours = Run::make(mock.port, plan, &format!("s{round}"));
    let rows = ours.rows();
    let schedule = folder.join(format!("schedule{round}.json"));
    let instants: Vec<u64> = rows.iter().map(|row| row.scheduled_ns).collect();
    std::fs::write(&schedule, serde_json::to_vec(&instants).expect("numbers")).expect("room for the schedule");
    let bare = child::run(&Order::BareOpen(Open { port: mock.port, body, schedule, id_prefix: format!("b{round}") }));
    Round { ours, bare, rows }
}

impl Round {
    /// Returns the rows of the window, in which the connections of both sides are already open.
    fn measured(&self) -> impl Iterator<Item = &RequestRow> + Clone {
        self.rows.iter().filter(|row| row.phase == Phase::Measure)
    }

    fn ours(&self, log: &Lines) -> Arrivals {
        self.arrivals(log, self.ours.done.seen.start_monotonic_ns, |at| self.rows[at].request)
    }

    fn bare(&self, log: &Lines) -> Arrivals {
        self.arrivals(log, self.bare.seen.start_monotonic_ns, |at| at as u64)
    }

    /// Returns the arrivals of the window's requests from a log; `name` maps the position of a row to its
    /// number in the log.
    fn arrivals(&self, log: &Lines, origin: u64, name: impl Fn(usize) -> u64) -> Arrivals {
        let wanted = self.rows.iter().enumerate().filter(|(_, row)| row.phase == Phase::Measure);
        let came: Vec<(u64, u64)> =
            wanted.clone().filter_map(|(at, row)| Some((log.get(&name(at))?.arrival_ns?, row.scheduled_ns))).collect();
        let mut late: Vec<f64> =
            came.iter().map(|(at, wanted)| (*at as f64 - (wanted + origin) as f64) / 1e3).collect();
        late.sort_by(f64::total_cmp);
        let mut instants: Vec<u64> = came.iter().map(|(at, _)| *at).collect();
        instants.sort_unstable();
        let gaps: Vec<f64> = instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
        let wanted = wanted.count() as f64;
        Arrivals {
            ks: ks_exponential(&gaps, 1.0 / RATE),
            cv_error: (cv(&gaps) - 1.0).abs(),
            count_error: (came.len() as f64 - wanted).abs() / wanted,
            late_p99: quantile(&late, 0.99),
        }
    }
}
