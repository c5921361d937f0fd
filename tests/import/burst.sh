vllm bench serve --model m --dataset-name sonnet --dataset-path sonnet.txt --sonnet-input-len 600 --num-prompts 64 --header "Authorization=Bearer abcdef0123456789" x-team=perf
