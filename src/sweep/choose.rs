//! Chooses the next run of a pool, that is, the next run that a search or a ladder requests, from the
//! results so far. No clock and no random numbers are used, so a resumed sweep makes the same decisions
//! again from the stored rows.

mod chosen;
mod judge;
mod ladder;
mod optimizing;
mod searching;
mod settings;

pub use chosen::{Chosen, Ended, Needs, Part, PartAnswer};
pub use judge::{Judge, Longer, Said, ServerStarted, Tried};
pub use settings::{Became, Setting, SettingRun, Settings};

use crate::expand::{Chooses, Pool};
use ladder::ladder;
use optimizing::Optimizing;
use searching::Searching;

/// Chooses the next member of a pool from the results of its finished members.
pub fn choose(pool: &Pool, judge: &dyn Judge) -> Chosen {
    match &pool.chooses {
        Chooses::Search(search) => Searching { pool, search }.stands(judge),
        Chooses::Optimize(optimized) => Optimizing { pool, optimized }.stands(judge),
        Chooses::Ladder { stop, .. } => ladder(pool, *stop, judge),
    }
}

/// Returns the largest number of runs that a pool can take, whatever its results are.
pub fn most_runs(pool: &Pool) -> usize {
    match &pool.chooses {
        Chooses::Search(search) => Searching { pool, search }.most_runs(),
        Chooses::Optimize(optimized) => Optimizing { pool, optimized }.most_runs(),
        Chooses::Ladder { .. } => pool.members.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::halving::Says;
    use crate::analysis::search::{Cheapest, Grid};
    use crate::analysis::slo::Answer;
    use crate::expand::{PlannedRun, expand};
    use crate::plan::model::search::Objective;
    use crate::plan::{Aim, Format, parse};

    /// Returns the pools of a plan with a single sweep that has these loads.
    fn pools(loads: serde_json::Value) -> Vec<Pool> {
        pools_under(serde_json::json!({ "ttft": { "p90": "50ms" } }), loads)
    }

    /// Returns the pools of a plan with this objective and a single sweep that has these loads.
    fn pools_under(slo: serde_json::Value, loads: serde_json::Value) -> Vec<Pool> {
        let mut sweep = serde_json::json!({ "matrix": { "endpoint": "e", "model": "m" } });
        sweep.as_object_mut().unwrap().extend(loads.as_object().unwrap().clone());
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock", "hardware": { "price_per_hour": 1 } } }, "models": { "m": { "id": "x" } },
            "slo": slo, "sweeps": { "s": sweep },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        expand(&plan).expect("expands").pools
    }

    /// The loads that a search may request and the loads that the plan prepares for it are computed in two
    /// places and must be identical to the bit.
    #[test]
    fn the_loads_of_a_search_are_those_that_it_asks_for() {
        for (axis, from, to, within) in [
            ("qps", 1.0, 200.0, "5%"),
            ("qps", 0.3, 7.5, "2%"),
            ("qps", 12.5, 900.0, "1%"),
            ("batch_size", 1.0, 256.0, "10%"),
        ] {
            let search = serde_json::json!({ "search": { axis: { "from": from, "to": to, "within": within } } });
            let pools = pools(search);
            let Chooses::Search(search) = &pools[0].chooses else { panic!("expected a search") };
            let question = Searching { pool: &pools[0], search }.question();
            assert_eq!(pools[0].loads(), Grid::of(&question).loads());
        }
    }

    /// Simulates a server with these limits. The first `there` runs that a search requests are finished.
    struct Knee {
        /// The highest load at which the time to first token stays within its limit.
        knee: f64,
        /// The highest load at which the time per output token stays within its limit.
        tpot: f64,
        /// The lowest load at which tokens are cheap enough.
        cheap: f64,
        /// The lowest load at which so many requests fail that the run is invalid.
        fails: f64,
        there: std::cell::Cell<usize>,
    }

    impl Knee {
        fn of(knee: f64, there: usize) -> Knee {
            let (tpot, fails) = (f64::INFINITY, f64::INFINITY);
            Knee { knee, tpot, cheap: 0.0, fails, there: std::cell::Cell::new(there) }
        }
    }

    impl Judge for Knee {
        fn is_finished(&self, _: &PlannedRun) -> bool {
            self.there.replace(self.there.get().saturating_sub(1)) > 0
        }

        fn said(&self, runs: &[&PlannedRun], of: Objective) -> Said {
            let load = runs[0].spec.load.qps().expect("an open loop").to_f64();
            let pressure = match of {
                Objective::Ttft => load / self.knee,
                Objective::Tpot => load / self.tpot,
                Objective::CostPerMillion => self.cheap / load,
                _ => (load / self.knee).max(load / self.tpot),
            };
            let answer = if pressure <= 1.0 { Answer::Holds } else { Answer::Misses };
            let pressure = Some(pressure);
            let (requests, is_failed) = (5_000, load >= self.fails);
            let answer = if is_failed { Answer::Misses } else { answer };
            let met = Some(answer == Answer::Holds);
            let (answer, short, needs) = (Some(answer), None, None);
            Said { answer, is_saturated: false, is_failed, cost: None, pressure, requests, short, met, needs }
        }

        fn tried(&self, _: &PlannedRun, _: Aim) -> Tried {
            unreachable!("no settings are tried")
        }
    }

    #[test]
    fn a_search_asks_for_the_same_runs_wherever_it_was_cut() {
        let pools = pools(serde_json::json!({ "search": { "qps": { "from": 1, "to": 100 } } }));
        let of = |there| choose(&pools[0], &Knee::of(30.0, there));
        let whole = of(usize::MAX);
        let Some(Ended::Search(outcome)) = &whole.end else { panic!("expected the end: {whole:?}") };
        assert!(outcome.found.is_some_and(|found| (28.5..=31.5).contains(&found)), "{outcome:?}");
        for there in 0..whole.finished.len() {
            let cut = of(there);
            assert_eq!((&cut.finished[..], cut.next), (&whole.finished[..there], Some(whole.finished[there])));
        }
    }

    #[test]
    fn invalid_runs_above_the_answer_are_misses_that_it_looks_for() {
        let pools = pools(serde_json::json!({ "search": { "qps": { "from": 1, "to": 100 } } }));
        let of = |knee, fails| choose(&pools[0], &Knee { fails, ..Knee::of(knee, usize::MAX) });
        let load = |at: &usize| pools[0].members[*at].load;
        let chosen = of(30.0, 31.0);
        assert!(chosen.is_answered() && chosen.replaced.is_empty(), "{chosen:?}");
        let failed: Vec<usize> = chosen.finished.iter().copied().filter(|at| load(at) >= 31.0).collect();
        assert!(!failed.is_empty() && chosen.beyond == failed, "{chosen:?}");
        // No run is beyond the found load if no load was found, or if no run failed.
        assert_eq!((of(30.0, 0.5).beyond, of(30.0, f64::INFINITY).beyond), (Vec::new(), Vec::new()));
    }

    /// Returns the pools of a search under limits on the time to first token, the time per output token
    /// and the cost.
    fn several(meets: serde_json::Value) -> Vec<Pool> {
        let slo = serde_json::json!({ "ttft": { "p90": "50ms" }, "tpot": { "p90": "5ms" }, "cost_per_million": 3 });
        pools_under(slo, serde_json::json!({ "search": { "qps": { "from": 1, "to": 100 }, "meets": meets } }))
    }

    #[test]
    fn one_search_answers_for_every_limit_and_each_run_speaks_for_all() {
        let judge = |there| Knee { tpot: 20.0, cheap: 12.0, ..Knee::of(30.0, there) };
        let (whole, alone) = (several("slo".into()), several("each".into()));
        let slo = choose(&whole[0], &judge(usize::MAX));
        let each = choose(&alone[0], &judge(usize::MAX));
        let near = |load: Option<f64>, knee: f64| load.is_some_and(|load| load / knee < 1.06 && load / knee > 0.94);
        let of = |objective| each.parts.iter().find(|part| part.of == objective).expect("a part");
        for (objective, knee) in [(Objective::Slo, 20.0), (Objective::Tpot, 20.0), (Objective::Ttft, 30.0)] {
            assert!(near(of(objective).found().0, knee), "{objective:?}: {each:#?}");
        }
        let cost = of(Objective::CostPerMillion);
        let Some(PartAnswer::Cheapest(Cheapest::From { load, dearer: Some(dearer) })) = cost.answer else {
            panic!("{cost:?}")
        };
        assert!(dearer < 12.0 && (12.0..=12.7).contains(&load), "{dearer} to {load}");
        assert_eq!((each.binds, slo.binds), (Some(Objective::Tpot), Some(Objective::Tpot)));
        // The runs for the whole objective come first, and are the same as without the other objectives, which
        // need only a few more runs.
        assert_eq!(each.finished[..slo.finished.len()], slo.finished[..]);
        let long = |chosen: &Chosen| chosen.finished.iter().filter(|at| alone[0].members[**at].confirms).count();
        assert!(each.finished.len() <= slo.finished.len() + 10 && long(&each) == long(&slo) + 1, "{each:#?}");
        // Runs after the ones for the whole objective are labeled with the objective that requested
        // them.
        let asked = &each.asked_for;
        assert!(asked[..slo.finished.len()].iter().all(|of| *of == Objective::Slo), "{asked:?}");
        assert!(asked.len() == each.finished.len() && asked.last() == Some(&Objective::CostPerMillion), "{asked:?}");
        let words = slo.to_string();
        assert!(
            words.contains(" misses the objective (tpot); ") && words.contains("; ttft alone: shown 27.6 qps"),
            "{words}"
        );
        let words = each.to_string();
        for part in [" misses the objective (tpot); ", "; ttft alone: ", "; tpot alone: ", "; the cost is met from "] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn a_search_for_several_limits_asks_for_the_same_runs_wherever_it_was_cut() {
        let pools = several(serde_json::json!(["ttft", "cost_per_million", "slo"]));
        let of = |there| choose(&pools[0], &Knee { tpot: 20.0, cheap: 12.0, ..Knee::of(30.0, there) });
        let whole = of(usize::MAX);
        assert!(whole.finished.len() <= most_runs(&pools[0]), "{whole:?}");
        let Some(Ended::Search(first)) = &whole.end else { panic!("expected the end: {whole:?}") };
        assert!(first.found.is_some_and(|found| (28.5..=31.5).contains(&found)), "{first:?}");
        for there in 0..whole.finished.len() {
            let cut = of(there);
            assert_eq!((&cut.finished[..], cut.next), (&whole.finished[..there], Some(whole.finished[there])));
        }
        let late = of(whole.finished.len() - 1).to_string();
        assert!(late.starts_with("slo: estimated between "), "{late}");
    }

    /// Simulates servers with one, two, four and eight slots, of which the last three perform alike. The
    /// first `there` requested runs are finished.
    struct Slots {
        there: std::cell::Cell<usize>,
    }

    impl Judge for Slots {
        fn is_finished(&self, _: &PlannedRun) -> bool {
            self.there.replace(self.there.get().saturating_sub(1)) > 0
        }

        fn said(&self, _: &[&PlannedRun], _: Objective) -> Said {
            unreachable!("no load is judged")
        }

        fn tried(&self, run: &PlannedRun, _: Aim) -> Tried {
            let slots = run.cell.get("server.slots").expect("an axis").to_string();
            let value = match slots.as_str() {
                "1" => 40.0,
                "2" => 98.0,
                "4" => 100.0,
                _ => 99.0,
            };
            let deviation = 4.0 / 3_f64.powi(run.repeat as i32).sqrt();
            Tried { says: Says::Value { value, deviation }, why: None, start: None }
        }
    }

    #[test]
    fn settings_that_may_be_best_have_longer_runs_wherever_it_was_cut() {
        let plan = serde_json::json!({
            "sweepline": 1, "name": "t", "models": { "m": { "id": "x" } },
            "endpoints": { "e": { "engine": "mock", "launch": { "command": ["serve", "{{ server.args }}", "{{ port }}"], "port": "auto" } } },
            "sweeps": { "s": {
                "matrix": { "batch_size": [8, 64], "server.slots": [1, 2, 4, 8] },
                "optimize": { "for": "output_throughput", "budget": "2h" },
            } },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        let pools = expand(&plan).expect("expands").pools;
        assert_eq!(pools.iter().map(Pool::name).collect::<Vec<_>>(), ["e · m · B1 · 8", "e · m · B1 · 64"]);
        let of = |there| choose(&pools[0], &Slots { there: std::cell::Cell::new(there) });
        let whole = of(usize::MAX);
        let trials: Vec<(usize, u32)> = whole
            .finished
            .iter()
            .filter_map(|at| pools[0].members[*at].trial.map(|trial| (trial.configuration, trial.rung)))
            .collect();
        // The second rung runs in reverse order, so that the server of the last run is used again.
        assert_eq!(trials, [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (1, 1)]);
        let became = |chosen: &Chosen| -> Vec<Became> {
            chosen.settings.as_ref().expect("settings").runs.iter().map(|run| run.became).collect()
        };
        use Became::{LeftOut, Open, Undecided, WentOn};
        assert_eq!(became(&whole), [LeftOut, WentOn, WentOn, WentOn, Undecided, Undecided, Undecided]);
        assert_eq!(became(&of(3)), [Open; 3]);
        // The settings that advance are known before their turn in the next rung.
        assert_eq!(became(&of(5)), [LeftOut, WentOn, WentOn, WentOn, Open]);
        let window = |at: usize| pools[0].members[whole.finished[at]].run.spec.phases.measure.duration;
        assert_eq!(window(4).0, 3 * window(0).0);
        assert!(whole.to_string().starts_with("undecided between slots=4 with 100 tokens/s ("), "{whole}");
        for there in 0..whole.finished.len() {
            let cut = of(there);
            assert_eq!((&cut.finished[..], cut.next), (&whole.finished[..there], Some(whole.finished[there])));
        }
        let standing = of(5).to_string();
        assert!(
            standing.starts_with("4 settings, rung 2 of 2, ahead so far: slots=4 with 100 tokens/s ("),
            "{standing}"
        );
        assert!(standing.ends_with("); 5 runs so far"), "{standing}");
    }

    #[test]
    fn a_ladder_rises_and_ends_behind_what_is_shown() {
        let pools = pools(serde_json::json!({
            "matrix": { "endpoint": "e", "model": "m", "qps": [40, 10, 20, 80] }, "stop": "slo_missed", "repeats": 2,
        }));
        let whole = choose(&pools[0], &Knee::of(30.0, usize::MAX));
        let loads: Vec<f64> = whole.finished.iter().map(|at| pools[0].members[*at].load).collect();
        assert_eq!(loads, [10.0, 10.0, 20.0, 20.0, 40.0, 40.0]);
        assert_eq!(whole.end, Some(Ended::Cut { load: 40.0, why: "misses the objective", pruned: 1 }));
        assert_eq!(whole.to_string(), "40 qps misses the objective, so one heavier load was skipped; 6 runs");
    }
}
