# Starts over settings: vllm-project/vllm, vllm/benchmarks/sweep/startup.py at 0c496620 and vllm/benchmarks/startup.py at 045d7575.
vllm bench sweep startup \
    --startup-cmd 'vllm bench startup --model Qwen/Qwen3-0.6B --num-iters-warm 5 --max-model-len 4096' \
    --serve-params startup_serve.json \
    --num-runs 2 --strict-params -o results -e starts
