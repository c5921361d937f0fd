//! A table for each exporter that maps its metrics to canonical series. Each table has its own file, which
//! states the version and the source from which the names were taken. Every page is matched against all
//! tables, which is possible because exporters use different names. If an exporter has several names for a
//! series, the newest name is listed first, and the first name that the page contains is used.

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

pub use source::{Exporter, Moment, Source};

/// All exporters.
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

/// Returns the moment at which the exporter with this title counts a request in the canonical histogram
/// `key`. A title of `None` means that the exporter is unknown.
pub fn moment(title: Option<&str>, key: &str) -> Moment {
    let exporter = EXPORTERS.iter().find(|exporter| Some(exporter.title) == title);
    let own = exporter.and_then(|exporter| exporter.counted.iter().find(|(counted, _)| *counted == key));
    own.map_or_else(|| Moment::usual(key), |(_, moment)| *moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::canonical::canonical;
    use crate::telemetry::selector::Selector;

    #[test]
    fn moments_are_those_of_the_exporter() {
        let of = |title| ["queue_seconds", "ttft_seconds", "e2e_seconds"].map(|key| moment(title, key));
        let usual = [Moment::End, Moment::FirstToken, Moment::End];
        assert_eq!([of(None), of(Some("vLLM"))], [usual, usual]);
        assert_eq!(of(Some("SGLang")), [Moment::FirstToken, Moment::FirstToken, Moment::End]);
        assert_eq!(of(Some("TensorRT-LLM")), [Moment::End; 3]);
        for Exporter { title, counted, series, .. } in EXPORTERS {
            for (key, at) in *counted {
                assert!(series.iter().any(|source| source.canonical == *key), "{title} has no {key}");
                assert_ne!(*at, Moment::usual(key), "{title}: {key}");
            }
        }
    }

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
