# sgl-project/sglang, docs/developer_guide/bench_serving.md, end-to-end example 3 (0229689b), with the options of its other sections.
export OPENAI_API_KEY=sk-proj-verysecret0123456789
python3 -m sglang.bench_serving \
  --backend vllm-chat \
  --base-url http://127.0.0.1:8000 \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --dataset-name random \
  --num-prompts 500 \
  --apply-chat-template --extra-request-body '{"top_p":0.9,"temperature":0.6}' --disable-ignore-eos
