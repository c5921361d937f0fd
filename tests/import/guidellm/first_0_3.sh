# vllm-project/guidellm, README.md of tag v0.3.0, "Run a Benchmark".
guidellm benchmark \
  --target "http://localhost:8000" \
  --rate-type sweep \
  --max-seconds 30 \
  --data "prompt_tokens=256,output_tokens=128"
