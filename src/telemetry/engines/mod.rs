//! Where each exporter has the canonical series, as data: a file an exporter, each naming the version and the place in its source that
//! it was read from. All tables are asked of every page, for names of exporters differ; where one has several names for a series,
//! the newest stands first and the first that the page has is taken.

mod amd;
mod dcgm;
mod llamacpp;
mod nim;
mod node;
mod process;
mod sglang;
mod source;
mod tgi;
mod triton;
mod trtllm;
mod vllm;

pub use source::{Exporter, Source};

/// All of them.
pub const EXPORTERS: &[Exporter] = &[
    vllm::VLLM,
    sglang::SGLANG,
    tgi::TGI,
    llamacpp::LLAMACPP,
    nim::NIM,
    triton::TRITON,
    trtllm::TRTLLM,
    dcgm::DCGM,
    amd::AMD,
    node::NODE,
    process::PROCESS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::canonical::canonical;
    use crate::telemetry::selector::Selector;

    #[test]
    fn every_table_names_what_there_is() {
        for Exporter { title, source, series, .. } in EXPORTERS {
            assert!(source.len() > 20, "{title} names no source");
            for one in *series {
                assert!(canonical(one.canonical).is_some(), "{title}: {}", one.canonical);
                assert_eq!(one.metric.parse::<Selector>().unwrap().to_string(), one.metric, "{title}");
                assert!(one.factor > 0.0);
            }
        }
    }
}
