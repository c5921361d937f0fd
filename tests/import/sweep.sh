vllm bench sweep serve \
    --serve-cmd 'vllm serve meta-llama/Llama-2-7b-chat-hf --tensor-parallel-size 2' \
    --bench-cmd 'vllm bench serve --model meta-llama/Llama-2-7b-chat-hf --backend vllm --endpoint /v1/completions --request-rate 8 --num-prompts 600' \
    --serve-params serve_hparams.json \
    --bench-params bench_hparams.json \
    --num-runs 5 --after-bench-cmd 'curl -X POST localhost:8000/reset' \
    -o benchmarks/results -e seqs
