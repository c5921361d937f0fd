#!/bin/bash
# The sweep that everybody writes.
set -xe
MODEL=${MODEL:-meta-llama/Llama-3.1-8B-Instruct}
REQUEST_RATES=(1 5 10 20)
TOTAL_SECONDS=120
mkdir -p results

for REQUEST_RATE in "${REQUEST_RATES[@]}";
do
    NUM_PROMPTS=$(($TOTAL_SECONDS * $REQUEST_RATE))
    echo "===== RUNNING $MODEL FOR $NUM_PROMPTS PROMPTS WITH $REQUEST_RATE QPS ====="

    python3 vllm/benchmarks/benchmark_serving.py \
        --model $MODEL \
        --dataset-name random \
        --random-input-len 1000 \
        --random-output-len 100 \
        --request-rate $REQUEST_RATE \
        --num_prompt $NUM_PROMPTS \
        --seed $REQUEST_RATE \
        --ignore-eos \
        --result-filename "$MODEL-$REQUEST_RATE.json" \
        --save-result 2>&1 | tee -a results/log.txt
    sleep 5
done
