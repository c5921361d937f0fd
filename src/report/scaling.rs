//! Renders how the load that meets the objective grows with the number of replicas behind one balancer.

use crate::analysis::capacity::Target;
use crate::analysis::curve::Series;
use crate::analysis::scaling::{Needed, Scaling, Step};

use super::configuration::{Answer, Configuration};
use super::format::{digits, plain};

/// The scaling of the server of some configurations.
pub struct MeasuredScaling<'a> {
    /// What the first of the configurations serves.
    pub series: &'a Series,
    /// The capacity of each number of replicas.
    pub scaling: Scaling,
}

/// Returns the scaling of each server that a sweep measured with several numbers of replicas.
pub fn scalings<'a>(configurations: &'a [Configuration]) -> Vec<MeasuredScaling<'a>> {
    let mut groups: Vec<Vec<&Configuration>> = Vec::new();
    for one in configurations.iter().filter(|one| one.replicas.is_some() && matches!(one.answer, Answer::Holds { .. }))
    {
        match groups.iter_mut().find(|group| is_same_server(group[0], one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let measured = |one: &&Configuration| match (&one.replicas, &one.answer) {
        (Some(replicas), Answer::Holds { instance, .. }) => Some((replicas.count, **instance)),
        _ => None,
    };
    let of_group = |group: Vec<&'a Configuration>| {
        let scaling = Scaling::of(group.iter().filter_map(measured).collect())?;
        Some(MeasuredScaling { series: &group[0].curve.series, scaling })
    };
    groups.into_iter().filter_map(of_group).collect()
}

/// Returns whether the configurations differ at most in the endpoint and the number of its replicas.
fn is_same_server(one: &Configuration, other: &Configuration) -> bool {
    let each = |configuration: &Configuration| configuration.replicas.as_ref().map(|replicas| replicas.each.clone());
    let (left, right) = (&one.curve.series, &other.curve.series);
    each(one) == each(other)
        && (&left.sweep, left.cap) == (&right.sweep, right.cap)
        && left.axes == right.axes
        && left.serves_as(right)
}

impl MeasuredScaling<'_> {
    /// Describes the scaling in one line and, if there is a target, the number of replicas that it needs.
    pub fn line(&self, target: Option<Target>) -> String {
        let steps: Vec<String> = self.scaling.steps.iter().map(step).collect();
        let needed = target.map(|target| self.needed(target)).unwrap_or_default();
        format!("scaling as measured for {}: {}{needed}", plain(&self.series.served()), steps.join("; "))
    }

    fn needed(&self, target: Target) -> String {
        let Needed { replicas, measured, more_than } = self.scaling.needed(target);
        let not = more_than.map(|fewer| format!(", {fewer} do not suffice")).unwrap_or_default();
        match (measured, self.scaling.steps.last()) {
            (false, Some(largest)) => format!(
                ". No measured number serves the target; {replicas} would if the server went on scaling as up to \
                 {}{not}",
                largest.replicas
            ),
            _ => format!(". The target needs {replicas}{not}"),
        }
    }
}

/// Describes the capacity of one number of replicas: `4 replicas 30.1 requests/s, 75 % of linear (62 to 120 %)`.
fn step(step: &Step) -> String {
    let Step { replicas, holds, share_of_linear, share_at_least, share_at_most, .. } = *step;
    let rate = digits(holds);
    if replicas == 1 {
        return format!("1 replica {rate} requests/s");
    }
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let range = match (share_at_least, share_at_most) {
        (Some(low), Some(high)) if low == high => return format!("{replicas} replicas {rate} requests/s"),
        (Some(low), Some(high)) => format!("{} to {} %", percent(low), percent(high)),
        (Some(low), None) => format!("{} % or more", percent(low)),
        (None, Some(high)) => format!("{} % or less", percent(high)),
        (None, None) => "not bounded, as no load missed".to_owned(),
    };
    format!("{replicas} replicas {rate}, {} % of linear ({range})", percent(share_of_linear))
}
