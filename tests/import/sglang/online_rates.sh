# datacrunch-research/h200-benchmarks, sglang/llama_3_3_70B_sglang.sh (65b698bc): its five commands, what they share in a variable.
BENCH="python3 -m sglang.bench_serving --backend sglang --dataset-name random --random-input 1024 --random-output 1024"
$BENCH --num-prompts 300 --request-rate 1 --output-file online.jsonl
$BENCH --num-prompts 600 --request-rate 2 --output-file online.jsonl
$BENCH --num-prompts 1200 --request-rate 4 --output-file online.jsonl
$BENCH --num-prompts 2400 --request-rate 8 --output-file online.jsonl
$BENCH --num-prompts 3200 --request-rate 16 --output-file online.jsonl
