//! Output tokens per joule of the GPUs, over the runs of one load.

use super::derived::{BY_COUNTER, BY_POWER, PER_JOULE};
use super::figure::ServerFigure;

/// How energy was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyBy {
    /// By the counters of the GPUs.
    Counter,
    /// By the integral of the GPUs' power.
    Power,
}

impl EnergyBy {
    /// Returns the name of the method in output.
    pub fn name(self) -> &'static str {
        match self {
            EnergyBy::Counter => "counter",
            EnergyBy::Power => "power",
        }
    }
}

/// Output tokens per joule, as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerJoule {
    /// Output tokens per joule.
    pub tokens: f64,
    /// How the energy was measured.
    pub by: EnergyBy,
}

/// Divides the total output tokens of the runs by their total energy. `None` if a run lacks the
/// energy, or if the runs measured it in different ways.
pub fn tokens_per_joule<'a>(runs: impl IntoIterator<Item = &'a [ServerFigure]>) -> Option<PerJoule> {
    let each: Vec<(EnergyBy, [f64; 2])> = runs.into_iter().map(of_run).collect::<Option<_>>()?;
    let by = each.first()?.0;
    let [tokens, joules] = each.iter().fold([0.0, 0.0], |sum, (_, one)| [sum[0] + one[0], sum[1] + one[1]]);
    each.iter().all(|(other, _)| *other == by).then_some(PerJoule { tokens: tokens / joules, by })
}

/// Returns how the energy of one run was measured, with the run's tokens and joules; `None` if either is
/// unknown.
fn of_run(figures: &[ServerFigure]) -> Option<(EnergyBy, [f64; 2])> {
    let value = |name: &str| figures.iter().find(|figure| figure.name == name)?.value.clone().ok();
    let by_counter = value(BY_COUNTER).map(|joules| (EnergyBy::Counter, joules));
    let (by, joules) = by_counter.or_else(|| Some((EnergyBy::Power, value(BY_POWER)?)))?;
    Some((by, [value(PER_JOULE)? * joules, joules]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::canonical::Unit;

    fn run(name: &str, joules: Option<f64>, tokens: f64) -> Vec<ServerFigure> {
        let figure = |name: &str, unit, value: Option<f64>| {
            ServerFigure::new(name, unit, "", value.ok_or_else(|| "a gap".to_owned()))
        };
        vec![
            figure(name, Unit::Joules, joules),
            figure(PER_JOULE, Unit::TokensPerJoule, joules.map(|joules| tokens / joules)),
        ]
    }

    fn of(runs: &[Vec<ServerFigure>]) -> Option<PerJoule> {
        tokens_per_joule(runs.iter().map(Vec::as_slice))
    }

    #[test]
    fn tokens_of_all_runs_are_over_the_energy_of_all() {
        let both = [run(BY_COUNTER, Some(100.0), 300.0), run(BY_COUNTER, Some(300.0), 500.0)];
        assert_eq!(of(&both), Some(PerJoule { tokens: 2.0, by: EnergyBy::Counter }));
        let power = [run(BY_POWER, Some(100.0), 300.0)];
        assert_eq!(of(&power), Some(PerJoule { tokens: 3.0, by: EnergyBy::Power }));
    }

    #[test]
    fn it_is_not_known_of_all_where_one_run_lacks_it() {
        let known = || run(BY_COUNTER, Some(100.0), 300.0);
        assert_eq!(of(&[known(), run(BY_COUNTER, None, 500.0)]), None);
        assert_eq!(of(&[known(), run(BY_POWER, Some(300.0), 500.0)]), None, "by different means");
        assert_eq!(of(&[known(), Vec::new()]), None);
        assert_eq!(of(&[]), None);
    }
}
