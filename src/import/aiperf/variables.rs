//! `variables:` and the `{{ … }}` in the texts of an AIPerf configuration.

use indexmap::IndexMap;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;

use super::env::scalar;
use super::leaves::{At, Leaf, Ledger, Tree};
use crate::import::error::ImportError;
use crate::import::text::one_line;

/// Fuel limit of one expression.
const FUEL: u64 = 10_000;
/// Maximum length of an expression's text.
const LONGEST: usize = 4096;
/// Maximum depth of variables that refer to variables.
const DEEPEST: usize = 16;

/// Replaces the expressions of a body by their values; `place` names the file in errors.
pub(super) fn render(
    place: &str,
    body: &mut Tree,
    variables: Option<&Tree>,
    ledger: &Ledger,
) -> Result<(), ImportError> {
    let mut used: Vec<String> = Vec::new();
    body.each_text(&mut |leaf| {
        note(leaf, &mut used);
        Ok::<(), ImportError>(())
    })?;
    let known = values(place, variables, ledger, &mut used)?;
    if let Some(variables) = variables {
        for (name, at) in At::new(variables, ledger).entries() {
            match used.iter().any(|expression| names(expression, name)) {
                true => drop(at.json()),
                false => at.needless("unused variable"),
            }
        }
    }
    body.each_text(&mut |leaf| {
        let Some(text) = leaf.value.as_str().filter(|text| is_template(text)) else { return Ok(()) };
        leaf.value = evaluated(place, text, &known)?;
        ledger.evaluated(leaf);
        Ok(())
    })
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn note(leaf: &Leaf, used: &mut Vec<String>) {
    used.extend(leaf.value.as_str().filter(|text| is_template(text)).map(str::to_owned));
}

/// Whether an expression uses a variable.
fn names(expression: &str, name: &str) -> bool {
    expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}

/// Returns the values of all variables, in the order of their dependencies.
fn values(
    place: &str,
    variables: Option<&Tree>,
    ledger: &Ledger,
    used: &mut Vec<String>,
) -> Result<IndexMap<String, Value>, ImportError> {
    let mut known = IndexMap::new();
    let Some(variables) = variables else { return Ok(known) };
    let mut open: Vec<(String, String)> = Vec::new();
    for (name, _) in At::new(variables, ledger).entries() {
        match variables.get(name).map(Tree::json) {
            Some(Value::String(text)) if is_template(&text) => {
                used.push(text.clone());
                open.push((name.to_owned(), text));
            }
            Some(value) => drop(known.insert(name.to_owned(), value)),
            None => {}
        }
    }
    for _ in 0..DEEPEST {
        let (ready, later): (Vec<_>, Vec<_>) =
            open.iter().cloned().partition(|(_, text)| !open.iter().any(|(other, _)| names(text, other)));
        for (name, text) in ready {
            let value = evaluated(place, &text, &known)?;
            known.insert(name, value);
        }
        open = later;
    }
    match open.first() {
        None => Ok(known),
        Some((name, _)) => {
            let what = format!("the variable `{}` depends on itself", one_line(name));
            Err(ImportError::shape(format!("{place}: variables"), what, "set one of them to a value"))
        }
    }
}

/// Returns the value of a text with expressions; this is a number if it parses as one.
fn evaluated(place: &str, text: &str, known: &IndexMap<String, Value>) -> Result<Value, ImportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    let made = environment.render_str(text, Serde(known.clone())).map_err(|error| {
        let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let what = format!("`{}` has no value: {reason}", one_line(text));
        ImportError::shape(place, what, "fix the expression, or write its value")
    })?;
    if made.len() > LONGEST {
        let what = format!("`{}` produces a string of {} bytes", one_line(text), made.len());
        return Err(ImportError::shape(place, what, "shorten it"));
    }
    Ok(scalar(&made))
}
