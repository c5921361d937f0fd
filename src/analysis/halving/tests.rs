use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::plan::model::optimize::{FACTOR, rungs};

/// Simulates runs of configurations with these true values. A run has the given relative deviation at
/// the length of the first rung, and runs of one configuration differ by one percent.
struct Servers {
    values: Vec<f64>,
    deviation: f64,
    rng: ChaCha8Rng,
}

/// Overhead of a run beyond its window, as a multiple of the first rung's window.
const AROUND: f64 = 0.75;

impl Servers {
    fn normal(&mut self) -> f64 {
        let [a, b]: [f64; 2] = std::array::from_fn(|_| self.rng.random::<f64>());
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn run(&mut self, configuration: usize, rung: usize) -> Seen {
        let value = self.values[configuration];
        let deviation = self.deviation / (f64::from(FACTOR.pow(rung as u32))).sqrt();
        let noise = 1.0 + self.normal() * deviation + self.normal() * 0.01;
        let deviation = deviation * self.values[configuration];
        seen(configuration, rung, Says::Value { value: value * noise, deviation })
    }
}

fn seen(configuration: usize, rung: usize, says: Says) -> Seen {
    Seen { configuration, rung, says, meets: Meets::NotAsked, start: None }
}

fn value(value: f64) -> Says {
    Says::Value { value, deviation: 0.01 }
}

fn question(configurations: usize, budget: f64) -> Question {
    let rungs = rungs(configurations);
    let seconds = (0..rungs).map(|rung| AROUND + f64::from(FACTOR.pow(rung))).collect();
    Question { configurations, seconds, budget, is_more_better: true }
}

fn whole(question: &Question, servers: &mut Servers) -> (Vec<Seen>, Outcome) {
    let mut seen = Vec::new();
    loop {
        match next(question, &seen) {
            Next::Run { configuration, rung, repeat: _ } => seen.push(servers.run(configuration, rung)),
            Next::Ended(outcome) => return (seen, outcome),
        }
        assert!(seen.len() <= question.configurations * question.seconds.len() + AGAIN);
    }
}

fn spent(question: &Question, seen: &[Seen]) -> f64 {
    seen.iter().map(|run| question.seconds[run.rung]).sum()
}

#[test]
fn the_best_of_eight_is_found_in_half_of_the_time() {
    println!("| deviation of a run | within 3 % | called best, and is not | undecided | time, mean | time, most |");
    println!("|---|---|---|---|---|---|");
    let mut times = Vec::new();
    for deviation in [0.01, 0.02, 0.03] {
        let (mut near, mut wrong, mut undecided, mut shares) = (0, 0, 0, Vec::new());
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut values: Vec<f64> = (0..8).map(|_| 1.0 - 0.5 * rng.random::<f64>()).collect();
            values[(seed % 8) as usize] = 1.0;
            let best = values.iter().copied().fold(0.0, f64::max);
            let mut servers = Servers { values: values.clone(), deviation, rng };
            let question = question(8, f64::INFINITY);
            let (seen, outcome) = whole(&question, &mut servers);
            let chosen = values[outcome.best.expect("a best")];
            near += u32::from(chosen >= 0.97 * best);
            wrong += u32::from(outcome.end == End::Best && chosen < best);
            undecided += u32::from(outcome.end == End::Undecided);
            shares.push(spent(&question, &seen) / (8.0 * question.seconds.last().unwrap()));
        }
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let most = shares.iter().copied().fold(0.0, f64::max);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let of = |count: u32| percent(f64::from(count) / 200.0);
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            percent(deviation),
            of(near),
            of(wrong),
            of(undecided),
            percent(mean),
            percent(most)
        );
        assert!(near >= 190 && wrong <= 10, "{deviation}: {near} near the best, {wrong} wrong");
        times.push(mean);
    }
    // Noisier measurements need more runs for the same decision.
    assert!(times[0] <= 0.5 && times[1] <= 0.52 && times[2] <= 0.55, "{times:?}");
}

#[test]
fn nothing_is_cut_on_luck_and_equal_ones_are_undecided() {
    let seen = |values: [f64; 4], deviation: f64| -> Vec<Seen> {
        let run = |(at, value): (usize, &f64)| seen(at, 0, Says::Value { value: *value, deviation });
        values.iter().enumerate().map(run).collect()
    };
    let question = question(4, f64::INFINITY);
    // All four configurations are within noise of the second-best, so all advance; the server that is already
    // running goes first.
    assert_eq!(
        next(&question, &seen([1.0, 0.99, 0.98, 0.97], 0.04)),
        Next::Run { configuration: 3, rung: 1, repeat: 0 }
    );
    // One configuration is better than all others, so there are no more runs.
    let Next::Ended(outcome) = next(&question, &seen([0.5, 1.0, 0.6, 0.7], 0.02)) else { panic!("expected the end") };
    assert_eq!((outcome.best, outcome.end, outcome.rivals.len()), (Some(1), End::Best, 0));
    // Two configurations are equally good, and two are much worse.
    assert_eq!(next(&question, &seen([0.5, 1.0, 0.99, 0.7], 0.03)), Next::Run { configuration: 2, rung: 1, repeat: 0 });
    let mut equal = Servers { values: vec![1.0; 4], deviation: 0.02, rng: ChaCha8Rng::seed_from_u64(1) };
    let (_, outcome) = whole(&question, &mut equal);
    assert_eq!((outcome.end, outcome.rivals.is_empty()), (End::Undecided, false), "{outcome:?}");
}

#[test]
fn less_is_better_of_a_cost_and_what_cannot_be_chosen_is_left_out() {
    let question = Question { is_more_better: false, ..question(3, f64::INFINITY) };
    let none = |configuration| seen(configuration, 0, Says::NotToChoose);
    let runs = [seen(0, 0, value(3.0)), none(1), seen(2, 0, value(2.0))];
    let Next::Ended(outcome) = next(&question, &runs) else { panic!("expected the end") };
    assert_eq!((outcome.best, outcome.end), (Some(2), End::Best));
    let Next::Ended(outcome) = next(&question, &[none(0), none(1), none(2)]) else { panic!("ended") };
    assert_eq!((outcome.best, outcome.end), (None, End::None));
}

#[test]
fn the_budget_is_kept_and_what_it_leaves_out_is_said() {
    let mut wanting = 0;
    for seed in 0..50 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let values = (0..8).map(|_| 1.0 - 0.05 * rng.random::<f64>()).collect();
        let mut servers = Servers { values, deviation: 0.03, rng };
        for budget in [15.0, 20.0, 30.0, 60.0] {
            let question = question(8, budget);
            let (seen, outcome) = whole(&question, &mut servers);
            assert!(spent(&question, &seen) <= budget, "{budget}: {seen:?}");
            assert!(outcome.unaffordable.is_empty() || outcome.end == End::Budget, "{outcome:?}");
            wanting += usize::from(outcome.end == End::Budget);
        }
    }
    assert!(wanting > 25, "{wanting}");
    // Starting a server also takes time.
    let question = question(3, 14.0);
    let says = Says::Value { value: 1.0, deviation: 0.03 };
    let run = |configuration| Seen { start: Some(2.0), ..seen(configuration, 0, says) };
    let Next::Ended(outcome) = next(&question, &[0, 1, 2].map(run)) else { panic!("expected the end") };
    assert_eq!((outcome.end, outcome.rivals.len()), (End::Budget, 2));
}

/// Feeds the runs that a search would request in the first rung, with the given evidence, and returns
/// the next step.
fn after(question: &Question, says: &[(usize, usize, Says, Meets)]) -> Next {
    let run = |(configuration, rung, says, meets): &(usize, usize, Says, Meets)| Seen {
        meets: *meets,
        ..seen(*configuration, *rung, *says)
    };
    next(question, &says.iter().map(run).collect::<Vec<_>>())
}

#[test]
fn a_run_that_says_nothing_is_made_once_more_within_budget_and_bound_and_is_never_taken_for_a_bad_one() {
    let wide = question(3, f64::INFINITY);
    let nothing = |configuration| (configuration, 0, Says::Nothing, Meets::NotAsked);
    let is = |configuration, number| (configuration, 0, value(number), Meets::NotAsked);
    let again = Next::Run { configuration: 1, rung: 0, repeat: 1 };
    assert_eq!(after(&wide, &[is(0, 1.0), nothing(1)]), again);
    // The repeat provides evidence, so it counts.
    let Next::Ended(outcome) = after(&wide, &[is(0, 1.0), nothing(1), is(1, 2.0), is(2, 1.0)]) else { panic!() };
    assert_eq!((outcome.best, outcome.end, &outcome.unknown[..]), (Some(1), End::Best, &[][..]));
    // Neither run provides evidence: the others advance, and the unknown configuration is listed in
    // the outcome.
    let Next::Ended(outcome) = after(&wide, &[is(0, 1.0), nothing(1), nothing(1), is(2, 2.0)]) else { panic!() };
    assert_eq!((outcome.best, outcome.end, &outcome.unknown[..]), (Some(2), End::Undecided, &[1][..]));
    // The budget leaves no time for a repeat in addition to the runs of the other configurations.
    let tight = question(3, 3.0 * (AROUND + 1.0));
    assert_eq!(after(&tight, &[is(0, 1.0), nothing(1)]), Next::Run { configuration: 2, rung: 0, repeat: 0 });
    // At most this many runs are repeated, no matter how many provide no evidence.
    let many = question(12, f64::INFINITY);
    let mut runs = Vec::new();
    let outcome = loop {
        match after(&many, &runs) {
            Next::Run { configuration, .. } => runs.push(nothing(configuration)),
            Next::Ended(outcome) => break outcome,
        }
    };
    assert_eq!((runs.len(), outcome.end, outcome.unknown.len()), (12 + AGAIN, End::None, 12));
}

#[test]
fn the_best_meets_the_objective_and_runs_too_short_to_show_it_have_longer_ones() {
    let wide = question(3, f64::INFINITY);
    let is = |configuration, rung, number, meets| (configuration, rung, value(number), meets);
    use Meets::{Misses, Seems, SeemsNot, Shown};
    // The fastest configuration was observed to miss the objective, but this is not shown, so it gets
    // a longer run. So does the best of the others.
    let first = [is(0, 0, 1.0, Shown), is(1, 0, 2.0, SeemsNot), is(2, 0, 0.5, Shown)];
    assert_eq!(after(&wide, &first), Next::Run { configuration: 1, rung: 1, repeat: 0 });
    let behind = |longer: &[(usize, usize, Says, Meets)]| after(&wide, &[&first[..], longer].concat());
    let Next::Ended(outcome) = behind(&[is(1, 1, 2.0, Misses), is(0, 1, 1.0, Shown)]) else { panic!() };
    assert_eq!((outcome.best, outcome.end), (Some(0), End::Best));
    let Next::Ended(outcome) = behind(&[is(1, 1, 2.0, SeemsNot), is(0, 1, 1.0, Shown)]) else { panic!() };
    assert_eq!((outcome.best, outcome.end, &outcome.rivals[..]), (Some(0), End::Undecided, &[1][..]));
    let Next::Ended(outcome) = behind(&[is(1, 1, 2.0, Shown), is(0, 1, 1.0, Shown)]) else { panic!() };
    assert_eq!((outcome.best, outcome.end), (Some(1), End::Best));
    // One configuration is ahead of all others but is not shown to meet the objective, so only this
    // one gets a longer run.
    let seems = [is(0, 0, 1.0, Shown), is(1, 0, 2.0, Seems), is(2, 0, 0.5, Shown)];
    assert_eq!(after(&wide, &seems), Next::Run { configuration: 1, rung: 1, repeat: 0 });
    // This configuration misses the objective, so the best configuration that was excluded in its favor comes
    // back for a run of this length.
    let missed = [&seems[..], &[is(1, 1, 2.0, Misses)]].concat();
    assert_eq!(after(&wide, &missed), Next::Run { configuration: 0, rung: 1, repeat: 0 });
    let Next::Ended(outcome) = after(&wide, &[&missed[..], &[is(0, 1, 1.0, Shown)]].concat()) else { panic!() };
    assert_eq!((outcome.best, outcome.end), (Some(0), End::Best));
    // No configuration was observed to meet the objective.
    let none = [0, 1, 2].map(|configuration| is(configuration, 0, 1.0, Misses));
    let Next::Ended(outcome) = after(&wide, &none) else { panic!() };
    assert_eq!((outcome.best, outcome.end), (None, End::None));
}
