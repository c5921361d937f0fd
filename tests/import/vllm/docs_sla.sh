# The SLA tuner of vllm-project/vllm, docs/benchmarking/sweeps.md at 0826bcfb, with one of its objectives.
vllm bench sweep serve_sla \
    --serve-cmd 'vllm serve meta-llama/Llama-2-7b-chat-hf' \
    --bench-cmd 'vllm bench serve --model meta-llama/Llama-2-7b-chat-hf --backend vllm --endpoint /v1/completions --dataset-name random' \
    --serve-params docs_serve_hparams.json \
    --bench-params docs_lengths.json \
    --sla-params docs_sla_hparams.json \
    --sla-variable max_concurrency \
    -o benchmarks/results
