//! The elements of a plan, each of which is the work of one job. An element consists of the sweeps of a
//! part that can run at the same time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::parts::{Part, endpoint_of, list, parts};
use crate::expand::{Expansion, Pending};
use crate::plan::Plan;
use crate::plan::model::Resources;

/// The work of one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// The part whose runs the element measures.
    pub part: Part,
    /// The sweeps of the element, in declared order.
    pub sweeps: Vec<String>,
    /// Whether the part has other elements, which contain its other sweeps.
    pub is_one_of_several: bool,
    /// The resources of the job: the maximum of each kind over its endpoints.
    pub resources: Resources,
    /// The elements that this element waits for, by position, and when each of these dependencies is met.
    pub waits: BTreeMap<usize, Wait>,
}

/// When a dependency is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// When the other element has ended, successfully or not. Applies if a sweep comes `after`
    /// another sweep.
    Ended,
    /// When the other element has ended successfully. Applies if a sweep uses the result of another
    /// sweep.
    Succeeded,
}

impl Element {
    /// Returns the display name of the element: the part, and its sweeps if the part has several
    /// elements.
    pub fn name(&self) -> String {
        match self.is_one_of_several {
            true => format!("{}: {}", self.part.name, self.sweeps.join(", ")),
            false => self.part.name.clone(),
        }
    }

    /// Returns the `--only` filter for the element's sweeps; `None` if these are all sweeps of the
    /// part.
    pub fn only(&self) -> Option<String> {
        self.is_one_of_several.then(|| format!("sweep in {}", list(&self.sweeps)))
    }

    /// Whether a pending cell, which is not a run yet, belongs to the element.
    pub fn has_cell(&self, cell: &Pending) -> bool {
        endpoint_of(cell).is_some_and(|endpoint| self.has(&cell.sweep, endpoint))
    }

    /// Whether a run of this sweep on this endpoint belongs to the element.
    pub fn has(&self, sweep: &str, endpoint: &str) -> bool {
        self.part.has(endpoint) && self.sweeps.iter().any(|own| own == sweep)
    }
}

/// Returns the elements of a plan, each after its dependencies, or the reason why the plan cannot be split
/// into elements.
///
/// A sweep that comes after others is a later element of its part, unless all its dependencies are in the
/// same part. In that case, one process measures them all, and a launched server keeps running.
pub fn elements(plan: &Plan, expansion: &Expansion) -> Result<Vec<Element>, String> {
    let parts = parts(plan, expansion);
    let levels = Levels::of(plan, expansion, &parts);
    // Sorted by level first, so that dependencies come before their dependents.
    let mut sweeps: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for sweep in plan.sweeps.keys() {
        for (part, level) in levels.of_sweep(sweep) {
            sweeps.entry((level, part)).or_default().push(sweep);
        }
    }
    let places: HashMap<(usize, usize), usize> = sweeps.keys().enumerate().map(|(at, key)| (*key, at)).collect();
    let several = |part: usize| sweeps.keys().filter(|(_, of)| *of == part).count() > 1;
    let element = |(&(level, part), own): (&(usize, usize), &Vec<&str>)| {
        let before = sweeps.keys().filter(|(other, of)| *of == part && *other < level).max();
        let mut waits: BTreeMap<usize, Wait> = before.map(|key| (places[key], Wait::Ended)).into_iter().collect();
        for sweep in own {
            for earlier in levels.before(sweep) {
                let asks = plan.sweeps[*sweep].asks().any(|(asked, _)| asked == earlier);
                let wait = if asks { Wait::Succeeded } else { Wait::Ended };
                for (of, at) in levels.of_sweep(earlier) {
                    if (at, of) != (level, part) {
                        let known = waits.entry(places[&(at, of)]).or_insert(wait);
                        *known = (*known).max(wait);
                    }
                }
            }
        }
        Ok(Element {
            part: parts[part].clone(),
            sweeps: own.iter().map(|sweep| (*sweep).to_owned()).collect(),
            is_one_of_several: several(part),
            resources: resources(plan, &parts[part])?,
            waits,
        })
    };
    sweeps.iter().map(element).collect()
}

/// For each element, returns the dependencies for which `is_there` is true because they are submitted now or
/// are in the queue. Any other dependency is replaced by its own dependencies.
pub fn still_waits(elements: &[Element], is_there: &dyn Fn(usize) -> bool) -> Vec<BTreeMap<usize, Wait>> {
    let mut all: Vec<BTreeMap<usize, Wait>> = Vec::with_capacity(elements.len());
    for element in elements {
        let mut own: BTreeMap<usize, Wait> = BTreeMap::new();
        for (earlier, wait) in &element.waits {
            let further = if is_there(*earlier) { BTreeMap::from([(*earlier, *wait)]) } else { all[*earlier].clone() };
            for (at, wait) in further {
                let known = own.entry(at).or_insert(wait);
                *known = (*known).max(wait);
            }
        }
        all.push(own);
    }
    all
}

/// The order of a plan's sweeps. The sweeps that have the same level in a part form one element.
struct Levels<'a> {
    /// For each sweep, the positions of the parts that have runs of it, and its level in each of these parts.
    of: HashMap<&'a str, BTreeMap<usize, usize>>,
    /// For each sweep, all sweeps that must end before it, directly or indirectly.
    before: HashMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Levels<'a> {
    fn of(plan: &'a Plan, expansion: &'a Expansion, parts: &[Part]) -> Levels<'a> {
        let mut used: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for run in expansion.possible() {
            used.entry(&run.sweep).or_default().insert(&run.spec.endpoint.name);
        }
        for cell in &expansion.pending {
            used.entry(&cell.sweep).or_default().extend(endpoint_of(cell));
        }
        let part_of = |endpoint: &str| parts.iter().position(|part| part.has(endpoint));
        let of_sweep = |sweep: &str| -> BTreeSet<usize> {
            used.get(sweep).into_iter().flatten().filter_map(|endpoint| part_of(endpoint)).collect()
        };
        let mut levels = Levels { of: HashMap::new(), before: HashMap::new() };
        // A checked plan has no cycles, so each round finds a sweep whose predecessors are all known.
        while levels.of.len() < plan.sweeps.len() {
            let known = |name: &str| levels.of.contains_key(name);
            let next = plan.sweeps.keys().find(|name| !known(name) && direct(plan, expansion, name).all(known));
            let Some(sweep) = next else { break };
            let mut before: BTreeSet<&str> = direct(plan, expansion, sweep).collect();
            let further: Vec<&str> = before.iter().flat_map(|name| levels.before[name].iter().copied()).collect();
            before.extend(further);
            let level = |part: usize| before.iter().filter_map(|name| levels.behind(name, part)).max().unwrap_or(0);
            let of = of_sweep(sweep).into_iter().map(|part| (part, level(part))).collect();
            levels.of.insert(sweep, of);
            levels.before.insert(sweep, before);
        }
        levels
    }

    /// Returns the first level at which the part at position `part` can continue after this sweep; `None` if
    /// no part has runs of the sweep.
    fn behind(&self, sweep: &str, part: usize) -> Option<usize> {
        let of = &self.of[sweep];
        match of.get(&part) {
            Some(level) if of.len() == 1 => Some(*level),
            _ => of.values().max().map(|level| level + 1),
        }
    }

    fn of_sweep(&self, sweep: &str) -> impl Iterator<Item = (usize, usize)> {
        self.of.get(sweep).into_iter().flatten().map(|(part, level)| (*part, *level))
    }

    fn before(&self, sweep: &str) -> impl Iterator<Item = &'a str> {
        self.before.get(sweep).into_iter().flatten().copied()
    }
}

/// Returns the sweeps that a sweep refers to: the sweeps that it comes after, and the sweeps whose results it
/// uses.
fn direct<'a>(plan: &'a Plan, expansion: &'a Expansion, sweep: &str) -> impl Iterator<Item = &'a str> {
    let after = expansion.after.get(sweep).into_iter().flatten().map(String::as_str);
    after.chain(plan.sweeps.get(sweep).into_iter().flat_map(|sweep| sweep.asks().map(|(asked, _)| asked)))
}

/// Returns the resources of a part: the maximum of each amount over its endpoints. Names, such as the
/// partition, must be the same for all of its endpoints.
fn resources(plan: &Plan, part: &Part) -> Result<Resources, String> {
    let none = Resources::default();
    let mut all = Resources::default();
    for name in &part.endpoints {
        let own = plan.endpoints.get(name).and_then(|endpoint| endpoint.resources.as_ref()).unwrap_or(&none);
        all.gpus = all.gpus.max(own.gpus);
        all.cpus = all.cpus.max(own.cpus);
        all.memory = all.memory.max(own.memory);
        all.time = all.time.max(own.time);
        let one = |key: &str, all: &Option<String>, own: &Option<String>| match (all, own) {
            (Some(all), Some(own)) if all != own => Err(differ(part, key, (all, own))),
            _ => Ok(all.clone().or_else(|| own.clone())),
        };
        all.partition = one("partition", &all.partition, &own.partition)?;
        all.account = one("account", &all.account, &own.account)?;
        let further = own.slurm.0.iter().filter(|option| !all.slurm.0.contains(option)).cloned().collect::<Vec<_>>();
        all.slurm.0.extend(further);
        match (&all.kubernetes, &own.kubernetes) {
            (Some(one), Some(other)) if one != other => {
                return Err(differ(part, "kubernetes", ("one pod", "another")));
            }
            _ => all.kubernetes = all.kubernetes.or_else(|| own.kubernetes.clone()),
        }
    }
    Ok(all)
}

fn differ(part: &Part, key: &str, (one, other): (&str, &str)) -> String {
    format!(
        "one job measures the runs of endpoints {}, but their `resources` differ in `{key}`: {one} and {other}; \
         use the same, or \
         give each endpoint its own `resource`",
        part.endpoints.join(" and ")
    )
}
