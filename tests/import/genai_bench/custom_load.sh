# sgl-project/genai-bench, docs/user-guide/run-benchmark.md, "Specify a custom benchmark load" (7fd04d8c), with the server of the
# section before it.
genai-bench benchmark \
            --api-backend sglang \
            --api-base "http://localhost:8082" \
            --api-model-name "meta-llama/Meta-Llama-3-70B-Instruct" \
            --model-tokenizer "meta-llama/Meta-Llama-3-70B-Instruct" \
            --task text-to-text \
            --max-time-per-run 10 \
            --max-requests-per-run 300 \
            --num-concurrency 1 --num-concurrency 2 --num-concurrency 4 \
            --num-concurrency 8 --num-concurrency 16 --num-concurrency 32 \
            --traffic-scenario "N(480,240)/(300,150)" --traffic-scenario "D(100,100)"
