//! Complete specs with ids that must never change, because a changed id would affect every result
//! on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::expand::canonical::{Bytes, canonical};
use crate::expand::{
    AxisLabels, EndpointSpec, Labels, Load, LoadEngine, ModelSpec, Phases, Recording, RunId, RunSpec, Shaping,
};

use crate::plan::model::content::{Content, Reuse};
use crate::plan::model::phases::DrainMode;
use crate::plan::{
    Api, Arrivals, Between, Connections, Drain, Engine, ErrorPolicy, Json, Measure, MockFigures, NonceMode, Scalar,
    Table, Timeouts,
};
use crate::plan::{RequestFields, Sampling};
use crate::units::{Decimal, Nanos, PerToken, Seed, Share};

const CLOSED_CHAT: &str = "59710e63ff424584d9f762cf650eb5f55b3aa3bb4c436ead9c6d33f1427f6c95";
const OPEN_COMPLETIONS: &str = "edb9b8cd24b7200c63909ab65539741de7830b3db5537133e9d2a2cbcdd7ce1d";
const CONVERSATION_ON_MOCK: &str = "a68856c71be38652e40aef83cff72bdbdda3fa72496987ebf61b719398500821";

const WITH_EXTRA: &str = "11be7bbc15d96d789133a44b0fc7993f2f3a9fa22ad2ad6420b1c2da7ecbc5bf";

/// The complete canonical form of `closed_chat`.
const CLOSED_CHAT_FORM: &str = "\
4:hash=i1:1\n\
11:measurement=i1:2\n\
16:between.cooldown=n1:0\n\
11:connections=t4:warm\n\
12:endpoint.api=t4:chat\n\
15:endpoint.engine=t4:vllm\n\
12:endpoint.gpu=t13:H100-SXM-80GB\n\
13:endpoint.gpus=i1:8\n\
13:endpoint.name=t4:vllm\n\
34:endpoint.server.flags.max_num_seqs=d3:256\n\
30:endpoint.server.prefix_caching=b4:true\n\
23:endpoint.server.version=t6:0.33.0\n\
15:load.batch_size=i1:8\n\
12:load.pattern=t6:closed\n\
8:model.id=t9:org/small\n\
15:model.precision=t4:bf16\n\
16:phases.drain.for=n11:30000000000\n\
17:phases.drain.mode=t4:keep\n\
11:phases.fill=n11:30000000000\n\
18:phases.measure.for=n12:120000000000\n\
16:phases.stabilize=n11:60000000000\n\
6:repeat=i1:0\n\
22:scenario.output_tokens=i3:256\n\
22:scenario.prompt_tokens=i2:50\n\
14:scenario.reuse=t4:none\n\
22:scenario.system_tokens=i1:0\n\
14:scenario.turns=i1:1\n\
4:seed=i2:42\n\
18:shaping.ignore_eos=b4:true\n\
13:shaping.nonce=b4:true\n\
14:shaping.stream=b4:true\n\
19:shaping.temperature=d1:0\n\
16:timeouts.connect=n11:10000000000\n\
16:timeouts.request=n12:600000000000\n\
14:timeouts.stall=n11:60000000000\n\
";

fn shaping() -> Shaping {
    Shaping {
        stream: true,
        ignore_eos: true,
        fields: RequestFields::default(),
        extra: Default::default(),
        nonce: NonceMode::On,
    }
}

fn phases(seconds: u64) -> Phases {
    Phases {
        idle: None,
        fill: Nanos::from_secs(30),
        stabilize: Nanos::from_secs(60),
        measure: Measure { duration: Nanos::from_secs(seconds), min_requests: None, at_most: None },
        drain: Drain { duration: Nanos::from_secs(30), mode: DrainMode::Keep },
    }
}

fn content(reuse: Reuse, turns: u32) -> Content {
    Content { reuse, system_tokens: 0, prompt_tokens: 50, turns, ..Content::default() }
}

/// Returns the spec of a closed loop that sends chat requests to a declared server.
pub(super) fn closed_chat() -> RunSpec {
    RunSpec {
        labels: Labels { model: "small".into(), scenario: "B1".into(), axes: AxisLabels::default() },
        endpoint: Arc::new(EndpointSpec {
            name: "vllm".into(),
            engine: Engine::Vllm,
            api: Api::Chat,
            gpu: Some("H100-SXM-80GB".into()),
            gpus: Some(8),
            http: None,
            server: BTreeMap::from([
                ("flags.max_num_seqs".into(), Scalar::Number(Decimal::from(256))),
                ("prefix_caching".into(), Scalar::Bool(true)),
                ("version".into(), Scalar::Text("0.33.0".into())),
            ]),
            mock: None,
            launch: None,
            reset: None,
            hooks: BTreeMap::new(),
        }),
        model: Arc::new(ModelSpec { id: "org/small".into(), precision: Some("bf16".into()), tokenizer: None }),
        scenario: content(Reuse::None, 1),
        shaping: shaping(),
        mix: Vec::new(),
        load: Load::Closed { batch_size: 8 },
        phases: phases(120),
        between: Between { cooldown: Nanos::ZERO },
        timeouts: Timeouts {
            connect: Nanos::from_secs(10),
            request: Nanos::from_secs(600),
            stall: Nanos::from_secs(60),
        },
        connections: Connections::Warm,
        engine: LoadEngine::default(),
        record: Recording::default(),
        errors: ErrorPolicy::default(),
        start: false,
        taken: Vec::new(),
        seed: Seed(42),
        repeat: 0,
    }
}

/// Returns the spec of an open loop with a cap that sends completion requests; every optional field is set.
pub(super) fn open_completions() -> RunSpec {
    let axes = AxisLabels::new([("top_p".into(), "0.9".into())]);
    RunSpec {
        labels: Labels { model: "small".into(), scenario: "B1".into(), axes },
        endpoint: Arc::new(EndpointSpec {
            name: "other".into(),
            engine: Engine::Openai,
            api: Api::Completions,
            gpu: None,
            gpus: None,
            http: None,
            server: BTreeMap::new(),
            mock: None,
            launch: None,
            reset: None,
            hooks: BTreeMap::new(),
        }),
        model: Arc::new(ModelSpec { id: "org/small".into(), precision: None, tokenizer: None }),
        shaping: Shaping {
            ignore_eos: false,
            fields: RequestFields {
                sampling: Sampling::of([
                    ("temperature", Decimal::new(7, 1)),
                    ("top_p", Decimal::new(9, 1)),
                    ("presence_penalty", Decimal::new(-5, 1)),
                    ("frequency_penalty", Decimal::new(25, 2)),
                ]),
                ..RequestFields::default()
            },
            ..shaping()
        },
        load: Load::Open { qps: Decimal::new(25, 1), arrivals: Arrivals::default(), cap: Some(64) },
        phases: Phases {
            idle: None,
            measure: Measure {
                duration: Nanos::from_secs(10),
                min_requests: Some(100),
                at_most: Some(Nanos::from_secs(50)),
            },
            ..phases(10)
        },
        connections: Connections::PerRequest,
        repeat: 2,
        ..closed_chat()
    }
}

/// Returns the spec of a run that holds conversations with the embedded mock.
pub(super) fn conversation_on_mock() -> RunSpec {
    RunSpec {
        labels: Labels { model: "mock".into(), scenario: "D".into(), axes: AxisLabels::default() },
        endpoint: Arc::new(EndpointSpec {
            name: "demo".into(),
            engine: Engine::Mock,
            api: Api::Chat,
            gpu: None,
            gpus: None,
            http: None,
            server: BTreeMap::new(),
            mock: Some(MockFigures {
                ttft: Nanos::from_millis(20),
                itl: Nanos::from_millis(4),
                slots: 8,
                prefill: PerToken(Nanos(100_000)),
                prefix_cache: None,
                prefix_block: None,
                load: Decimal::new(1, 1),
                jitter: Share::percent(5),
                seed: Seed(7),
            }),
            launch: None,
            reset: None,
            hooks: BTreeMap::new(),
        }),
        model: Arc::new(ModelSpec { id: "mock".into(), precision: None, tokenizer: None }),
        scenario: content(Reuse::Conversation, 5),
        between: Between { cooldown: Nanos::from_millis(1_500) },
        connections: Connections::Cold,
        ..closed_chat()
    }
}

/// Returns the spec of a closed loop whose requests have additional fields of every kind.
pub(super) fn with_extra() -> RunSpec {
    let table = Table::from([("type".into(), Json::Text("json_object".into()))]);
    let extra = BTreeMap::from([
        ("cache_prompt".into(), Json::Bool(true)),
        (
            "logit_bias".into(),
            Json::List(vec![Json::List(vec![Json::Number(5.into()), Json::Number(Decimal::new(-5, 1))])]),
        ),
        ("min_p".into(), Json::Number(Decimal::new(5, 2))),
        ("response_format".into(), Json::Table(table)),
        ("user".into(), Json::Text("bench".into())),
    ]);
    let stop = vec!["###".to_owned(), "\n".to_owned()];
    RunSpec {
        shaping: Shaping {
            extra,
            fields: RequestFields {
                stop,
                sampling: Sampling::of([("top_p", Decimal::from(1))]),
                ..RequestFields::default()
            },
            ..shaping()
        },
        ..closed_chat()
    }
}

#[test]
fn the_canonical_form_is_readable() {
    let mut bytes = Bytes::default();
    assert_eq!(str::from_utf8(bytes.of(&closed_chat())).expect("text"), CLOSED_CHAT_FORM);
    for spec in [closed_chat(), open_completions(), conversation_on_mock(), with_extra()] {
        let canonical = canonical(&spec);
        let paths: Vec<&String> = canonical.entries().iter().skip(2).map(|(path, _)| path).collect();
        assert!(paths.is_sorted(), "each field is listed at its place in path order: {paths:?}");
    }
}

#[test]
fn pinned_specs_keep_their_ids() {
    assert_eq!(RunId::of(&closed_chat()).to_string(), CLOSED_CHAT);
    assert_eq!(RunId::of(&open_completions()).to_string(), OPEN_COMPLETIONS);
    assert_eq!(RunId::of(&conversation_on_mock()).to_string(), CONVERSATION_ON_MOCK);
    assert_eq!(RunId::of(&with_extra()).to_string(), WITH_EXTRA);
}
