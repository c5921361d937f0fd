# Facts of triton-inference-server/perf_analyzer, genai-perf/docs/tutorial.md at 263c5f6e: OpenAI chat.
genai-perf profile \
  -m HuggingFaceH4/zephyr-7b-beta \
  --endpoint-type chat \
  --synthetic-input-tokens-mean 200 \
  --synthetic-input-tokens-stddev 0 \
  --output-tokens-mean 100 \
  --output-tokens-stddev 0 \
  --streaming \
  --request-count 50 \
  --warmup-request-count 10
