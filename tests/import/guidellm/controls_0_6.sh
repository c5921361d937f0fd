# vllm-project/guidellm, README.md of tag v0.6.0, "Benchmark Controls".
guidellm benchmark \
  --target http://localhost:8000 \
  --profile concurrent \
  --rate 16 \
  --warmup 0.1 \
  --cooldown 0.1 \
  --max-errors 5 \
  --data "prompt_tokens=256,output_tokens=128" \
  --detect-saturation
