# vllm-project/guidellm, docs/getting-started/benchmark.md, "Concurrent Profile" and "Constant Profile" (ee7a7745, 0.7.3), with the
# server and data of its first example.
guidellm run --backend kind=openai_http,target=http://localhost:8000 \
  --profile kind=concurrent,streams=10,rampup_duration=10 --override profile.streams 10,20,30 \
  --constraint kind=max_requests,count=1000 --data kind=synthetic_text,prompt_tokens=256,output_tokens=128
guidellm run --backend kind=openai_http,target=http://localhost:8000 \
  --profile '{"kind":"constant","rate":[16,32]}' --seed kind=static,value=42 \
  --constraint kind=max_duration,seconds=60 --data kind=synthetic_text,prompt_tokens=256,output_tokens=128
