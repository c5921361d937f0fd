//! Invalid matrices and their errors. To review a snapshot, read it aloud.

use super::broken::{errors, plan, snapshots, sweep};
use super::*;

snapshots! {
    ranges: sweep("batch_size: { from: 1, to: 8 }, qps: [{ from: 8, to: 2, step: 1 }, { from: 0.1, to: 1, step: 0.0 }, { from: 1, to: 4, times: 2, step: 1 }], prompt_tokens: { from: 0, to: 50, times: 2 }, output_tokens: { from: 1, to: 4000000, step: 1 }, top_p: { to: 1, step: 0.5 }, temperature: { from: 0.1, too: 1, times: 1 }", "");
    ranges_of_wrong_kinds: sweep("batch_size: { from: 1, to: 10, times: 1.5 }, stream: { from: 1, to: 2, step: 1 }, temperature: { from: 1, to: 3, step: 1 }, qps: { from: 1.000000001, to: 100, times: 1.000000001 }", "");
    overlapping_ranges: sweep("batch_size: [1, 8, { from: 1, to: 16, times: 2 }]", "");
    unequal_zip: sweep("batch_size: 1, shape: { zip: { prompt_tokens: [256, 2048, 4096], output_tokens: [1024, 128] } }", "exclude: [{ output_tokens: 1024 }, { batch_size: 2 }]");
    zipped_and_plain: sweep("batch_size: 1, prompt_tokens: [16, 32], shape: { zip: { prompt_tokens: [256, 2048], output_tokens: [1024, 128] } }, more: [{ concurrency: 2 }]", "");
    odd_zips: sweep("a: { zip: {} }, b: { zip: { prompt_tokens: [{ value: 16, when: { endpoint: vllm } }] } }, c: { zip: { prompt_tokns: [16] } }, batch_size: { zip: { batch_size: [1] } }, d: [{ zip: { qps: [1] } }], e: [{ value: 1, from: 2 }], f: [{}]", "");
    groups: sweep("shape: [{ prompt_tokens: 256, output_tokens: 1024 }, { promt_tokens: 1 }, { prompt_tokens: 256, max_tokens: 1024 }, 7], qps: [{ qps: 5 }], load: [{ batch_size: 1 }, { batch_size: 1, concurrency: 2 }]", "exclude: [{ shape: 256 }]");
    whens: sweep("batch_size: [1, { value: 256, when: { endpoint: vlm } }, { value: 8, when: { colour: red } }, { value: 4, when: {} }, { value: [], when: { endpoint: demo } }]", "when: { scenario: D, model: { from: 1 } }");
    when_in_a_circle: sweep("batch_size: [1, { value: 8, when: { output_tokens: 64 } }], output_tokens: [{ value: 64, when: { prompt_tokens: 32 } }, 128], prompt_tokens: [16, { value: 32, when: { batch_size: 8 } }]", "");
    when_of_itself: sweep("batch_size: [1, { value: 8, when: { batch_size: 8 } }]", "");
    when_leaves_nothing: sweep("batch_size: [1, { value: 8, when: { endpoint: vllm } }]", "when: { endpoint: demo, batch_size: 8 }");
    excludes_by_range: sweep("batch_size: [1, 8, 64]", "exclude: [{ batch_size: { from: 65 } }, { batch_size: { to: 0.5 } }, { batch_size: { from: 8, to: 2 } }, { batch_size: {} }, { batch_size: [{ from: 2, to: 7 }, 64] }, { endpoint: { from: 1 } }]");
    exclude_of_what_never_meets: sweep("batch_size: [1, { value: 64, when: { endpoint: vllm } }], shape: { zip: { prompt_tokens: [16, 32], output_tokens: [1, 2] } }", "exclude: [{ endpoint: demo, batch_size: 64 }, { prompt_tokens: 16, output_tokens: 2 }]");
    extends: sweep("batch_size: [1, 8]", "exclude: [{ endpoint: demo, batch_size: 8 }]\n    extend:\n      - { when: { endpoint: vlm }, with: { temperature: 0.7 } }\n      - { when: { endpoint: demo, batch_size: 8 }, with: { temperature: 0.7 } }\n      - { when: { endpoint: vllm }, with: { concurrency: 4, temprature: 1, top_p: 7 } }\n      - { when: { endpoint: vllm }, with: { temperature: 0 } }\n      - { when: { batch_size: 8 }, with: { temperature: 1 } }\n      - { when: {}, with: {} }\n      - { with: { top_p: 1 } }");
    adds: sweep("batch_size: [1, 8]", "add:\n      - { endpoint: vllm, batch_size: 8 }\n      - { endpoint: vllm, batch_size: 9 }\n      - { endpoint: vllm, batch_size: 9 }\n      - { batch_size: 9 }\n      - { endpoint: demo, model: smal }\n      - { endpoint: demo, model: small, batch_size: [1, 2] }\n      - { endpoint: demo, model: small, batchsize: 3 }\n      - {}").replace("models: { small: { id: small }, large: { id: { vllm: org/large } } }", "models: { small: { id: small } }");
    add_of_an_extended_cell: sweep("batch_size: [1, 8]", "extend: [{ when: { endpoint: vllm }, with: { temperature: 0.7 } }]\n    add: [{ endpoint: vllm, model: small, batch_size: 8, temperature: 0.7 }]");
    some_cells_lack_a_load: sweep("batch_size: [{ value: 8, when: { endpoint: vllm } }]", "");
    some_cells_lack_an_endpoint: plan("", "  s: { matrix: { model: small, batch_size: [1, 8], endpoint: [{ value: vllm, when: { batch_size: 1 } }] } }");
    too_many_cells: plan("max_cells: 1000", "  a: { repeats: 3, matrix: { endpoint: demo, model: small, batch_size: { from: 1, to: 1000, step: 1 } } }\n  b: { matrix: { endpoint: demo, model: small, qps: [1, 2] }, add: [{ endpoint: demo, model: small, qps: 3 }] }");
    far_too_many_cells: plan("max_cells: 20000000", "  a: { matrix: { endpoint: demo, model: small, batch_size: 1 } }");
    far_too_many_values: plan("", "  a: { matrix: { endpoint: demo, model: small, qps: [{ from: 1, to: 9999, step: 1 }, { from: 0.5, to: 9999, step: 1 }, { from: 0.1, to: 9999, step: 1 }, { from: 0.2, to: 9999, step: 1 }, { from: 0.3, to: 9999, step: 1 }, { from: 0.4, to: 9999, step: 1 }, { from: 0.6, to: 9999, step: 1 }, { from: 0.7, to: 9999, step: 1 }, { from: 0.8, to: 9999, step: 1 }, { from: 0.9, to: 9999, step: 1 }, { from: 0.15, to: 9999, step: 1 }] } }");
}

#[test]
fn a_toml_matrix_is_told_at_its_places() {
    let text = "sweepline = 1\nname = \"a\"\n[endpoints]\ne = { engine = \"mock\" }\n[models]\nm = { id = \"m\" }\n\
                [sweeps.s]\nexclude = [{ batch_size = { from = 100 } }]\n[sweeps.s.matrix]\n\
                batch_size = { from = 1, to = 64, times = 1 }\nqps = [1, { value = 2, when = { endpoint = \"f\" } }]\n\
                shape.zip = { prompt_tokens = [16, 32], output_tokens = [1] }\n";
    insta::assert_snapshot!(errors(text, Format::Toml));
}
