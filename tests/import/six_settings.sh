vllm bench sweep serve \
    --serve-cmd 'vllm serve meta-llama/Llama-2-7b-chat-hf --port 8000 --disable-log-requests' \
    --bench-cmd 'vllm bench serve --model meta-llama/Llama-2-7b-chat-hf --backend vllm --port 8000 --random-input-len 128 --random-output-len 32 --max-concurrency 64 --num-prompts 1000' \
    --serve-params six_settings.json \
    --num-runs 3 --server-ready-timeout 600 --show-stdout --dry-run --resume 20251101_120000 -o results
