//! The state of a search for the best settings of a server, and how it is described as text.

use std::cmp::Ordering;
use std::fmt;

use crate::analysis::halving::{End, Estimate, Meets, Outcome};
use crate::plan::Aim;
use crate::units::text::{counted, digits};

/// The state of a search for the best settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The metric to optimize.
    pub aim: Aim,
    /// All settings, in the order of the plan's matrix.
    pub all: Vec<Setting>,
    /// The runs of all settings, in the order in which they were requested.
    pub runs: Vec<SettingRun>,
    /// The current rung, from 1. Runs become longer from rung to rung.
    pub rung: usize,
    /// Number of rungs.
    pub rungs: usize,
    /// How the search ended; `None` while it continues.
    pub outcome: Option<Outcome>,
}

/// A finished run of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingRun {
    /// The position of the run in the pool.
    pub member: usize,
    /// The position of the run's setting in [`Settings::all`].
    pub setting: usize,
    /// The rung of the run, from 1.
    pub rung: usize,
    /// The value of this run; `None` if the run is invalid or was given up.
    pub value: Option<f64>,
    /// What happened to the setting after this run.
    pub became: Became,
}

/// What happened to a setting after one of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Became {
    /// The setting advanced to a longer run.
    WentOn,
    /// The setting was excluded: it is unlikely to be better than the best setting by more than the
    /// tolerance, or is shown to be worse.
    LeftOut,
    /// The setting cannot be chosen, because the server made the run invalid, because the run was given up,
    /// or because the setting misses the objective.
    NotToChoose,
    /// The run is inconclusive, because the client made it invalid, so it does not affect the setting.
    SaysNothing,
    /// The setting could not be distinguished from others that advanced, and the budget left no time for a
    /// longer run.
    NoTime,
    /// The setting is the best.
    Best,
    /// The setting is one of several settings that could not be distinguished at the end of the search.
    Undecided,
    /// Not decided yet, because other runs of the same rung come first.
    Open,
}

impl Became {
    /// Returns the name of the outcome in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns a short description of the outcome.
    pub fn words(self) -> &'static str {
        match self {
            Became::WentOn => "went on",
            Became::LeftOut => "excluded",
            Became::NotToChoose => "cannot be chosen",
            Became::SaysNothing => "inconclusive",
            Became::NoTime => "no time for a longer run",
            Became::Best => "best",
            Became::Undecided => "undecided",
            Became::Open => "not decided yet",
        }
    }
}

/// The current results of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The name of the setting, which consists of its values on the `server` axes.
    pub name: String,
    /// Number of finished runs of the setting.
    pub runs: usize,
    /// The estimate of the optimized metric; `None` if there is no conclusive run, or if the setting cannot
    /// be chosen.
    pub estimate: Option<Estimate>,
    /// Whether the setting meets the plan's objective, according to all of its runs together.
    pub meets: Meets,
    /// Number of requests in the measure windows of the setting's runs; 0 if the plan has no
    /// objective.
    pub requests: u64,
    /// Why the last run of the setting is inconclusive, or why the setting cannot be chosen, such as
    /// `invalid: client_late`; `None` otherwise.
    pub why: Option<String>,
}

impl Setting {
    fn with_value(&self, aim: Aim) -> String {
        match self.estimate {
            Some(Estimate { value, low, high, .. }) => {
                // The metric cannot be negative, but the lower end of its interval can be, because
                // the interval assumes a normal distribution.
                let [low, high] = [low.max(0.0), high].map(digits);
                format!("{} with {} {} ({low} to {high})", self.name, digits(value), aim.unit())
            }
            None => self.name.clone(),
        }
    }
}

impl Settings {
    /// Returns the setting with the best estimate so far; `None` if there is none.
    fn ahead(&self) -> Option<&Setting> {
        let value = |setting: &&Setting| setting.estimate.map(|estimate| estimate.value);
        let is_ahead = |estimate: Estimate| self.aim == Aim::CostPerMillion || estimate.value > 0.0;
        let known = self.all.iter().filter(|setting| setting.estimate.is_some_and(is_ahead));
        match self.aim {
            Aim::CostPerMillion => known.min_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal)),
            Aim::Goodput | Aim::OutputThroughput => {
                known.max_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal))
            }
        }
    }
}

impl Settings {
    /// Returns the caveats of the answer: the limits of the evidence for the settings that the answer
    /// names, and the reasons why other settings are not named.
    fn caveats(&self, outcome: &Outcome) -> Vec<String> {
        let mut caveats = Vec::new();
        let named = |at: usize| outcome.best == Some(at) || outcome.rivals.contains(&at);
        for (at, setting) in self.all.iter().enumerate() {
            let (name, is_named) = (&setting.name, named(at));
            caveats.extend(match (setting.meets, &setting.why) {
                (Meets::Misses, _) if is_named || self.aim != Aim::Goodput => {
                    Some(format!("{name} misses the objective"))
                }
                (_, Some(why)) if outcome.unknown.contains(&at) => {
                    Some(format!("{name} is undecided: its runs are inconclusive ({why})"))
                }
                (_, Some(why)) if setting.estimate.is_none() => Some(format!("{name} cannot be chosen ({why})")),
                (Meets::Seems, _) if is_named => Some(format!(
                    "{name} is not shown by {} to meet the objective",
                    counted(setting.requests as usize, "request")
                )),
                (Meets::SeemsNot, _) if is_named => Some(format!(
                    "{name} missed the objective as observed, but this is not shown by {}",
                    counted(setting.requests as usize, "request")
                )),
                _ => None,
            });
        }
        caveats.extend(self.spoiled(&outcome.unknown));
        if !outcome.unaffordable.is_empty() {
            let names: Vec<&str> = outcome.unaffordable.iter().map(|at| self.all[*at].name.as_str()).collect();
            let names = names.join(", ");
            caveats.push(format!(
                "could not be distinguished from the others, and there was no time for a longer run: {names}"
            ));
        }
        caveats
    }

    /// Returns how many runs are inconclusive, as text; `None` if there are none. Runs of the settings in
    /// `told` are not counted.
    fn spoiled(&self, told: &[usize]) -> Option<String> {
        let is_spoiled = |run: &&SettingRun| run.became == Became::SaysNothing && !told.contains(&run.setting);
        match self.runs.iter().filter(is_spoiled).count() {
            0 => None,
            1 => Some("one run was invalid and is inconclusive".to_owned()),
            runs => Some(format!("{runs} runs were invalid and are inconclusive")),
        }
    }

    /// Returns the answer without its caveats.
    fn answer(&self, outcome: &Outcome) -> String {
        let measured = || self.all.iter().filter_map(|setting| setting.estimate);
        if self.aim == Aim::Goodput && measured().count() > 0 && measured().all(|estimate| estimate.value == 0.0) {
            return "no settings returned a successful response".to_owned();
        }
        let named = |at: &usize| self.all.get(*at).map(|setting| setting.with_value(self.aim)).unwrap_or_default();
        let best = outcome.best.as_ref().map(named).unwrap_or_default();
        let rivals = outcome.rivals.iter().map(named).collect::<Vec<_>>().join(" and ");
        match outcome.end {
            End::None if rivals.is_empty() => {
                "no settings can be chosen: their runs are invalid, given up, or miss the objective".to_owned()
            }
            End::None => format!("no settings were observed to meet the objective; measured: {rivals}"),
            End::Best => format!("best: {best}"),
            End::Undecided if rivals.is_empty() => format!("undecided; best of those measured: {best}"),
            End::Undecided => format!("undecided between {best} and {rivals}"),
            End::Budget if rivals.is_empty() => format!("the budget is spent; ahead: {best}"),
            End::Budget => format!("the budget leaves no time for longer runs; undecided between {best} and {rivals}"),
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(outcome) = &self.outcome else {
            write!(f, "{}, rung {} of {}", counted(self.all.len(), "setting"), self.rung, self.rungs)?;
            let ahead = self.ahead().map(|setting| format!(", ahead so far: {}", setting.with_value(self.aim)));
            let spoiled = self.spoiled(&[]).map(|spoiled| format!("; {spoiled}"));
            return write!(f, "{}{}", ahead.unwrap_or_default(), spoiled.unwrap_or_default());
        };
        f.write_str(&self.answer(outcome))?;
        self.caveats(outcome).iter().try_for_each(|caveat| write!(f, "; {caveat}"))
    }
}
