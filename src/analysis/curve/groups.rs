//! Curves that belong in one chart: same sweep, same load axis, same workload. Their endpoints and the settings of their
//! servers may differ, and are the labels of the curves.

use super::{Curve, Series};

/// Curves of one chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The indices of the curves.
    pub members: Vec<usize>,
    /// A label for each member that distinguishes it from the other curves of the same workload.
    pub labels: Vec<String>,
    /// The number of this chart, from 1, and the number of charts that the curves of this workload need.
    pub part: (usize, usize),
}

impl Together {
    /// Returns the addition to the title of a chart that does not contain all curves of its workload: `, part 1 of 2`.
    pub fn part_of(&self) -> String {
        match self.part {
            (_, 1) => String::new(),
            (part, parts) => format!(", part {part} of {parts}"),
        }
    }
}

/// Groups the curves, in the order of the first curve of each group. A group contains at most `most` curves,
/// as many as can be distinguished in a chart.
pub fn together(curves: &[Curve], most: usize) -> Vec<Together> {
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        match alike.iter_mut().find(|group| belongs(curve, &curves[group[0]])) {
            Some(group) => group.push(at),
            None => alike.push(vec![at]),
        }
    }
    let most = most.max(1);
    let mut groups = Vec::new();
    for members in alike {
        let series: Vec<&Series> = members.iter().map(|at| &curves[*at].series).collect();
        let labels = labels(&series);
        let parts = members.len().div_ceil(most);
        for (number, (members, labels)) in members.chunks(most).zip(labels.chunks(most)).enumerate() {
            groups.push(Together { members: members.to_vec(), labels: labels.to_vec(), part: (number + 1, parts) });
        }
    }
    groups
}

fn belongs(one: &Curve, other: &Curve) -> bool {
    one.axis == other.axis && one.series.sweep == other.series.sweep && one.series.serves_as(&other.series)
}

/// Returns a label for each of the series, which serve the same workload. A label contains what varies: the endpoint if
/// there are several, the flags of the server whose values differ (`server.slots=8`), and the cap if there is one. If
/// nothing varies, it is the endpoint.
pub fn labels(all: &[&Series]) -> Vec<String> {
    let has_endpoints = all.iter().any(|one| one.endpoint != all[0].endpoint);
    let varies = |flag: &str| all.iter().any(|one| one.axes.get(flag) != all[0].axes.get(flag));
    let label = |one: &&Series| {
        let settings = one.settings().filter(|(flag, _)| varies(flag)).map(|(flag, value)| format!("{flag}={value}"));
        let mut parts: Vec<String> = settings.collect();
        if has_endpoints || parts.is_empty() {
            parts.insert(0, one.endpoint.clone());
        }
        parts.extend(one.cap.map(|cap| format!("at most {cap} in flight")));
        parts.join(", ")
    };
    all.iter().map(label).collect()
}
