use super::*;
use crate::analysis::slo::Answer;
use crate::plan::Percentile;

fn question() -> Question {
    Question { from: 1.0, to: 200.0, within: 0.05, whole: false, confirm: true }
}

/// Simulates a run of a server without noise, whose percentile meets its limit up to `knee`.
fn run(load: f64, confirms: bool, knee: f64) -> Probe {
    let pressure = (load / knee).powi(3);
    let answer = if pressure <= 1.0 { Answer::Holds } else { Answer::Misses };
    Probe {
        load,
        confirms,
        own: true,
        answer: Some(answer),
        pressure: Some(pressure),
        requests: 1_000,
        short: None,
        together: Some(answer),
        grows: None,
    }
}

/// Returns all runs of a search, and how it ended.
fn search(question: &Question, mut run: impl FnMut(f64, bool, usize) -> Probe) -> (Vec<Probe>, Outcome) {
    let mut probes = Vec::new();
    loop {
        let (load, confirms, repeat) = match next(question, &probes) {
            Next::Probe { load, repeat } => (load, false, repeat),
            Next::Confirm { load, repeat, .. } => (load, true, repeat),
            Next::Ended(outcome) => return (probes, outcome),
        };
        let alike = |probe: &&Probe| probe.load == load && probe.confirms == confirms;
        assert_eq!(probes.iter().filter(alike).count(), repeat as usize);
        assert!(Grid::of(question).loads().contains(&load), "{load} is not on the grid");
        probes.push(run(load, confirms, probes.len()));
        assert!(probes.len() <= most_probes(question));
    }
}

#[test]
fn a_quiet_server_is_found_to_the_resolution() {
    for knee in [1.01, 1.7, 24.0, 33.3, 150.0, 199.0] {
        let (probes, outcome) = search(&question(), |load, confirms, _| run(load, confirms, knee));
        let found = outcome.found.expect("a load");
        assert!(found <= knee && found * 1.05 > knee, "{found} for {knee}: {probes:?}");
        assert_eq!((outcome.end, probes.last().map(|probe| probe.confirms)), (End::Found, Some(false)), "{outcome:?}");
        assert!(probes[probes.len() - 2].confirms && probes.iter().all(|probe| !probe.confirms || probe.load >= found));
        assert!(outcome.misses.is_none_or(|misses| misses > knee && misses < knee * 2.1), "{outcome:?}");
    }
}

#[test]
fn whole_loads_are_found_exactly() {
    let question = Question { to: 256.0, whole: true, ..question() };
    for knee in [1.0, 2.0, 7.0, 16.0] {
        let (_, outcome) = search(&question, |load, confirms, _| run(load, confirms, knee + 0.5));
        assert_eq!((outcome.found, outcome.end), (Some(knee), End::Found), "{outcome:?}");
        assert!(outcome.misses.is_some_and(|misses| misses > knee), "{outcome:?}");
    }
}

#[test]
fn a_coarse_grid_has_an_end_as_well() {
    let question = Question { from: 10.0, to: 160.0, within: 0.5, confirm: false, ..question() };
    for knee in [14.0, 40.0, 50.0, 55.0] {
        let (probes, outcome) = search(&question, |load, confirms, _| run(load, confirms, knee));
        let found = outcome.found.expect("a load");
        assert!(found <= knee * 1.25 && found * 1.5 > knee, "{found} for {knee}: {probes:?}");
    }
}

#[test]
fn an_answer_that_no_run_shows_says_so_without_long_runs_too() {
    let question = Question { confirm: false, ..question() };
    let is_shown = |knee: f64, answer: Answer| {
        let (_, outcome) = search(&question, |load, confirms, _| {
            let run = run(load, confirms, knee);
            let is_met = run.answer == Some(Answer::Holds);
            Probe { answer: if is_met { Some(answer) } else { run.answer }, ..run }
        });
        let load = outcome.found.expect("a load");
        !outcome.caveats.contains(&Caveat::NotShown { load })
    };
    assert!(is_shown(500.0, Answer::Holds), "the heaviest load has a run");
    assert!(!is_shown(500.0, Answer::Undecided));
    assert!(!is_shown(40.0, Answer::Holds), "the answer follows from the fit, and had no run");
}

#[test]
fn a_range_without_the_answer_is_said() {
    let (probes, never) = search(&question(), |load, confirms, _| run(load, confirms, 0.5));
    assert_eq!((never.end, never.found, never.misses), (End::BelowRange, None, Some(1.0)));
    assert!(probes.len() <= 3);
    let (_, always) = search(&question(), |load, confirms, _| run(load, confirms, 500.0));
    assert_eq!((always.end, always.found, always.misses), (End::AboveRange, Some(200.0), None));
}

#[test]
fn a_failed_confirmation_sends_the_search_down() {
    let (probes, outcome) =
        search(&question(), |load, confirms, _| run(load, confirms, if confirms { 28.0 } else { 30.0 }));
    let found = outcome.found.expect("a load");
    assert!(found <= 28.0 && found > 26.0, "{outcome:?}");
    let failed = probes.iter().filter(|probe| probe.confirms && probe.pressure > Some(1.0)).map(|probe| probe.load);
    let (runs, lowest) = (failed.clone().count() as u32, failed.reduce(f64::min).expect("a failed long run"));
    assert!(outcome.caveats.contains(&Caveat::FailedConfirmations { runs, lowest }), "{outcome:?}");
    let (_, none) = search(&question(), |load, confirms, _| run(load, confirms, if confirms { 9.0 } else { 30.0 }));
    assert_eq!((none.end, none.found), (End::Unconfirmed, None));
    assert!(
        none.caveats.iter().all(|caveat| !matches!(caveat, Caveat::FailedConfirmations { .. })),
        "no load to compare with"
    );
}

#[test]
fn a_load_whose_long_run_failed_is_where_too_much_begins() {
    let question = question();
    let grid = Grid::of(&question);
    let (load, below) = (grid.nearest(30.0), grid.nearest(24.0));
    let answered = |load: f64, confirms, pressure: f64| Probe {
        answer: Some(Answer::Undecided),
        pressure: Some(pressure),
        ..run(load, confirms, 1_000.0)
    };
    let probes = [answered(below, false, 0.5), answered(load, false, 0.9), answered(load, true, 1.5)];
    let stands = standing(&question, &probes);
    assert_eq!((stands.low, stands.high), (Some(below), Some(load)));
    let stands = standing(&question, &probes[..2]);
    assert_eq!((stands.low, stands.high), (Some(load), None));
}

#[test]
fn a_long_run_that_says_nothing_uses_up_no_confirmation() {
    // Every other long run is spoiled, and no valid long run meets the objective before the fifth
    // load.
    let mut long = 0;
    let (probes, outcome) = search(&question(), |load, confirms, _| {
        long += usize::from(confirms);
        match confirms && long % 2 == 1 {
            true => Probe { answer: None, pressure: None, ..run(load, confirms, 30.0) },
            false => run(load, confirms, if confirms { 24.5 } else { 30.0 }),
        }
    });
    let told = probes.iter().filter(|probe| probe.confirms && probe.answer.is_some()).count();
    assert!(outcome.end != End::Unconfirmed || told == 5, "{told} long runs that count: {outcome:?}");
}

#[test]
fn invalid_runs_are_made_again_and_bounded() {
    let invalid = |load, confirms, knee| Probe { answer: None, pressure: None, ..run(load, confirms, knee) };
    let (_, outcome) = search(&question(), |load, confirms, at| match at {
        2 | 5 => invalid(load, confirms, 30.0),
        _ => run(load, confirms, 30.0),
    });
    assert!(outcome.end == End::Found && outcome.caveats.contains(&Caveat::Invalid { runs: 2 }), "{outcome:?}");
    let (probes, outcome) = search(&question(), |load, confirms, _| invalid(load, confirms, 30.0));
    assert_eq!((outcome.end, outcome.found), (End::OutOfProbes, None));
    assert!(probes.len() <= most_probes(&question()));
}

/// Returns a run whose window has this many requests per unit of load, for a p99 objective.
fn short_run(load: f64, confirms: bool, requests_per_load: f64) -> Probe {
    let requests = (load * requests_per_load) as u64;
    let short = (requests < 299).then_some(Short { percentile: Percentile::P99, requests, needs: 299 });
    match short {
        Some(_) => {
            Probe { answer: Some(Answer::Undecided), pressure: None, requests, short, ..run(load, confirms, 30.0) }
        }
        None => Probe { requests, ..run(load, confirms, 30.0) },
    }
}

#[test]
fn a_search_ends_where_no_run_can_tell_and_says_why() {
    let ended =
        |requests_per_load| search(&question(), |load, confirms, _| short_run(load, confirms, requests_per_load));
    let (probes, outcome) = ended(40.0);
    assert_eq!((outcome.end, outcome.found, probes.len()), (End::TooFewRequests, None, 1), "{outcome:?}");
    let words = outcome.caveats[0].to_string();
    assert_eq!(words, "runs at 1 have too few requests to decide: 40, but a p99 needs at least 299; extend the window");
    // Slightly too few requests (280 of 299) may be due to chance, so the search makes up to three runs at
    // this load before it gives up.
    let (probes, outcome) = ended(280.0);
    assert_eq!((outcome.end, probes.len()), (End::TooFewRequests, 3), "{outcome:?}");
    let mut requests = [280.0, 280.0].into_iter();
    let (_, outcome) =
        search(&question(), |load, confirms, _| short_run(load, confirms, requests.next().unwrap_or(300.0)));
    assert_eq!(outcome.end, End::Found, "{outcome:?}");
}

#[test]
fn loads_of_an_edited_range_are_the_same() {
    let wide = Grid::of(&question());
    let narrow = Grid::of(&Question { from: 7.0, to: 60.0, ..question() });
    assert!(narrow.loads().iter().all(|load| [7.0, 60.0].contains(load) || wide.loads().contains(load)));
    assert!(wide.loads().windows(2).all(|two| two[0] < two[1] && two[1] / two[0] < 1.035), "{wide:?}");
}

#[test]
fn a_question_without_an_answer_is_refused() {
    assert_eq!(question().fault(), None);
    for bad in [
        Question { from: 0.0, ..question() },
        Question { to: 0.5, ..question() },
        Question { within: 0.0, ..question() },
    ] {
        assert!(bad.fault().is_some(), "{bad:?}");
    }
}

/// Each run of a search has the purpose of the step that requested it.
#[test]
fn the_purposes_of_a_search_are_its_steps() {
    let (probes, outcome) = search(&question(), |load, confirms, _| run(load, confirms, 30.0));
    let of = |at: usize| Purpose::of(&probes[..at], probes[at].load, probes[at].confirms);
    let purposes: Vec<Purpose> = (0..probes.len()).map(of).collect();
    assert_eq!(purposes[..3], [Purpose::Up; 3], "{probes:?}");
    assert_eq!(purposes[purposes.len() - 2..], [Purpose::Confirm, Purpose::Again], "{probes:?}");
    let above = purposes.iter().position(|purpose| *purpose == Purpose::WellAbove).expect("one");
    assert!(probes[above].load >= 1.3 * outcome.found.unwrap(), "{probes:?}");
    let seen = [run(10.0, false, 15.0), run(20.0, false, 15.0)];
    assert_eq!(Purpose::of(&seen, 14.0, false), Purpose::ClosingIn);
    let invalid = [seen[0], Probe { answer: None, pressure: None, ..seen[1] }];
    assert_eq!(Purpose::of(&invalid, 20.0, false), Purpose::Instead);
}

/// Returns a run that met the objective without showing it. `grows` is the factor by which the requests of its
/// load must become more to show it.
fn seen(load: f64, confirms: bool, grows: Option<f64>) -> Probe {
    let (together, clear) = (Some(Answer::Undecided), run(load, confirms, 30.0));
    Probe { answer: together, pressure: clear.pressure.map(|pressure| pressure.min(0.99)), together, grows, ..clear }
}

/// Returns the loads of the long runs of a search, in order.
fn long_runs(probes: &[Probe]) -> Vec<f64> {
    probes.iter().filter(|probe| probe.confirms).map(|probe| probe.load).collect()
}

#[test]
fn long_runs_go_down_until_one_shows_its_load() {
    // Runs show only loads well below the crossing.
    let (probes, outcome) = search(&question(), |load, confirms, _| match run(load, confirms, 30.0) {
        met if met.answer == Some(Answer::Holds) && load > 26.0 => seen(load, confirms, None),
        other => other,
    });
    let long = long_runs(&probes);
    let found = outcome.found.expect("a load");
    assert!(outcome.end == End::Found && (28.5..=30.0).contains(&found), "{outcome:?}");
    let met: Vec<f64> = long.iter().copied().filter(|load| *load <= found).collect();
    assert!(met[0] == found && met.windows(2).all(|two| two[1] < two[0]), "{long:?}");
    assert!(met.len() >= 2 && met.last() <= Some(&26.0), "{long:?}");
    // One step of the resolution comes first, and each further step is twice as wide.
    let steps: Vec<f64> = met.windows(2).map(|two| (two[0] / two[1]).ln() / 1.05_f64.ln()).collect();
    assert!((steps[0] - 1.0).abs() < 0.2 && steps.windows(2).all(|two| two[1] > 1.5 * two[0]), "{steps:?}");
    assert!(probes.last().is_some_and(|last| !last.confirms && last.load == found), "{probes:?}");
    // An ordinary run that already shows a load near the found one spares the long runs below it.
    let (probes, _) = search(&question(), |load, confirms, _| match run(load, confirms, 30.0) {
        met if confirms && met.answer == Some(Answer::Holds) => seen(load, true, None),
        other => other,
    });
    let lowest = long_runs(&probes).into_iter().fold(f64::INFINITY, f64::min);
    let shown = probes.iter().filter(|probe| probe.together == Some(Answer::Holds)).map(|probe| probe.load);
    assert!(shown.filter(|shown| *shown <= lowest).count() > 0, "{probes:?}");
}

#[test]
fn a_long_run_is_repeated_where_one_more_shows_its_load() {
    let mut met = 0;
    let (probes, outcome) = search(&question(), |load, confirms, _| {
        let clear = run(load, confirms, 30.0);
        met += usize::from(confirms && clear.answer == Some(Answer::Holds));
        if confirms && clear.answer == Some(Answer::Holds) && met == 1 { seen(load, true, Some(1.2)) } else { clear }
    });
    let found = outcome.found.expect("a load");
    let there = long_runs(&probes).into_iter().filter(|load| *load == found).count();
    assert_eq!((there, met), (2, 2), "{:?}", long_runs(&probes));
}

#[test]
fn a_search_that_ended_before_it_had_to_show_its_load_has_ended() {
    let mut all = Vec::new();
    let next_of = |probes: &[Probe]| next(&question(), probes);
    // An earlier version ended after the ordinary run that follows the long one.
    loop {
        match next_of(&all) {
            Next::Probe { load, .. } => all.push(run(load, false, 30.0)),
            Next::Confirm { load, .. } => {
                all.push(if load <= 30.0 { seen(load, true, None) } else { run(load, true, 30.0) });
                if load <= 30.0 {
                    all.push(run(load, false, 30.0));
                    break;
                }
            }
            Next::Ended(outcome) => panic!("{outcome:?}"),
        }
    }
    let Next::Ended(outcome) = next_of(&all) else { panic!("{:?}", next_of(&all)) };
    assert_eq!((outcome.end, outcome.found), (End::Found, all.last().map(|last| last.load)));
}

/// All sequences of results of the first long runs, of which the last is that of all further ones: the search ends within its maximum number of runs, with a load at
/// which the long runs met the objective and no long runs at a lower load failed.
#[test]
fn whatever_the_long_runs_show_the_search_ends_with_a_load_that_met_the_objective() {
    let results = |load: f64| {
        let run = run(load, true, 30.0);
        let unmet = Probe { pressure: Some(1.1), ..seen(load, true, None) };
        let holds = Probe { answer: Some(Answer::Holds), together: Some(Answer::Holds), pressure: Some(0.8), ..run };
        let misses = Probe { answer: Some(Answer::Misses), together: Some(Answer::Misses), pressure: Some(1.5), ..run };
        let invalid = Probe { answer: None, pressure: None, together: None, ..run };
        [holds, misses, seen(load, true, None), seen(load, true, Some(1.1)), unmet, invalid]
    };
    // The runs before the long ones are the same in every case.
    let question = Question { from: 20.0, to: 45.0, ..question() };
    let mut start = Vec::new();
    while let Next::Probe { load, .. } = next(&question, &start) {
        start.push(run(load, false, 30.0));
    }
    // Every fifth sequence; the measured suite (`SWEEPLINE_WHOLE=1`) tries each.
    let step = if std::env::var("SWEEPLINE_WHOLE").is_ok_and(|whole| whole == "1") { 1 } else { 5 };
    for number in (0..6_usize.pow(3)).step_by(step) {
        let (mut probes, mut long) = (start.clone(), 0);
        let outcome = loop {
            match next(&question, &probes) {
                Next::Probe { load, .. } => probes.push(run(load, false, 30.0)),
                Next::Confirm { load, .. } => {
                    probes.push(results(load)[number / 6_usize.pow(long.min(2)) % 6]);
                    long += 1;
                }
                Next::Ended(outcome) => break outcome,
            }
            assert!(probes.len() <= most_probes(&question), "{number}: {probes:?}");
        };
        let valid = probes.iter().filter(|probe| probe.confirms && probe.answer.is_some());
        assert!(valid.clone().count() <= 5, "{number}: {probes:?}");
        if let Some(found) = outcome.found {
            let long: Vec<Probe> = valid.clone().copied().collect();
            assert!(long.iter().any(|probe| probe.load == found), "{number}: {probes:?}");
            let is_met = |probe: &Probe| super::bracket::votes(&long, probe.load) >= 0;
            assert!(long.iter().all(|probe| probe.load > found || is_met(probe)), "{number}: {probes:?}");
        }
        // A long run that shows its load is the last one.
        let shown = valid.clone().position(|probe| probe.together == Some(Answer::Holds));
        if let Some(first) = shown {
            assert_eq!(first + 1, valid.count(), "{number}: {probes:?}");
        }
    }
}
