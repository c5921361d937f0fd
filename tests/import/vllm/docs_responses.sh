# The Responses API of vllm-project/vllm, docs/benchmarking/cli.md at 069c00b0.
vllm serve openai/gpt-oss-20b
vllm bench serve \
    --backend openai-responses \
    --endpoint /v1/responses \
    --model openai/gpt-oss-20b \
    --dataset-name random \
    --random-input-len 1024 \
    --random-output-len 1024 \
    --num-prompts 200
