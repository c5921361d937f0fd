//! The known additional request fields of each engine. The sources are the request types of vLLM 0.11
//! and SGLang 0.5 (`protocol.py`) and of TGI 3 (`router/src/lib.rs`), and the manual of llama.cpp's
//! server. NIM accepts vLLM's fields, and `nvext`. The server behind `engine: openai` is unknown, and
//! the mock accepts everything.

use std::borrow::Cow;

use crate::plan::model::engine::Engine;
use crate::plan::model::extra::json::Json;
use crate::plan::model::length_field::LengthField;
use crate::units::Decimal;

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A whole number in this range.
    Whole(i64, i64),
    /// A number in this range, in hundredths.
    Number(i64, i64),
    /// true or false.
    Flag,
    /// A text.
    Text,
    /// A list.
    List,
    /// A table.
    Table,
    /// Any value that the server accepts.
    Any,
}

use Takes::{Any, Flag, List, Number, Table, Text, Whole};

impl Takes {
    /// Whether a value has this type.
    pub fn takes(self, value: &Json) -> bool {
        match (self, value) {
            (Whole(least, most), Json::Number(number)) => {
                matches!(number.parts(), (whole, 0) if (least..=most).contains(&whole))
            }
            (Number(least, most), Json::Number(number)) => {
                (Decimal::new(least, 2)..=Decimal::new(most, 2)).contains(number)
            }
            (Flag, Json::Bool(_)) | (Text, Json::Text(_)) | (List, Json::List(_)) | (Table, Json::Table(_)) => true,
            (any, _) => any == Any,
        }
    }

    /// A description of the required value.
    pub fn wanted(self) -> String {
        match self {
            Whole(i64::MIN, i64::MAX) => "a whole number".to_owned(),
            Whole(least, i64::MAX) => format!("a whole number from {least}"),
            Whole(least, most) => format!("a whole number from {least} to {most}"),
            Number(least, MOST) => format!("a number from {}", Decimal::new(least, 2)),
            Number(least, most) => format!("a number from {} to {}", Decimal::new(least, 2), Decimal::new(most, 2)),
            Flag => "true or false".to_owned(),
            Text => "a string".to_owned(),
            List => "a list".to_owned(),
            Table => "a table".to_owned(),
            Any => "a value".to_owned(),
        }
    }
}

/// Stands for an unlimited bound.
const MOST: i64 = i64::MAX;

const V: u8 = 1;
const S: u8 = 2;
const T: u8 = 4;
const L: u8 = 8;
const N: u8 = 16;
/// vLLM and NIM, which is based on vLLM.
const VN: u8 = V | N;
const VSN: u8 = V | S | N;
const ALL: u8 = V | S | T | L | N;

/// The fields, each with its name, the type of its value, and the engines that accept it.
#[rustfmt::skip]
const FIELDS: &[(&str, Takes, u8)] = &[
    ("top_k", Whole(-1, i64::MAX), VSN | L),
    ("min_p", Number(0, 100), VSN | L),
    ("typical_p", Number(0, 100), L),
    ("repetition_penalty", Number(0, MOST), VSN | T),
    ("repeat_penalty", Number(0, MOST), L),
    ("length_penalty", Number(-MOST, MOST), VN),
    ("seed", Whole(i64::MIN, i64::MAX), ALL),
    ("min_tokens", Whole(0, i64::MAX), VSN),
    ("stop_token_ids", List, VSN),
    ("bad_words", List, VN),
    ("allowed_token_ids", List, VN),
    ("include_stop_str_in_output", Flag, VN),
    ("no_stop_trim", Flag, S),
    ("stop_regex", Any, S),
    ("skip_special_tokens", Flag, VSN),
    ("spaces_between_special_tokens", Flag, VN),
    ("add_special_tokens", Flag, VN),
    ("add_generation_prompt", Flag, VN),
    ("continue_final_message", Flag, VSN),
    ("truncate_prompt_tokens", Whole(-1, i64::MAX), VN),
    ("logit_bias", Any, ALL),
    ("logprobs", Any, ALL),
    ("top_logprobs", Whole(0, i64::MAX), ALL),
    ("prompt_logprobs", Whole(-1, i64::MAX), VN),
    ("n_probs", Whole(0, i64::MAX), L),
    ("return_token_ids", Flag, VSN),
    ("return_tokens_as_token_ids", Flag, VN),
    ("response_format", Table, ALL),
    ("structured_outputs", Table, VN),
    ("guided_json", Any, VN),
    ("guided_regex", Text, VN),
    ("guided_choice", List, VN),
    ("guided_grammar", Text, VN),
    ("guided_decoding_backend", Text, VN),
    ("guided_whitespace_pattern", Text, VN),
    ("regex", Text, S),
    ("ebnf", Text, S),
    ("grammar", Text, L),
    ("json_schema", Table, L),
    ("tools", List, ALL),
    ("tool_choice", Any, ALL),
    ("tool_prompt", Text, T),
    ("parallel_tool_calls", Flag, VSN | L),
    ("guideline", Text, T),
    ("suffix", Text, VSN | T),
    ("user", Text, VSN),
    ("priority", Whole(i64::MIN, i64::MAX), VSN),
    ("cache_salt", Text, VSN),
    ("extra_key", Text, S),
    ("session_id", Text, VSN),
    ("session_params", Table, S),
    ("lora_path", Any, S),
    ("lora", List, L),
    ("documents", List, VN),
    ("chat_template", Text, VN),
    ("chat_template_kwargs", Table, VSN | L),
    ("reasoning_effort", Any, VSN),
    ("include_reasoning", Flag, VN),
    ("separate_reasoning", Flag, S),
    ("stream_reasoning", Flag, S),
    ("thinking_token_budget", Whole(-1, i64::MAX), VN),
    ("reasoning_format", Text, L),
    ("thinking_forced_open", Flag, L),
    ("mm_processor_kwargs", Table, VN),
    ("kv_transfer_params", Table, VN),
    ("vllm_xargs", Table, VN),
    ("repetition_detection", Table, VN),
    ("nvext", Table, N),
    ("custom_logit_processor", Any, S),
    ("custom_params", Table, S),
    ("return_hidden_states", Any, S),
    ("return_cached_tokens_details", Flag, S),
    ("bootstrap_host", Any, S),
    ("bootstrap_port", Any, S),
    ("bootstrap_room", Any, S),
    ("data_parallel_rank", Whole(0, i64::MAX), S),
    ("routed_dp_rank", Whole(0, i64::MAX), S),
    ("dynatemp_range", Number(0, MOST), L),
    ("dynatemp_exponent", Number(0, MOST), L),
    ("repeat_last_n", Whole(-1, i64::MAX), L),
    ("dry_multiplier", Number(0, MOST), L),
    ("dry_base", Number(0, MOST), L),
    ("dry_allowed_length", Whole(0, i64::MAX), L),
    ("dry_penalty_last_n", Whole(-1, i64::MAX), L),
    ("dry_sequence_breakers", List, L),
    ("xtc_probability", Number(0, 100), L),
    ("xtc_threshold", Number(0, 100), L),
    ("top_n_sigma", Number(-MOST, MOST), L),
    ("mirostat", Whole(0, 2), L),
    ("mirostat_tau", Number(0, MOST), L),
    ("mirostat_eta", Number(0, MOST), L),
    ("samplers", Any, L),
    ("min_keep", Whole(0, i64::MAX), L),
    ("n_keep", Whole(-1, i64::MAX), L),
    ("n_indent", Whole(0, i64::MAX), L),
    ("n_cache_reuse", Whole(0, i64::MAX), L),
    ("t_max_predict_ms", Whole(0, i64::MAX), L),
    ("id_slot", Whole(-1, i64::MAX), L),
    ("cache_prompt", Flag, L),
    ("timings_per_token", Flag, L),
    ("return_progress", Flag, L),
    ("post_sampling_probs", Flag, L),
    ("return_tokens", Flag, L),
];

/// Fields that sweepline writes itself (apart from the length fields), or that would make a request
/// differ from its row, with the reason and the remedy.
const REFUSED: &[(&str, &str, &str)] = &[
    ("model", "sweepline sends it itself", "write the model's `id` under `models`, or the scenario's `model`"),
    ("messages", "sweepline sends them itself", "describe prompts with the scenario's fields"),
    ("prompt", "sweepline sends it itself", "describe prompts with the scenario's fields"),
    ("input_ids", "prompts are text", "describe prompts with the scenario's fields"),
    ("n_predict", "sweepline sends `max_tokens`", "write the scenario's `output_tokens`"),
    ("stream", "sweepline sends it itself", "write `stream` in the scenario, outside `extra`"),
    ("stream_options", "sweepline sends it itself to get the number of tokens", "remove it"),
    ("ignore_eos", "sweepline sends it itself", "write `ignore_eos` in the scenario, outside `extra`"),
    ("temperature", "sweepline sends it itself", "write `temperature` in the scenario, outside `extra`"),
    ("top_p", "sweepline sends it itself", "write `top_p` in the scenario, outside `extra`"),
    ("presence_penalty", "sweepline sends it itself", "write `presence_penalty` in the scenario, outside `extra`"),
    ("frequency_penalty", "sweepline sends it itself", "write `frequency_penalty` in the scenario, outside `extra`"),
    ("stop", "sweepline sends it itself", "write `stop` in the scenario, outside `extra`"),
    ("n", "a row describes one response", "remove it"),
    ("best_of", "a row describes one response", "remove it"),
    ("use_beam_search", "a row describes one response", "remove it"),
    ("echo", "the prompt would count as part of the response", "remove it"),
    ("request_id", "it would be the same for all requests", "remove it; requests carry the header x-request-id"),
    ("rid", "it would be the same for all requests", "remove it; requests carry the header x-request-id"),
];

/// The bit of an engine whose fields are known.
fn bit(engine: Engine) -> Option<u8> {
    match engine {
        Engine::Vllm => Some(V),
        Engine::Sglang => Some(S),
        Engine::Tgi => Some(T),
        Engine::Llamacpp => Some(L),
        Engine::Nim => Some(N),
        Engine::Openai | Engine::Mock => None,
    }
}

/// The type of a field's value; `None` for a field that no known engine has.
pub fn takes(field: &str) -> Option<Takes> {
    FIELDS.iter().find(|(name, ..)| *name == field).map(|(_, takes, _)| *takes)
}

/// Whether requests to `engine` may contain `field`; true if the engine's fields are unknown.
pub(crate) fn is_field(engine: Engine, field: &str) -> bool {
    bit(engine).is_none() || names(engine, field)
}

/// Whether `field` is among the known fields of `engine`.
pub fn names(engine: Engine, field: &str) -> bool {
    fields_of(engine).any(|name| name == field)
}

/// The fields that `engine` accepts, if they are known.
pub(crate) fn fields_of(engine: Engine) -> impl Iterator<Item = &'static str> + Clone {
    let bit = bit(engine).unwrap_or(0);
    FIELDS.iter().filter(move |(_, _, engines)| engines & bit != 0).map(|(name, ..)| *name)
}

/// The reason why no request may carry `field`, and the remedy.
pub fn refused(field: &str) -> Option<(&'static str, Cow<'static, str>)> {
    if let Some(length) = LengthField::ALL.iter().find(|length| length.name() == field) {
        return Some(("sweepline sends it itself", format!("write the scenario's `{}`", length.key()).into()));
    }
    REFUSED.iter().find(|(name, ..)| *name == field).map(|(_, why, remedy)| (*why, (*remedy).into()))
}

/// Every field that some engine accepts, with the type of its value.
pub fn known() -> impl Iterator<Item = (&'static str, Takes)> {
    FIELDS.iter().map(|(name, takes, _)| (*name, *takes))
}

/// The fields that no request may carry.
pub(crate) fn all_refused() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().map(|(name, ..)| *name).chain(LengthField::ALL.map(LengthField::name))
}
