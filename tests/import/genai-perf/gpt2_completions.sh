# Facts of triton-inference-server/perf_analyzer, genai-perf/docs/tutorial.md at 263c5f6e: OpenAI completions.
genai-perf profile \
  -m gpt2 \
  --endpoint-type completions \
  --synthetic-input-tokens-mean 200 \
  --synthetic-input-tokens-stddev 0 \
  --output-tokens-mean 100 \
  --output-tokens-stddev 0 \
  --request-count 50 \
  --warmup-request-count 10
