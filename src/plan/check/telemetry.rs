//! Checks of endpoints' telemetry: metrics pages must have valid addresses, no secret may be exposed, and
//! the names of metrics must be valid.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::dialect::DIALECTS;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::engine::Engine;
use crate::plan::model::local_gpus::{GpuSource, LocalGpus};
use crate::plan::model::site::Site;
use crate::plan::model::telemetry::Telemetry;
use crate::plan::text::tree::{Step, Value};
use crate::telemetry::canonical::{CANONICAL, canonical};
use crate::telemetry::selector::Selector;
use crate::units::secrecy::carries_secret;

/// The remedy for an invalid address of a metrics page.
const LIKE: &str = "write it like http://127.0.0.1:8000/metrics, or `on` for the endpoint's own server";

impl Checker<'_> {
    /// Checks the telemetry of an endpoint.
    pub(super) fn telemetry(&mut self, name: &str, endpoint: &Endpoint) {
        let Some(telemetry) = &endpoint.telemetry else { return };
        let at = steps!["endpoints", name, "telemetry"];
        let pages = telemetry.pages();
        if pages.len() > Telemetry::MOST_PAGES {
            let message = format!("{} pages are scraped, but the maximum is {}", pages.len(), Telemetry::MOST_PAGES);
            let remedy = "name fewer pages, or have a Prometheus server collect them";
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        for (index, page) in pages.into_iter().enumerate() {
            if page == Telemetry::OWN {
                self.own_page(&at, endpoint);
            } else {
                self.page(&self.step_of(&at, "prometheus", index), page);
            }
        }
        let [least, most] = Telemetry::RANGE;
        let every = telemetry.every.filter(|every| !(least..=most).contains(every));
        self.outside(&at, "every", &format!("{least} to {most}"), every);
        for (index, raw) in telemetry.raw.0.iter().enumerate() {
            let is_name = raw.parse::<Selector>().is_ok_and(|selector| selector.metric == *raw);
            if !is_name {
                let message = format!("`{raw}` is not a metric name");
                let remedy = "write only the name, without labels; all series of the metric are kept";
                let at = self.step_of(&at, "raw", index);
                self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            }
        }
        self.map(&at, telemetry);
        if let Some(gpus) = &telemetry.gpus {
            self.gpus(&[&at[..], &steps!["gpus"]].concat(), endpoint, gpus);
        }
    }

    /// Checks that GPUs are read only if the server runs on this machine, and that each entry of `devices`
    /// names one GPU.
    fn gpus(&mut self, at: &[Step], endpoint: &Endpoint, gpus: &LocalGpus) {
        let is_off = gpus.source == Some(GpuSource::Off);
        if let (Site::Elsewhere(why), false) = (endpoint.site(), is_off) {
            let message = format!("the GPUs of this machine do not belong to this endpoint: {why}");
            let remedy = "run dcgm-exporter on the server's host and scrape its page with prometheus: [on, \
                          http://HOST:9400/metrics]; or remove `gpus`";
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if is_off && !gpus.devices.is_empty() {
            let message = "`devices` selects GPUs, but `source: off` reads none";
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy("remove one of the two"));
        }
        for (index, device) in gpus.devices.0.iter().enumerate() {
            if !device.is_one() {
                let message = format!("`{}` is neither the number of a GPU nor a UUID", device.0);
                let remedy =
                    "write an index or UUID from `nvidia-smi -L`: 0, GPU-8f6a1c2e…, or MIG-… for a MIG instance";
                let at = self.step_of(at, "devices", index);
                self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            }
        }
    }

    fn map(&mut self, at: &[Step], telemetry: &Telemetry) {
        for (key, selector) in &telemetry.map {
            let at = [at, &steps!["map", key.as_str()]].concat();
            if canonical(key).is_none() {
                let message = format!("unknown canonical series `{key}`");
                let remedy = suggest::remedy(key, CANONICAL.iter().map(|series| series.key));
                self.report_key(&at, Diagnostic::new(Code::UnknownKey, message).remedy(remedy));
            }
            if let Err(why) = selector.parse::<Selector>() {
                let (message, remedy) = why.split_once("; ").unwrap_or((&why, "write the metric's name"));
                self.report(&at, Diagnostic::new(Code::WrongValue, message).remedy(remedy));
            }
        }
    }

    /// The place of entry `index` of the list `key`. A single entry may be written without a list, or even
    /// without the key.
    fn step_of(&self, table: &[Step], key: &str, index: usize) -> Vec<Step> {
        match self.tree.walk(table).node.value {
            Value::Text(_) => return table.to_vec(),
            Value::List(_) => return [table, &steps![index]].concat(),
            _ => {}
        }
        let of_key = [table, &steps![key]].concat();
        match self.tree.walk(&of_key).node.value {
            Value::List(_) => [of_key, steps![index].to_vec()].concat(),
            _ => of_key,
        }
    }

    /// Checks that `on` is used only for a server whose metrics page is known.
    fn own_page(&mut self, at: &[Step], endpoint: &Endpoint) {
        let is_known = |engine| DIALECTS.iter().any(|dialect| dialect.engine == engine && dialect.gauges.is_some());
        if endpoint.engine == Engine::Mock || is_known(endpoint.engine) {
            return;
        }
        let engine = endpoint.engine.name();
        let message = format!("the metrics page of engine `{engine}` is not known");
        let remedy =
            "set `engine` to the server's engine, or specify the page, like telemetry: http://HOST:PORT/metrics";
        self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
    }

    fn page(&mut self, at: &[Step], page: &str) {
        let bad = |message: String| Diagnostic::new(Code::Url, message).remedy(LIKE);
        let url = match reqwest::Url::parse(page) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            _ => return self.report(at, bad(format!("`{page}` is not the address of a metrics page"))),
        };
        if carries_secret(&url) {
            let message = "the URL contains a password or key, which would end up in results and logs";
            let remedy = "remove the secret from the URL; pages of the endpoint's own server are requested with its \
                          headers and api_key";
            self.report(at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        }
    }
}
