# sgl-project/genai-bench, docs/user-guide/scenario-definition.md, "Using --prefix-ratio with multiple scenarios" (7fd04d8c).
genai-bench benchmark \
  --task text-to-text \
  --traffic-scenario "D(1000,100)" \
  --traffic-scenario "D(2000,200)" \
  --traffic-scenario "D(4000,400)" \
  --prefix-ratio 0.75 \
  --num-concurrency 10 \
  --api-backend sglang \
  --api-base http://localhost:8000 \
  --api-model-name meta-llama/Meta-Llama-3-8B-Instruct \
  --model-tokenizer meta-llama/Meta-Llama-3-8B-Instruct
