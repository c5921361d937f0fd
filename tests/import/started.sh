#!/bin/bash
MODEL=meta-llama/Llama-3.1-8B-Instruct
PORT=8123
export HF_TOKEN=hf_abcdef0123456789
export VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1
for tp in 1 2; do
    HF_HOME=/data/hf nohup vllm serve "$MODEL" -tp $tp --port $PORT --max-num-seqs 128 --enforce-eager \
        --api-key $SERVER_KEY --download-dir $SCRATCH > server.log 2>&1 &
    until curl -sf http://localhost:$PORT/health; do sleep 5; done
    for rate in 1 4; do
        vllm bench serve --model "$MODEL" --port $PORT --request-rate $rate --num-prompts 300 --ready-check-timeout-sec 0
    done
    kill $!
done
ssh gpu-7 vllm serve "$MODEL" --port 8000
vllm bench serve --model "$MODEL" --host gpu-7 --port 8000 --request-rate 4 --num-prompts 300
