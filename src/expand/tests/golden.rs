//! Specs written out whole, with the ids they must keep for ever: a change here is a change of every result on disk.

use std::collections::BTreeMap;

use crate::expand::{EndpointSpec, Labels, Load, ModelSpec, Phases, RunId, RunSpec, Shaping};
use crate::plan::scenario::{Content, Reuse};
use crate::plan::shorthand::DrainMode;
use crate::plan::{Api, Arrivals, Between, Drain, Engine, Measure, MockFigures, Scalar, Timeouts};
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

const CLOSED_CHAT: &str = "";
const OPEN_COMPLETIONS: &str = "";
const CONVERSATION_ON_MOCK: &str = "";

fn shaping() -> Shaping {
    Shaping {
        stream: true,
        ignore_eos: true,
        temperature: Decimal::new(0, 0),
        top_p: None,
        presence_penalty: None,
        frequency_penalty: None,
        nonce: true,
    }
}

fn phases(seconds: u64) -> Phases {
    Phases {
        fill: Nanos::from_secs(30),
        stabilize: Nanos::from_secs(60),
        measure: Measure { duration: Nanos::from_secs(seconds), min_requests: None, at_most: None },
        drain: Drain { duration: Nanos::from_secs(30), mode: DrainMode::Keep },
    }
}

fn content(reuse: Reuse, turns: u32) -> Content {
    Content { reuse, system_tokens: 0, prompt_tokens: 50, output_tokens: 256, turns }
}

/// A closed loop over chat on a declared server.
pub(super) fn closed_chat() -> RunSpec {
    RunSpec {
        labels: Labels { model: "small".into(), scenario: "B1".into(), axes: BTreeMap::new() },
        endpoint: EndpointSpec {
            name: "vllm".into(),
            engine: Engine::Vllm,
            api: Api::Chat,
            gpu: Some("H100-SXM-80GB".into()),
            gpus: Some(8),
            server: BTreeMap::from([
                ("flags.max_num_seqs".into(), Scalar::Number(Decimal::from(256))),
                ("prefix_caching".into(), Scalar::Bool(true)),
                ("version".into(), Scalar::Text("0.33.0".into())),
            ]),
            mock: None,
        },
        model: ModelSpec { id: "org/small".into(), precision: Some("bf16".into()) },
        scenario: content(Reuse::None, 1),
        shaping: shaping(),
        load: Load::Closed { batch_size: 8 },
        phases: phases(120),
        between: Between { cooldown: Nanos::ZERO },
        timeouts: Timeouts {
            connect: Nanos::from_secs(10),
            request: Nanos::from_secs(600),
            stall: Nanos::from_secs(60),
        },
        seed: Seed(42),
        repeat: 0,
    }
}

/// An open loop with a cap over completions, every optional field set.
pub(super) fn open_completions() -> RunSpec {
    let axes = BTreeMap::from([("top_p".into(), "0.9".into())]);
    RunSpec {
        labels: Labels { model: "small".into(), scenario: "B1".into(), axes },
        endpoint: EndpointSpec {
            name: "other".into(),
            engine: Engine::Openai,
            api: Api::Completions,
            gpu: None,
            gpus: None,
            server: BTreeMap::new(),
            mock: None,
        },
        model: ModelSpec { id: "org/small".into(), precision: None },
        shaping: Shaping {
            ignore_eos: false,
            temperature: Decimal::new(7, 1),
            top_p: Some(Decimal::new(9, 1)),
            presence_penalty: Some(Decimal::new(-5, 1)),
            frequency_penalty: Some(Decimal::new(25, 2)),
            ..shaping()
        },
        load: Load::Open { qps: Decimal::new(25, 1), arrivals: Arrivals::Poisson, cap: Some(64) },
        phases: Phases {
            measure: Measure {
                duration: Nanos::from_secs(10),
                min_requests: Some(100),
                at_most: Some(Nanos::from_secs(50)),
            },
            ..phases(10)
        },
        repeat: 2,
        ..closed_chat()
    }
}

/// Conversations on the embedded mock.
pub(super) fn conversation_on_mock() -> RunSpec {
    RunSpec {
        labels: Labels { model: "mock".into(), scenario: "D".into(), axes: BTreeMap::new() },
        endpoint: EndpointSpec {
            name: "demo".into(),
            engine: Engine::Mock,
            api: Api::Chat,
            gpu: None,
            gpus: None,
            server: BTreeMap::new(),
            mock: Some(MockFigures {
                ttft: Nanos::from_millis(20),
                itl: Nanos::from_millis(4),
                slots: 8,
                prefill: PerToken(Nanos(100_000)),
                load: Decimal::new(1, 1),
                jitter: Share::percent(5),
                seed: Seed(7),
            }),
        },
        model: ModelSpec { id: "mock".into(), precision: None },
        scenario: content(Reuse::Conversation, 5),
        between: Between { cooldown: Nanos::from_millis(1_500) },
        ..closed_chat()
    }
}

#[test]
fn pinned_specs_keep_their_ids() {
    assert_eq!(RunId::of(&closed_chat()).to_string(), CLOSED_CHAT);
    assert_eq!(RunId::of(&open_completions()).to_string(), OPEN_COMPLETIONS);
    assert_eq!(RunId::of(&conversation_on_mock()).to_string(), CONVERSATION_ON_MOCK);
}
