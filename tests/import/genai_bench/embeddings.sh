# sgl-project/genai-bench, docs/user-guide/run-benchmark.md, "Start an embedding benchmark" (7fd04d8c).
genai-bench benchmark --api-backend sglang \
            --api-base "http://172.18.0.3:8000" \
            --api-key "xxx" \
            --api-model-name "/models/e5-mistral-7b-instruct" \
            --model-tokenizer "/mnt/data/models/e5-mistral-7b-instruct" \
            --task text-to-embeddings \
            --server-engine "SGLang" \
            --max-time-per-run 15 --max-requests-per-run 1500 \
            --traffic-scenario "E(64)" --traffic-scenario "E(128)" --traffic-scenario "E(512)" --traffic-scenario "E(1024)" \
            --server-gpu-type "H100" --server-version "v0.4.2" --server-gpu-count 1 \
            --batch-size 1 --batch-size 8
