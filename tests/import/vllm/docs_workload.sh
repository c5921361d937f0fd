# The workload explorer of vllm-project/vllm, vllm/benchmarks/sweep/serve_workload.py at 24d6ea8a: ten levels (the default) of the
# concurrency, here over one setting of the server.
vllm bench sweep serve_workload \
    --serve-cmd 'vllm serve meta-llama/Llama-2-7b-chat-hf' \
    --bench-cmd 'vllm bench serve --model meta-llama/Llama-2-7b-chat-hf --backend vllm --dataset-name random --random-input-len 256 --random-output-len 64 --num-prompts 1000' \
    --workload-var max_concurrency --workload-iters 6 --num-runs 1 -o benchmarks/results
