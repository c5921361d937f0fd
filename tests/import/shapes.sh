vllm bench serve --model m --request-rate=4 --burstiness 0.5 --max-concurrency 32 --dataset-name prefix_repetition --prefix-repetition-prefix-len 512 --prefix-repetition-suffix-len 8 --prefix-repetition-num-prefixes 5 --num-prompts 100
vllm bench serve --model m --request-rate 4 --burstiness inf --num-prompts 1000 --random-prefix-len 200 --random-range-ratio 0.3 --extra-body '{"temperature": 0.5, "chat_template_kwargs": {"enable_thinking": false}, "max_tokens": 77}'
vllm bench serve --model m --ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 10
vllm bench serve --model m --backend openai-embeddings --endpoint /v1/embeddings
vllm bench serve --model m --max-concurrency 16 --max-concurrency 8 --lora-modules a b --metadata version=0.20 tp=4 --made-up-option 5 stray
vllm bench serve --model m --request-rate 2 --num-prompts 60 --dataset-name hf --dataset-path lmarena-ai/VisionArena-Chat --hf-split train --insecure --base-url https://gw.example.com/llm
