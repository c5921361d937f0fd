#!/usr/bin/env bash
# Two models behind one gateway, three passes each, lengths in pairs.
GATEWAY=https://llm.example.com EXTRA=yes
for model in "Qwen/Qwen3-8B" "meta-llama/Llama-3.1-8B-Instruct"; do
  for pass in 1 2 3; do
    vllm bench serve --backend openai-chat --base-url "$GATEWAY" --endpoint /v1/chat/completions \
      --header "Authorization=Bearer $GATEWAY_TOKEN" --model "$model" --temperature 0 \
      --input-len 512 --output-len 64 --request-rate 2.5 --num-prompts 300 --result-filename "$model-$pass.json"
  done
done
if [ -n "$EXTRA" ]; then
  vllm bench serve --model Qwen/Qwen3-8B --temperature 0 --max-concurrency 8 --num-prompts 80 --custom-output-len -1 --dataset-name custom --dataset-path mine.jsonl
fi
