//! One entry of a master file, that is, a model on a machine.

use crate::import::error::ImportError;
use crate::import::importer::Context;
use crate::import::said::Said;
use crate::import::tree::At;

use super::ladder;
use super::row::Row;

/// One entry.
pub(super) struct Entry<'a> {
    /// The name of the entry.
    pub(super) key: &'a str,
    /// The fields of the entry.
    pub(super) at: At<'a>,
}

/// A prompt length and an output length, and the rows of settings that are measured with these lengths.
pub(super) struct Lengths {
    /// The prompt length in tokens, and its origin.
    pub(super) isl: (u32, String),
    /// The output length in tokens, and its origin.
    pub(super) osl: (u32, String),
    /// The rows of settings that are measured with these lengths.
    pub(super) rows: Vec<Row>,
}

impl<'a> Entry<'a> {
    /// Returns an entry of a file.
    pub(super) fn of(key: &'a str, at: At<'a>) -> Entry<'a> {
        Entry { key, at }
    }

    /// Returns a text field, without marking it as read.
    pub(super) fn word(&self, key: &str) -> &'a str {
        self.at.get(key).and_then(|at| at.peek().word()).unwrap_or_default()
    }

    /// Returns a text field; an empty one is listed.
    pub(super) fn said(&self, key: &str) -> Option<Said<String>> {
        let at = self.at.get(key)?;
        let said = at.text()?;
        let is_empty = said.value.trim().is_empty();
        if is_empty {
            at.missing("it is empty");
        }
        (!is_empty).then_some(said)
    }

    /// Returns the accelerator of the entry's machine: `cluster:b300-nv` is B300, `b200-dsv4` is
    /// B200.
    pub(super) fn gpu(&self) -> String {
        let runner = self.word("runner").trim_start_matches("cluster:");
        let gpu = runner.split('-').next().unwrap_or_default().trim().to_ascii_uppercase();
        if gpu.is_empty() { "unknown".to_owned() } else { gpu }
    }

    /// Returns the abbreviated path of the script that starts the entry's server in InferenceX.
    pub(super) fn script(&self) -> String {
        let (prefix, precision) = (self.word("model-prefix"), self.word("precision"));
        format!("benchmarks/single_node/fixed_seq_len/{prefix}_{precision}_{}….sh", self.gpu().to_ascii_lowercase())
    }

    /// Returns the fields with the lengths of the entry. In the first master files, these fields have another
    /// key.
    fn listed_lengths(&self) -> Vec<At<'a>> {
        let of = |at: Option<At<'a>>| at.map(At::list).unwrap_or_default();
        let scenarios = of(self.at.path(&["scenarios", "fixed-seq-len"]));
        if scenarios.is_empty() { of(self.at.get("seq-len-configs")) } else { scenarios }
    }

    /// Returns the reason why a plan cannot start the entry's server; `None` if it can.
    pub(super) fn refused(&self) -> Option<String> {
        let is = |key: &str| self.at.get(key).is_some_and(|at| at.peek().is_true());
        let framework = self.word("framework");
        let given = "start it with its own recipe; a plan can measure it if the `url` of an endpoint is its address";
        if is("disagg") {
            return Some(format!(
                "prefill and decode are separate servers behind a router, on several nodes; a plan starts one server \
                 on one host; {given}"
            ));
        }
        if is("multinode") {
            return Some(format!("its server spans several nodes; a plan starts one server on one host; {given}"));
        }
        if self.listed_lengths().is_empty() {
            return Some(
                "it only replays recorded agent sessions (`agentic-coding`) from a data set that the file \
                         does not name: get it and write a scenario with `trace: { file: … }`"
                    .to_owned(),
            );
        }
        let is_known = super::server::KNOWN.contains(&framework);
        (!is_known).then(|| format!("no known way to start `{framework}` on one node; {given}"))
    }

    /// Returns the estimated number of cells.
    pub(super) fn cells(&self) -> usize {
        let rows = self.listed_lengths().into_iter().filter_map(|at| at.get("search-space")).flat_map(At::list);
        rows.map(|row| ladder::count(row)).sum()
    }

    /// Returns all pairs of lengths of the entry, with their rows.
    pub(super) fn lengths(&self, context: &Context) -> Result<Vec<Lengths>, ImportError> {
        let file = &context.wishes.name;
        if let Some(agentic) = self.at.path(&["scenarios", "agentic-coding"]) {
            agentic.refused(
                "recorded agent sessions from a data set that the file does not name: get it and write a \
                             scenario with `trace: { file: … }`",
            );
        }
        let mut all = Vec::new();
        for at in self.listed_lengths() {
            let tokens = |key: &str| -> Result<(u32, String), ImportError> {
                let said = at.get(key).and_then(At::whole).filter(|said| (1..=4_000_000).contains(&said.value));
                let said = said.ok_or_else(|| {
                    at.wrong(file, &format!("`{key}` must be a whole number of tokens"), "write 1 to 4000000")
                })?;
                Ok((said.value, format!("{key} {} (line {})", said.value, at.get(key).map_or(0, At::line))))
            };
            let (isl, osl) = (tokens("isl")?, tokens("osl")?);
            let rows = at.get("search-space").map(At::list).unwrap_or_default();
            let rows = rows.into_iter().map(|row| Row::of(row, file)).collect::<Result<Vec<_>, _>>()?;
            all.push(Lengths { isl, osl, rows: rows.into_iter().flatten().collect() });
        }
        Ok(all)
    }
}
