# Facts of triton-inference-server/perf_analyzer, genai-perf/docs/dynamo.md and goodput.md at 263c5f6e.
genai-perf profile \
  -m deepseek-ai/DeepSeek-R1-Distill-Llama-8B \
  --endpoint-type chat \
  --synthetic-input-tokens-mean 128 \
  --synthetic-input-tokens-stddev 0 \
  --output-tokens-mean 100 \
  --output-tokens-stddev 0 \
  --url localhost:8080 \
  --streaming \
  --goodput time_to_first_token:75 inter_token_latency:19.75 \
  --request-count 10 \
  --warmup-request-count 2
