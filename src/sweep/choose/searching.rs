//! A search for one or several objectives. There is a separate search for each objective, all over the same
//! loads. The next run is the one that the first unfinished search requests, and its result is used by all
//! searches.

use super::chosen::{Chosen, Ended, Needs, Part, PartAnswer};
use super::judge::Judge;
use crate::analysis::highest::{Highest, Seen};
use crate::analysis::search::{
    self, Caveat, Cheapest, CheapestNext, End, Next, Ordinary, Outcome, Probe, Question, Standing,
};
use crate::analysis::slo::Answer;
use crate::expand::{Pool, Searched};
use crate::plan::model::search::Objective;

/// A pool that searches for the highest load that meets the objectives.
pub(super) struct Searching<'p> {
    pub pool: &'p Pool,
    pub search: &'p Searched,
}

/// The search for one objective, with the results of all finished runs for this objective.
struct Track {
    of: Objective,
    probes: Vec<Probe>,
    answer: Option<PartAnswer>,
}

/// The run that a track requests next.
enum Asks {
    /// A run. If it does not exist yet but the ordinary run `instead` does, that one is requested.
    Run {
        load: f64,
        repeat: u32,
        confirms: bool,
        instead: Option<Ordinary>,
    },
    Nothing,
}

impl Searching<'_> {
    /// Returns the state of the pool.
    pub(super) fn stands(&self, judge: &dyn Judge) -> Chosen {
        let question = self.question();
        let track = |of: &Objective| Track { of: *of, probes: Vec::new(), answer: None };
        let mut tracks: Vec<Track> = self.search.meets.iter().map(track).collect();
        let mut chosen = Chosen::nothing(self.pool.unit());
        let mut turn = 0;
        while turn < tracks.len() {
            let Asks::Run { load, repeat, confirms, instead } = tracks[turn].asks(&question) else {
                turn += 1;
                continue;
            };
            let Some(at) = self.pool.find(load, repeat, confirms) else {
                let standing = search::standing(&question, &tracks[turn].probes);
                tracks[turn].ends_without_runs(standing);
                continue;
            };
            chosen.asked_for.push(tracks[turn].of);
            let is_there = |at: &usize| judge.is_finished(&self.pool.members[*at].run);
            let other = || instead.and_then(|run| self.pool.find(run.load, run.repeat, false)).filter(is_there);
            let Some(at) = Some(at).filter(is_there).or_else(other) else {
                chosen.next = Some(at);
                break;
            };
            let member = &self.pool.members[at];
            let (run, load, confirms) = (&member.run, member.load, member.confirms);
            chosen.finished.push(at);
            let there = chosen.runs_at(load, self.pool);
            for (other, track) in tracks.iter_mut().enumerate() {
                let (said, together) = (judge.said(&[run], track.of), judge.said(&there, track.of));
                track.probes.push(said.probe(&together, (load, confirms), other == turn));
            }
        }
        self.tell(&mut chosen, tracks, turn, judge);
        chosen.replaced = self.replaced(&chosen.finished, judge);
        chosen.beyond = self.beyond(&chosen, judge);
        chosen
    }

    /// Returns the positions of finished runs at loads above the highest found load in which too many
    /// requests failed.
    fn beyond(&self, chosen: &Chosen, judge: &dyn Judge) -> Vec<usize> {
        let latencies = chosen.parts.iter().filter(|part| part.of != Objective::CostPerMillion);
        let Some(found) = latencies.filter_map(|part| part.found().0).reduce(f64::max) else { return Vec::new() };
        let fails = |at: &usize| {
            let member = &self.pool.members[*at];
            member.load > found && judge.said(&[&member.run], Objective::Slo).is_failed
        };
        chosen.finished.iter().copied().filter(fails).collect()
    }

    /// Returns the positions of finished runs without a usable result that were replaced by a later, usable
    /// run of the same load and length.
    fn replaced(&self, finished: &[usize], judge: &dyn Judge) -> Vec<usize> {
        let member = |at: &usize| &self.pool.members[*at];
        let says = |at: &usize| judge.said(&[&member(at).run], Objective::Slo).answer.is_some();
        let kind = |at: &usize| (member(at).load, member(at).confirms);
        let behind =
            |place: usize, at: &usize| finished[place + 1..].iter().any(|other| kind(other) == kind(at) && says(other));
        let silent = finished.iter().enumerate().filter(|(_, at)| !says(at));
        silent.filter(|(place, at)| behind(*place, at)).map(|(_, at)| *at).collect()
    }

    /// Writes the results of the searches into `chosen`.
    fn tell(&self, chosen: &mut Chosen, tracks: Vec<Track>, turn: usize, judge: &dyn Judge) {
        let question = self.question();
        let of_limit = |of: &Objective| {
            let said = |at: &usize| {
                let member = &self.pool.members[*at];
                let said = judge.said(&[&member.run], *of);
                said.probe(&said, (member.load, member.confirms), false)
            };
            (*of, chosen.finished.iter().map(said).collect::<Vec<Probe>>())
        };
        // If only one latency is limited, the limit is the whole objective, so it is not listed separately.
        let is_told = |of: &&Objective| self.search.limits.len() > 1 && !self.search.meets.contains(of);
        let further: Vec<(Objective, Vec<Probe>)> = self.search.limits.iter().filter(is_told).map(of_limit).collect();
        let asked = tracks.into_iter().map(|track| (track.of, track.probes, track.answer, true));
        let further = further.into_iter().map(|(of, probes)| (of, probes, None, false));
        let mut parts = Vec::new();
        for (of, probes, mut answer, is_asked) in asked.chain(further) {
            let between = between(&question, of, &probes);
            if let Some(PartAnswer::Highest { outcome }) = &mut answer {
                self.hears_all_runs(outcome, of, chosen, judge);
            }
            let found = answer.as_ref().and_then(PartAnswer::highest);
            let highest = self.highest(of, found, chosen, judge);
            parts.push(Part { of, is_asked, between, answer, highest });
        }
        // A single limit is the whole objective.
        let is_whole = |part: &&Part| part.of == Objective::Slo || self.search.limits == [part.of];
        chosen.highest = match parts.iter().find(is_whole) {
            Some(part) => part.highest,
            None => self.highest(Objective::Slo, None, chosen, judge),
        };
        chosen.needs = self.needs(chosen, judge);
        chosen.between = parts.get(turn).or(parts.first()).map_or((None, None), |part| part.between);
        chosen.binds = self.binds(&parts, &chosen.finished, judge);
        if chosen.next.is_none() {
            let outcome = parts.iter().find_map(|part| match &part.answer {
                Some(PartAnswer::Highest { outcome }) => Some(outcome.clone()),
                _ => None,
            });
            chosen.end = outcome.map(Ended::Search);
        }
        chosen.parts = parts;
    }

    /// Returns the highest load that is shown to meet an objective, and the highest load that met it in what was
    /// seen. `found` is the result of the search.
    fn highest(&self, of: Objective, found: Option<f64>, chosen: &Chosen, judge: &dyn Judge) -> Highest {
        if of == Objective::CostPerMillion {
            return Highest::default();
        }
        let seen = |load: f64| judge.said(&chosen.runs_at(load, self.pool), of).seen(load);
        let seen: Vec<Seen> = chosen.loads(self.pool).into_iter().map(seen).collect();
        Highest::of(&seen, found)
    }

    /// Returns how much longer the runs must be at each load between the highest load that is shown to meet the
    /// plan's objective and the lowest load that is shown to miss it.
    fn needs(&self, chosen: &Chosen, judge: &dyn Judge) -> Vec<Needs> {
        let Highest { shown, misses, .. } = chosen.highest;
        let is_open =
            |load: &f64| shown.is_none_or(|shown| *load > shown) && misses.is_none_or(|misses| *load < misses);
        let of = |load: f64| {
            let said = judge.said(&chosen.runs_at(load, self.pool), Objective::Slo);
            let (needs, met) = (said.needs?, said.met?);
            let long = chosen.finished.iter().map(|at| &self.pool.members[*at]);
            let long = long.filter(|member| member.load == load && member.confirms);
            let windows = long.map(|member| member.run.spec.phases.measure.duration.0 as f64 / 1e9);
            Some(Needs { load, met, seconds: needs.seconds, confirm: windows.sum::<f64>() + needs.seconds })
        };
        chosen.loads(self.pool).into_iter().filter(is_open).filter_map(of).collect()
    }

    /// If all runs at a load together show that it meets the objective, removes the caveat that this is not
    /// shown. The search itself uses only the long run, which alone may be too short to show it.
    fn hears_all_runs(&self, outcome: &mut Outcome, of: Objective, chosen: &Chosen, judge: &dyn Judge) {
        outcome.caveats.retain(|caveat| {
            let Caveat::NotShown { load } = caveat else { return true };
            judge.said(&chosen.runs_at(*load, self.pool), of).answer != Some(Answer::Holds)
        });
    }

    /// Returns the latency limit that is exceeded most at the load that misses the objective; `None` if the
    /// objective does not limit several latencies, or if none of the limits is exceeded.
    fn binds(&self, parts: &[Part], finished: &[usize], judge: &dyn Judge) -> Option<Objective> {
        let slo = parts.iter().find(|part| part.of == Objective::Slo)?;
        let missed = slo.highest.missed.map(|missed| missed.load).or(slo.found().1)?;
        let of = |limit: &Objective| {
            let runs = finished.iter().map(|at| &self.pool.members[*at]).filter(|member| member.load == missed);
            let pressures = runs.filter_map(|member| judge.said(&[&member.run], *limit).pressure);
            Some((*limit, pressures.reduce(f64::max)?))
        };
        let pressed: Vec<(Objective, f64)> = self.search.limits.iter().filter_map(of).collect();
        let most = pressed.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        // A load may miss the objective without exceeding a latency limit, because the server does not
        // sustain the load.
        (self.search.limits.len() > 1 && most.1 > 1.0).then_some(most.0)
    }

    /// Returns the largest number of runs that the search can take, whatever its results are.
    pub(super) fn most_runs(&self) -> usize {
        let question = self.question();
        let of = |objective: &Objective| match objective {
            Objective::CostPerMillion => search::most_cheapest(&question),
            _ => search::most_probes(&question),
        };
        self.search.meets.iter().map(of).sum::<usize>().min(self.pool.members.len())
    }

    pub(super) fn question(&self) -> Question {
        let loads = self.pool.loads();
        let (from, to) = (loads.first().copied().unwrap_or(1.0), loads.last().copied().unwrap_or(1.0));
        let Searched { axis, within, confirm, .. } = self.search;
        Question { from, to, within: *within, whole: *axis == "batch_size", confirm: confirm.is_some() }
    }
}

impl Track {
    /// Returns the run that this search requests next. A search that has ended requests no more runs, even
    /// if later runs for other searches contradict its answer.
    fn asks(&mut self, question: &Question) -> Asks {
        while self.answer.is_none() {
            if self.of == Objective::CostPerMillion {
                match search::cheapest(question, &self.probes) {
                    CheapestNext::Probe { load, repeat } => {
                        return Asks::Run { load, repeat, confirms: false, instead: None };
                    }
                    CheapestNext::Ended(cheapest) => self.answer = Some(PartAnswer::Cheapest(cheapest)),
                }
                continue;
            }
            match search::next(question, &self.probes) {
                Next::Probe { load, repeat } => return Asks::Run { load, repeat, confirms: false, instead: None },
                Next::Confirm { load, repeat, instead } => {
                    // A long run that was requested for another objective also confirms this objective.
                    let there = |probe: &&mut Probe| probe.confirms && !probe.own && probe.load == load;
                    match self.probes.iter_mut().find(there) {
                        Some(probe) => probe.own = true,
                        None => return Asks::Run { load, repeat, confirms: true, instead },
                    }
                }
                Next::Ended(outcome) => self.ends(outcome),
            }
        }
        Asks::Nothing
    }

    fn ends(&mut self, outcome: Outcome) {
        self.answer = Some(PartAnswer::Highest { outcome });
    }

    /// Ends a search that requests another run of a load although the pool has no more runs of this load.
    /// This happens if the existing runs disagree.
    fn ends_without_runs(&mut self, standing: Standing) {
        if self.of == Objective::CostPerMillion {
            self.answer = Some(PartAnswer::Cheapest(Cheapest::Unknown));
            return;
        }
        let caveats = standing.low.map(|load| Caveat::Unconfirmed { load }).into_iter().collect();
        self.ends(Outcome { found: None, misses: standing.high, end: End::OutOfProbes, caveats });
    }
}

/// Returns the highest load that meets an objective, and the lowest load that misses it. A cost limit is
/// met at high loads, so for a cost, returns the highest load that misses the limit, and the lowest load
/// that meets it.
fn between(question: &Question, of: Objective, probes: &[Probe]) -> (Option<f64>, Option<f64>) {
    if of != Objective::CostPerMillion {
        let standing = search::standing(question, probes);
        return (standing.low, standing.high);
    }
    let loads = |answer| probes.iter().filter(move |probe| probe.answer == Some(answer)).map(|probe| probe.load);
    let cheap = loads(Answer::Holds).reduce(f64::min);
    (loads(Answer::Misses).filter(|load| cheap.is_none_or(|cheap| *load < cheap)).reduce(f64::max), cheap)
}
