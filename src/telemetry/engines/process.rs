//! Metrics that the client libraries of Prometheus report about the process behind a page, whatever
//! the exporter is.

use super::source::{Exporter, Source, plain};

/// Prometheus' client libraries, on which vLLM, SGLang, TGI and most exporters are built.
pub(super) const PROCESS: Exporter =
    Exporter { title: "Prometheus' client libraries", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "Prometheus' documentation of client libraries, `Process metrics` (of November 2026)";

const SERIES: &[Source] = &[plain("process_start_time", "process_start_time_seconds")];
