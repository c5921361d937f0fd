# vllm-project/guidellm, docs/guides/multiturn.md, examples 1 to 3 (ee7a7745, 0.7.3).
SERVER=kind=openai_http,target=http://localhost:8000,model=meta-llama/Llama-3.1-8B-Instruct,request_format=/v1/chat/completions
guidellm run --backend $SERVER --profile kind=concurrent,streams=6 --constraint kind=max_requests,count=30 \
  --data kind=synthetic_text,prompt_tokens=200,output_tokens=100,turns=3
guidellm run --backend $SERVER --profile kind=constant,rate=2.0 --constraint kind=max_requests,count=100 \
  --data kind=synthetic_text,prompt_tokens=150,output_tokens=75,turns=4,prefix_tokens=100
guidellm run --backend $SERVER --profile kind=constant,rate=1.5 --constraint kind=max_duration,seconds=60 \
  --data '{"kind": "synthetic_text", "prompt_tokens": 180, "output_tokens": 90, "turns": 3, "prefix_buckets": [
    {"bucket_weight": 60, "prefix_count": 5, "prefix_tokens": 100}, {"bucket_weight": 40, "prefix_count": 1, "prefix_tokens": 0}]}'
