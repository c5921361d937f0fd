//! Names of runs in sentences, including the model if the plan has several models.

use indexmap::IndexSet;

use crate::analysis::curve::Run;

use super::evidence::Evident;

/// Names of runs, just long enough to distinguish them.
pub(super) struct Names {
    has_models: bool,
}

impl Names {
    /// Creates the names of all runs that are searched for symptoms.
    pub(super) fn of(evident: &Evident) -> Names {
        let on_curves = evident.curves.iter().flat_map(|curve| &curve.rungs).flat_map(|rung| &rung.runs);
        let predicted = evident.predicted.iter().map(|one| &one.run);
        let twins = evident.twins.iter().flat_map(|twins| [&twins.warm, &twins.cold]);
        let models: IndexSet<&str> =
            on_curves.chain(predicted).chain(twins).map(|run| run.labels.model.as_str()).collect();
        Names { has_models: models.len() > 1 }
    }

    /// Returns the name of a run: model (if there are several models), endpoint, scenario and the values of
    /// further axes. These parts distinguish the run from others with the same load.
    pub(super) fn run(&self, run: &Run) -> String {
        let axes = run.labels.axes.iter().map(|(axis, value)| format!(" · {axis}={value}"));
        format!(
            "{} · {}{}",
            self.server(&run.labels.endpoint, &run.labels.model),
            run.labels.scenario,
            axes.collect::<String>()
        )
    }

    /// Returns the name of a server: its endpoint, prefixed by the model if there are several models.
    pub(super) fn server(&self, endpoint: &str, model: &str) -> String {
        if self.has_models { format!("{model} · {endpoint}") } else { endpoint.to_owned() }
    }
}
