# The parameter sweep of docs.vllm.ai, benchmarking/sweeps (vllm-project/vllm, docs/benchmarking/sweeps.md at 0826bcfb):
# six settings of the server, the first of its workloads, three runs of each (the default).
vllm bench sweep serve \
    --serve-cmd 'vllm serve meta-llama/Llama-2-7b-chat-hf' \
    --bench-cmd 'vllm bench serve --model meta-llama/Llama-2-7b-chat-hf --backend vllm --endpoint /v1/completions --dataset-name random --num-prompts 100' \
    --serve-params docs_serve_hparams.json \
    --bench-params docs_bench_hparams.json \
    -o benchmarks/results
