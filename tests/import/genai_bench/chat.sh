# sgl-project/genai-bench, docs/user-guide/run-benchmark.md, "Start a chat benchmark" (7fd04d8c).
export HF_TOKEN="hf_0123456789abcdefghij"
export TRANSFORMERS_VERBOSITY=error
genai-bench benchmark --api-backend sglang \
            --api-base "http://localhost:8082" \
            --api-key "your-openai-api-key" \
            --api-model-name "meta-llama/Meta-Llama-3-70B-Instruct" \
            --model-tokenizer "/mnt/data/models/Meta-Llama-3.1-70B-Instruct" \
            --task text-to-text \
            --max-time-per-run 15 \
            --max-requests-per-run 300 \
            --server-engine "SGLang" \
            --server-gpu-type "H100" \
            --server-version "v0.6.0" \
            --server-gpu-count 4
