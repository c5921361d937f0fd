vllm bench sweep serve \
    --serve-cmd 'env HF_TOKEN=hf_abcdef0123456789 VLLM_USE_V1=1 HF_HOME=/data/hf vllm serve Qwen/Qwen3-8B --served-model-name qwen --host 0.0.0.0 --port 8000 --max-num-seqs 256 --gpu-memory-utilization 0.9 --no-enable-prefix-caching --api-key sk-live-0123456789abcdef0123 --lora-modules a=/a b=/b --override-generation-config "{\"temperature\": 0.5}"' \
    --bench-cmd 'vllm bench serve --model Qwen/Qwen3-8B --served-model-name qwen --port 8000 --request-rate 4 --num-prompts 400' \
    --serve-params named_settings.json --bench-params named_bench.json --num-runs 2
