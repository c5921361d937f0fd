# vllm-project/guidellm, docs/guides/backends.md, "Combining Sampling Parameters with Other Backend Options" (ee7a7745, 0.7.3).
guidellm run \
  --backend '{"kind":"openai_http","target":"http://localhost:8000/v1","model":"meta-llama/Meta-Llama-3.1-8B-Instruct","api_key":"sk-live-0123456789abcdef0123","extras":{"body":{"temperature":0.8,"top_p":0.9,"top_k":20}}}' \
  --profile kind=poisson,rate=16 \
  --data kind=synthetic_text,prompt_tokens=256,output_tokens=128
