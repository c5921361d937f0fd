# sgl-project/genai-bench, docs/getting-started/migrating-from-sglang-vllm.md, "Multiple Concurrency Levels" (7fd04d8c).
genai-bench benchmark \
    --api-backend sglang \
    --api-base http://127.0.0.1:8080 \
    --api-model-name sglang-model \
    --model-tokenizer meta-llama/Llama-3.1-8B-Instruct \
    --task text-to-text \
    --max-requests-per-run 500 \
    --max-time-per-run 30 \
    --traffic-scenario "U(1,512)/(0,512)" \
    --num-concurrency 1 \
    --num-concurrency 4 \
    --num-concurrency 8 \
    --num-concurrency 16 \
    --server-engine "SGLang"
