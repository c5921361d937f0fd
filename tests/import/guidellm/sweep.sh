# vllm-project/guidellm, README.md, "Run Your First Benchmark" (ee7a7745, 0.7.3).
guidellm run \
  --backend kind=openai_http,target=http://localhost:8000 \
  --profile kind=sweep \
  --constraint kind=max_duration,seconds=30 \
  --data kind=synthetic_text,prompt_tokens=256,output_tokens=128
