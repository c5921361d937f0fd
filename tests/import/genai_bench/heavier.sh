# sgl-project/genai-bench, docs/user-guide/run-benchmark.md, "Notes on benchmark duration" and "Controlling User Spawn Rate" (7fd04d8c),
# with the server of an earlier section.
genai-bench benchmark --api-backend vllm --api-base "http://localhost:8082" --api-model-name "vllm-model" \
            --model-tokenizer "/mnt/data/models/Meta-Llama-3.1-70B-Instruct" --task text-to-text \
            --max-time-per-run 30 \
            --max-requests-per-run 100 \
            --traffic-scenario "D(16000,200)" --traffic-scenario "D(32000,200)" --traffic-scenario "D(128000,200)" \
            --num-concurrency 1 --num-concurrency 2 --num-concurrency 4 \
            --num-concurrency 8 --num-concurrency 16 --num-concurrency 32 \
            --num-workers 4 --master-port 5577 --spawn-rate 50
