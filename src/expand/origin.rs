//! Finds the place in the plan for a field of a run, so that `why` and `diff` can point at a line.

use crate::plan::{
    Endpoint, Fact, HookPoint, Json, Model, ModelId, PhasesPatch, Plan, ProfileFile, Scenario, Step, Sweep, Table,
    TextOrSecret,
};

use super::{Cell, PlannedRun};
use crate::plan::model::axis::SERVER_PREFIX;
use crate::plan::model::content::chain;

/// Returns the place in `plan` that determines the value of `field` (a canonical path such as `load.qps`) of
/// `run`.
///
/// If the plan uses the default, this is the place where the field would be written. It may not exist in
/// the file; its nearest existing parent is then the place to point at. Empty for the two version fields
/// of the canonical form, which are not part of a plan.
pub fn origin(plan: &Plan, run: &PlannedRun, field: &str) -> Vec<Step> {
    let Some(sweep) = plan.sweeps.get(&*run.sweep) else { return Vec::new() };
    let place = Place { plan, sweep, sweep_name: &run.sweep, cell: &run.cell };
    let (group, rest) = field.split_once('.').unwrap_or((field, ""));
    match group {
        "endpoint" => place.endpoint(rest),
        "model" => place.model(rest),
        "scenario" if rest == "reuse" => place.base(),
        "scenario" => match rest.split_once('.') {
            Some((table, field)) => place.table_of_request(table, field),
            None => place.request_field(rest),
        },
        "mix" => place.of_class(rest),
        "shaping" if rest.starts_with("extra.") => place.extra(&rest["extra.".len()..], &place.chain()),
        "shaping" if rest.starts_with("headers.") => place.header(&rest["headers.".len()..], &place.chain()),
        "shaping" => place.request_field(rest),
        "load" => place.load(rest),
        "phases" => place.phase(rest),
        "between" if sweep.between.is_some() => place.in_sweep(&["between", rest]),
        "between" | "timeouts" => keys(&[group, rest]),
        "connections" => place.connections(),
        "seed" => keys(&["seed"]),
        "repeat" => place.in_sweep(&["repeats"]),
        _ => Vec::new(),
    }
}

fn keys(keys: &[&str]) -> Vec<Step> {
    keys.iter().map(|key| Step::from(*key)).collect()
}

/// The inputs for finding a field's place.
struct Place<'a> {
    plan: &'a Plan,
    sweep: &'a Sweep,
    sweep_name: &'a str,
    cell: &'a Cell,
}

impl Place<'_> {
    fn in_sweep(&self, path: &[&str]) -> Vec<Step> {
        let mut steps = keys(&["sweeps", self.sweep_name]);
        steps.extend(keys(path));
        steps
    }

    /// The place where the cell's value of `axis` is written.
    fn axis(&self, axis: &str) -> Option<Vec<Step>> {
        let place = self.cell.place(axis)?;
        Some([&keys(&["sweeps", self.sweep_name])[..], place].concat())
    }

    fn axis_or_matrix(&self, axis: &str) -> Vec<Step> {
        self.axis(axis).unwrap_or_else(|| self.in_sweep(&["matrix"]))
    }

    fn name_on(&self, axis: &str) -> String {
        self.cell.get(axis).map(ToString::to_string).unwrap_or_default()
    }

    fn endpoint(&self, field: &str) -> Vec<Step> {
        let name = self.name_on("endpoint");
        let Some(endpoint) = self.plan.endpoints.get(&name) else { return self.axis_or_matrix("endpoint") };
        let mut steps = keys(&["endpoints", &name]);
        match field.split_once('.') {
            None if field == "name" => return self.axis_or_matrix("endpoint"),
            Some(("server", fact)) => {
                let flag = fact.strip_prefix("flags.").map(|flag| format!("{SERVER_PREFIX}{flag}"));
                if let Some(axis) = flag.and_then(|flag| self.axis(&flag)) {
                    return axis;
                }
                steps.extend(fact_path(endpoint, fact));
            }
            Some(("hooks", rest)) => steps.extend(hook_path(endpoint, rest)),
            Some(("launch", rest)) => match rest.strip_prefix("env.") {
                Some(name) => steps.extend(keys(&["launch", "env", name])),
                None => steps.extend(keys(&["launch", rest])),
            },
            Some((table, figure)) => steps.extend(keys(&[table, figure])),
            None if field == "gpu" || field == "gpus" => steps.extend(keys(&["hardware", field])),
            None => steps.push(field.into()),
        }
        steps
    }

    /// Returns the place of a header, which is determined by the nearest scenario in the chain that sets it,
    /// or else by the endpoint.
    fn header(&self, name: &str, chain: &[(&str, &Scenario)]) -> Vec<Step> {
        let of = |headers: &Table<TextOrSecret>| headers.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
        let said = chain.iter().find_map(|(scenario, own)| Some((*scenario, of(&own.headers)?)));
        if let Some((scenario, key)) = said {
            return keys(&["scenarios", scenario, "headers", &key]);
        }
        let endpoint = self.name_on("endpoint");
        let key = self.plan.endpoints.get(&endpoint).and_then(|endpoint| of(&endpoint.headers));
        keys(&["endpoints", &endpoint, "headers", &key.unwrap_or_else(|| name.to_owned())])
    }

    fn model(&self, field: &str) -> Vec<Step> {
        let name = self.name_on("model");
        let Some(model) = self.plan.models.get(&name) else { return self.axis_or_matrix("model") };
        // `tokenizer.fits` exists only if the model has a `tokenizer`, so its place is that of `tokenizer`.
        let field = field.split('.').next().unwrap_or(field);
        let mut steps = keys(&["models", &name, field]);
        if field == "id" {
            steps.extend(self.id_key(model));
        }
        steps
    }

    /// The engine's own entry in a model's ids, or `default`.
    fn id_key(&self, model: &Model) -> Option<Step> {
        let ModelId::ByEngine(ids) = &model.id else { return None };
        let engine = self.plan.endpoints.get(&self.name_on("endpoint"))?.engine.name();
        Some(Step::from(if ids.contains_key(engine) { engine } else { "default" }))
    }

    /// The chain of the plan's own scenarios, from the cell's scenario to its built-in.
    fn chain(&self) -> Vec<(&str, &Scenario)> {
        self.chain_from(&self.name_on("scenario"))
    }

    fn chain_from(&self, name: &str) -> Vec<(&str, &Scenario)> {
        chain(name, &self.plan.scenarios).map_or_else(Vec::new, |(chain, _)| chain)
    }

    /// Returns the place that determines the text shared by a scenario's requests. This text depends on the
    /// built-in scenario, which the last `base` of the chain names.
    fn base(&self) -> Vec<Step> {
        match self.chain().last() {
            Some((name, _)) => keys(&["scenarios", name, "base"]),
            None => self.axis_or_matrix("scenario"),
        }
    }

    /// Returns the place of a field of a request. The axis takes precedence, then the scenario, then (for
    /// `stream`) the sweep and the plan.
    fn request_field(&self, field: &str) -> Vec<Step> {
        // Lengths determine both token counts, and a single count overrides them.
        let fields: &[&str] = match field {
            "lengths.prompt" => &["prompt_tokens", "lengths"],
            "lengths.output" => &["output_tokens", "lengths"],
            "lengths.joint" => &["prompt_tokens", "output_tokens", "lengths", "profile"],
            "prompt_tokens" | "output_tokens" => &[field, "lengths", "trace", "data", "profile"],
            "sharing" | "turn_counts" => &["profile"],
            "turns" | "sessions" | "reuse" => &[field, "profile"],
            _ => &[field],
        };
        if let Some(axis) = fields.iter().find_map(|field| self.axis(field)) {
            return axis;
        }
        let giving = |(name, scenario): (_, &Scenario)| Some((name, fields.iter().find(|field| scenario.says(field))?));
        if let Some((name, field)) = self.chain().into_iter().find_map(giving) {
            return keys(&["scenarios", name, field]);
        }
        match field {
            "stream" if self.sweep.stream.is_some() => self.in_sweep(&["stream"]),
            "stream" | "nonce" => keys(&[field]),
            _ => self.axis_or_matrix("scenario"),
        }
    }

    /// Returns the place of a field in one class of a mix. An axis takes precedence, then the other fields of
    /// the mix, then the scenario of the class, then its entry in the mix.
    fn of_class(&self, path: &str) -> Vec<Step> {
        let (number, field) = path.split_once('.').unwrap_or((path, ""));
        let name = field.rsplit('.').next().unwrap_or(field);
        let chain = self.chain();
        let Some((mix, parts)) = chain.iter().find(|(_, own)| !own.mix.is_empty()).map(|(name, own)| (*name, &own.mix))
        else {
            return self.axis_or_matrix("scenario");
        };
        let index: usize = number.parse().unwrap_or_default();
        let members = parts.get(index).map_or_else(Vec::new, |part| self.chain_from(&part.scenario));
        let whole = || [&chain[..], &members].concat();
        if let Some(header) = field.strip_prefix("shaping.headers.") {
            return self.header(header, &whole());
        }
        if let Some(extra) = field.strip_prefix("shaping.extra.") {
            return self.extra(extra, &whole());
        }
        let own = chain.iter().chain(&members).find(|(_, scenario)| field != "weight" && scenario.says(name));
        match (self.axis(name), own) {
            (Some(axis), _) => axis,
            (None, Some((scenario, _))) => keys(&["scenarios", scenario, name]),
            (None, None) if name == "nonce" => keys(&["nonce"]),
            (None, None) => [&keys(&["scenarios", mix, "mix"])[..], &[Step::from(index)]].concat(),
        }
    }

    /// Returns the place of a field of `extra`. The scenario's fields for the engine take precedence, then
    /// its fields for all engines, then the endpoint's.
    fn extra(&self, field: &str, chain: &[(&str, &Scenario)]) -> Vec<Step> {
        let endpoint = self.name_on("endpoint");
        let engine = self.plan.endpoints.get(&endpoint).map_or("", |endpoint| endpoint.engine.name());
        let own = |scenario: &Scenario| match scenario.extra.get(engine) {
            Some(Json::Table(own)) => own.contains_key(field),
            _ => false,
        };
        if let Some((name, _)) = chain.iter().find(|(_, scenario)| own(scenario)) {
            return keys(&["scenarios", name, "extra", engine, field]);
        }
        match chain.iter().find(|(_, scenario)| scenario.extra.contains_key(field)) {
            Some((name, _)) => keys(&["scenarios", name, "extra", field]),
            None => keys(&["endpoints", &endpoint, "extra", field]),
        }
    }

    /// Returns the place of a field in one of the scenario's tables, like `prefix.tokens`.
    fn table_of_request(&self, table: &str, field: &str) -> Vec<Step> {
        let mut steps = self.request_field(table);
        let field = match (table, field) {
            ("trace", "from" | "to") => "window",
            ("trace", "reading") => "as",
            ("trace", "sha256") | ("data", "texts") => "file",
            ("data", "output_tokens") => return self.request_field("output_tokens"),
            _ => field,
        };
        steps.extend(keys(&[field]));
        steps
    }

    fn load(&self, field: &str) -> Vec<Step> {
        if let ("qps" | "arrivals", Some((name, _))) =
            (field, self.chain().into_iter().find(|(_, scenario)| scenario.trace.is_some()))
        {
            return keys(&["scenarios", name, "trace"]);
        }
        if let Some(profile) = self.profile_of_rate(field) {
            return profile;
        }
        match field {
            "qps" if self.sweep.own_rate().is_some() => self.in_sweep(&["arrivals"]),
            "qps" => self.axis_or_matrix("qps"),
            "batch_size" | "cap" => self.axis_or_matrix("batch_size"),
            "arrivals" | "arrivals.cv" | "arrivals.burstiness" | "profile" => {
                self.axis("arrivals").unwrap_or_else(|| self.in_sweep(&["arrivals"]))
            }
            _ => self.in_sweep(&["matrix"]),
        }
    }

    /// Returns the place of the profile that sets the rate or its changes, if the sweep does not set them.
    fn profile_of_rate(&self, field: &str) -> Option<Vec<Step>> {
        let says = |axis: &str| self.axis(axis).is_some();
        let is_open = match field {
            "qps" => !says("qps") && !says("batch_size") && self.sweep.own_rate().is_none(),
            "arrivals" | "arrivals.cv" | "profile" => self.sweep.arrivals.is_none() && !says("arrivals"),
            _ => false,
        };
        if !is_open {
            return None;
        }
        let found = |scenario: &Scenario| scenario.profile.as_ref().and_then(ProfileFile::found)?.arrivals.clone();
        let (name, _) = self.chain().into_iter().find(|(_, scenario)| found(scenario).is_some())?;
        Some(keys(&["scenarios", name, "profile"]))
    }

    fn connections(&self) -> Vec<Step> {
        match self.axis("connections") {
            Some(axis) => axis,
            None if self.sweep.connections.is_some() => self.in_sweep(&["connections"]),
            None => keys(&["connections"]),
        }
    }

    /// Returns the place of a phase or of one of its fields (`for`, `mode`, …). Each phase comes from one
    /// place as a whole, because a sweep's phase replaces the plan's.
    fn phase(&self, field: &str) -> Vec<Step> {
        let mut parts = field.split('.');
        let phase = parts.next().unwrap_or(field);
        let mut steps =
            if says(&self.sweep.phases, phase) { self.in_sweep(&["phases", phase]) } else { keys(&["phases", phase]) };
        steps.extend(parts.map(Step::from));
        steps
    }
}

/// Returns the path of a fact: `server`, followed by the fact's own key, or by table and key if the fact was
/// flattened.
fn fact_path(endpoint: &Endpoint, fact: &str) -> Vec<Step> {
    let in_table = endpoint.server.iter().find_map(|(name, value)| {
        let Fact::Many(table) = value else { return None };
        let key = fact.strip_prefix(name.as_str())?.strip_prefix('.')?;
        table.contains_key(key).then(|| keys(&["server", name, key]))
    });
    in_table.unwrap_or_else(|| keys(&["server", fact]))
}

/// Converts a hook from its point and its number among the hashed hooks, such as `before_run.0.request`,
/// to its place among all hooks. If the plan has a single hook instead of a list, the place has no
/// number.
fn hook_path(endpoint: &Endpoint, path: &str) -> Vec<Step> {
    let mut parts = path.splitn(3, '.');
    let name = parts.next().unwrap_or_default();
    let number: usize = parts.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let mut steps = keys(&["hooks", name]);
    let Some(point) = HookPoint::ALL.into_iter().find(|point| point.name() == name) else { return steps };
    let hashed = endpoint.hooks.at(point).iter().enumerate().filter(|(_, hook)| hook.is_hashed(point));
    steps.extend(hashed.map(|(index, _)| Step::from(index)).nth(number));
    steps.extend(parts.next().map(Step::from));
    steps
}

fn says(phases: &PhasesPatch, phase: &str) -> bool {
    let PhasesPatch { idle, fill, stabilize, measure, drain } = phases;
    match phase {
        "idle" => idle.is_some(),
        "fill" => fill.is_some(),
        "stabilize" => stabilize.is_some(),
        "measure" => measure.is_some(),
        _ => drain.is_some(),
    }
}
