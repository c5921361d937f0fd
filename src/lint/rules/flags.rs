//! Rule about values of server flags that YAML reads as text although they look like something else.

use super::super::finding::{Finding, Scope};
use super::super::view::{View, steps};
use crate::expand::launch::{FLAGS_OF_SERVER, switch};
use crate::plan::model::axis::server_flag;
use crate::plan::{Fact, Launch, Scalar, Step};
use crate::units::with_point;

/// M035: a flag is set to `yes` or `no`, or to a number with a decimal comma.
pub(crate) fn text_flags(view: &View) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, endpoint) in &view.plan.endpoints {
        let (Some(launch), Some(Fact::Many(flags))) = (&endpoint.launch, endpoint.server.get(FLAGS_OF_SERVER)) else {
            continue;
        };
        for (flag, value) in flags {
            let at = steps!["endpoints", name.as_str(), "server", FLAGS_OF_SERVER, flag.as_str()];
            found.extend(finding(Scope::Endpoint(name.clone()), at, launch, flag, value));
        }
    }
    for sweep in &view.sweeps {
        let Some(launch) = sweep.endpoints.iter().find_map(|(_, endpoint)| endpoint.launch.as_ref()) else { continue };
        for axis in sweep.sweep.fields() {
            let Some(flag) = server_flag(axis) else { continue };
            for (value, place) in sweep.sweep.written(axis) {
                let at = [&steps!["sweeps", sweep.name][..], &place].concat();
                found.extend(finding(Scope::Sweep(sweep.name.to_owned()), at, launch, flag, &value));
            }
        }
    }
    found
}

fn finding(scope: Scope, at: Vec<Step>, launch: &Launch, flag: &str, value: &Scalar) -> Option<Finding> {
    let Scalar::Text(text) = value else { return None };
    let remedy = match text.to_lowercase().as_str() {
        "yes" => format!("write `true`, which passes `{}`", switch(flag, true)),
        "no" => format!("write `false`, which passes `{}`", switch(flag, false)),
        _ => format!("write `{}`", with_point(text)?),
    };
    // A flag that an expression of the command names is passed as written there.
    let name = format!("server.{flag}");
    let is_named = launch.texts().iter().any(|(_, text)| text.contains(&name));
    let passed = if is_named { text.clone() } else { format!("{} {text}", switch(flag, true)) };
    let message = format!("`{flag}: {text}` is a string, so the server gets `{passed}`");
    Some(Finding { scope, at, message, remedy, undisclosed: Vec::new() })
}
