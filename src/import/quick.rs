//! Adds a first look to a plan: short phases alongside the full ones, and a variable that selects between
//! them.

use super::draft::{Draft, Field, Section, Sweep};
use super::text::{list_length, search_range, seconds};

/// The intended duration of a first look, in seconds.
const LOOK: usize = 120;
/// The maximum and minimum duration of a run of a first look, in seconds.
const LONGEST: usize = 40;
const SHORTEST: usize = 6;
/// The number of loads that replace a search: enough to show where latencies rise.
const LOADS: u32 = 4;

/// Adds short phases alongside the full ones; `vars.quick` selects the short ones.
///
/// Short runs have too few requests to decide a percentile, so a search with them would end without a result.
/// The first look instead measures a few loads between the bounds of the search. Returns a sentence if the
/// first look takes longer than [`LOOK`].
pub(super) fn quick(draft: &mut Draft) -> Option<String> {
    let runs: usize = draft.sweeps.iter().map(runs).sum();
    let each = (LOOK / runs.max(1)).clamp(SHORTEST, LONGEST);
    let mut vars = Variables::new(runs, each);
    for section in draft.sections.iter_mut().filter(|section| section.key == "phases") {
        let values: Vec<String> =
            section.fields.iter().map(|field| format!("{}: {}", field.key, field.value)).collect();
        let name = vars.full("full", &format!("{{ {} }}", values.join(", ")), "the full phases");
        section.notes.iter_mut().for_each(|note| *note = note.replace(": shorten them for a first look.", "."));
        section.value = Some(Field::new("phases", chosen("look", &name), ""));
    }
    for sweep in &mut draft.sweeps {
        sweep_of(sweep, &mut vars);
    }
    draft.sections.insert(0, Section { key: "vars", fields: vars.fields, ..Section::default() });
    (runs * each > LOOK).then(|| {
        let (minutes, rest) = (runs * each / 60, runs * each % 60);
        format!(
            "--quick: the first look takes {minutes}m{rest:02}s, not 2 minutes: {runs} runs of {each}s, the shortest \
             run; remove values of the axes from the plan"
        )
    })
}

/// Makes the parts of a sweep selectable: its phases, its repeats, and loads instead of a search.
fn sweep_of(sweep: &mut Sweep, vars: &mut Variables) {
    let mut loads = None;
    for field in &mut sweep.fields {
        match field.key.as_str() {
            "phases" => {
                let name = vars.full(&format!("full_{}", sweep.name), &field.value, &field.origin);
                (field.value, field.origin) = (chosen("look", &name), String::new());
            }
            "repeats" => field.value = chosen("1", &field.value),
            "search" => {
                let Some((axis, from, to)) = search_range(&field.value) else { continue };
                let name = vars.full(&format!("search_{}", sweep.name), &field.value, &field.origin);
                (field.value, field.origin) = (chosen("none", &name), String::new());
                let list = format!("[{}]", between(from, to, axis == "batch_size").join(", "));
                loads = Some(Field::new(&axis, chosen(&list, "none"), "a first look at the range of the search"));
            }
            _ => {}
        }
    }
    sweep.matrix.extend(loads);
}

/// Returns a template that selects between a value of the first look and the full value.
fn chosen(look: &str, full: &str) -> String {
    format!("\"{{{{ {look} if quick else {full} }}}}\"")
}

/// Returns [`LOADS`] loads from `from` to `to` at equal ratios: whole numbers, or rates with two significant
/// digits.
fn between(from: f64, to: f64, is_whole: bool) -> Vec<String> {
    let ratio = (to / from).max(1.0);
    let mut loads: Vec<String> = (0..LOADS)
        .map(|step| from * ratio.powf(f64::from(step) / f64::from(LOADS - 1)))
        .map(|load| match is_whole {
            true => load.round().to_string(),
            false => {
                let scale = 10_f64.powf(load.log10().floor() - 1.0);
                (((load / scale).round() * scale * 1e6).round() / 1e6).to_string()
            }
        })
        .collect();
    loads.dedup();
    loads
}

/// Returns the number of runs of a sweep's first look.
fn runs(sweep: &Sweep) -> usize {
    let cells: usize = sweep.matrix.iter().map(|axis| list_length(&axis.value)).product();
    let search = sweep.fields.iter().find(|field| field.key == "search");
    let range = search.and_then(|field| search_range(&field.value));
    cells * range.map_or(1, |(axis, from, to)| between(from, to, axis == "batch_size").len())
}

/// The plan's variables: the selector, the short phases, and the full values.
struct Variables {
    fields: Vec<Field>,
    full: Vec<(String, String)>,
}

impl Variables {
    /// Creates the selector, and the short phases for this number of runs, each with this duration in
    /// seconds.
    fn new(runs: usize, each: usize) -> Variables {
        let rise = (each / 6).max(1);
        let look = format!(
            "{{ fill: {}, stabilize: {}, measure: {}, drain: {} }}",
            seconds(rise as f64),
            seconds(rise as f64),
            seconds((each - 2 * rise) as f64),
            seconds(each as f64)
        );
        let time = runs * each;
        let total =
            if time <= LOOK { "at most 2 minutes".to_owned() } else { format!("about {} minutes", time.div_ceil(60)) };
        let counted = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        let choice = "--quick: a first look; --set vars.quick=false runs the full phases";
        let fields = vec![
            Field::new("quick", "true", choice),
            Field::new("look", look, format!("{counted} of {each}s: {total}")),
        ];
        Variables { fields, full: Vec::new() }
    }

    /// Returns the name of the variable with this full value. Equal values share one variable.
    fn full(&mut self, hint: &str, value: &str, origin: &str) -> String {
        if let Some((name, _)) = self.full.iter().find(|(_, known)| known == value) {
            return name.clone();
        }
        let name = self.unused(hint);
        self.fields.push(Field::new(&name, value, origin));
        self.full.push((name.clone(), value.to_owned()));
        name
    }

    /// Returns an unused name that is valid in a template.
    fn unused(&self, hint: &str) -> String {
        let plain: String = hint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let is_free = |name: &String| self.fields.iter().all(|field| field.key != *name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain)
    }
}
