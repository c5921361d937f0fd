//! Facts about the server that a result should disclose: the well-known keys of `server`. A plan may add
//! others.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::plan::model::scalar::Fact;

/// The well-known facts of a server, each with its description. All facts are part of a run's identity.
pub const SERVER_FACTS: [(&str, &str); 6] = [
    ("version", "Version of the engine, like 0.33.0."),
    ("tensor_parallel", "Accelerators that share each layer's weights."),
    ("pipeline_parallel", "Stages that the layers are divided into; 1 if they are not."),
    ("attention_backend", "Attention kernels, like flashinfer or flash_attn_3."),
    ("scheduler", "How requests are batched, like chunked_prefill or priority."),
    (
        "flags",
        "Flags that the server was started with, as a table: { max_num_seqs: 256 }. An empty table means that \
         there were none.",
    ),
];

/// The schema of `server`, so that editors know the well-known facts.
pub(crate) fn server_schema(generator: &mut SchemaGenerator) -> Schema {
    let fact = generator.subschema_for::<Fact>();
    let mut facts = Map::new();
    for (name, meaning) in SERVER_FACTS {
        let mut schema = fact.clone();
        schema.insert("description".to_owned(), meaning.into());
        schema.insert("examples".to_owned(), json!([example(name)]));
        facts.insert(name.to_owned(), schema.to_value());
    }
    let mut schema = Schema::default();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(facts));
    schema.insert("additionalProperties".to_owned(), json!(fact));
    schema
}

/// The example value that editors offer for a well-known fact.
fn example(fact: &str) -> Value {
    match fact {
        "version" => json!("0.33.0"),
        "tensor_parallel" => json!(8),
        "pipeline_parallel" => json!(1),
        "attention_backend" => json!("flashinfer"),
        "scheduler" => json!("chunked_prefill"),
        _ => json!({ "max_num_seqs": 256 }),
    }
}
