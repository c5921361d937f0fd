//! A first look: short phases beside the full ones, and a variable that chooses.

use super::draft::{Draft, Field, Section};
use super::text::{list_length, seconds};

/// How long a first look takes, in seconds.
const LOOK: usize = 120;
/// The longest and the shortest run of it, in seconds.
const LONGEST: usize = 40;
const SHORTEST: usize = 6;
/// What `none of the full phases` is called in the plan.
const CHOICE: &str = "look if quick else";

/// Puts short phases in front of the full ones; `vars.quick` chooses between them.
pub(super) fn quick(draft: &mut Draft) {
    let runs: usize = draft.sweeps.iter().map(|sweep| cells(&sweep.matrix)).sum();
    let each = (LOOK / runs.max(1)).clamp(SHORTEST, LONGEST);
    let (rise, measure) = ((each / 6).max(1), each - 2 * (each / 6).max(1));
    let look = format!(
        "{{ fill: {}, stabilize: {}, measure: {}, drain: {} }}",
        seconds(rise as f64),
        seconds(rise as f64),
        seconds(measure as f64),
        seconds(each as f64)
    );
    let time = runs * each;
    let why = format!(
        "{runs} cells of {each}s: {}",
        if time <= LOOK { "at most 2 minutes".to_owned() } else { format!("about {} minutes", time.div_ceil(60)) }
    );
    let mut vars = vec![
        Field::new("quick", "true", "--quick: a first look; false, or --set vars.quick=false, takes the full phases"),
        Field::new("look", look, why),
    ];
    let mut full: Vec<(String, String)> = Vec::new();
    let mut variable = |hint: &str, value: &str, origin: &str, vars: &mut Vec<Field>| {
        if let Some((name, _)) = full.iter().find(|(_, known)| known == value) {
            return name.clone();
        }
        let name = name(hint, vars);
        vars.push(Field::new(&name, value, origin));
        full.push((name.clone(), value.to_owned()));
        name
    };
    for section in draft.sections.iter_mut().filter(|section| section.key == "phases") {
        let values: Vec<String> =
            section.fields.iter().map(|field| format!("{}: {}", field.key, field.value)).collect();
        let name = variable("full", &format!("{{ {} }}", values.join(", ")), "the full phases", &mut vars);
        section.value = Some(Field::new("phases", format!("\"{{{{ {CHOICE} {name} }}}}\""), ""));
    }
    for sweep in &mut draft.sweeps {
        let hint = format!("full_{}", sweep.name);
        for field in &mut sweep.fields {
            match field.key.as_str() {
                "phases" => {
                    let name = variable(&hint, &field.value, &field.origin, &mut vars);
                    (field.value, field.origin) = (format!("\"{{{{ {CHOICE} {name} }}}}\""), String::new());
                }
                "repeats" => field.value = format!("\"{{{{ 1 if quick else {} }}}}\"", field.value),
                _ => {}
            }
        }
    }
    draft.sections.insert(0, Section { key: "vars", fields: vars, ..Section::default() });
}

/// A name that a template can use.
fn name(hint: &str, vars: &[Field]) -> String {
    let plain: String = hint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_free = |name: &String| vars.iter().all(|field| field.key != *name);
    let numbered = (2..).map(|number| format!("{plain}_{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain)
}

/// How many cells a matrix has whose axes are lists.
fn cells(matrix: &[Field]) -> usize {
    matrix.iter().map(|axis| list_length(&axis.value)).product()
}
