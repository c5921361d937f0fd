# "Running With Ramp-Up Request Rate", "Running With Sampling Parameters" and the goodput of vllm-project/vllm, docs/benchmarking/cli.md at 069c00b0.
vllm serve NousResearch/Hermes-3-Llama-3.1-8B
vllm bench serve \
  --backend vllm \
  --model NousResearch/Hermes-3-Llama-3.1-8B \
  --endpoint /v1/completions \
  --dataset-name random --random-input-len 1024 --random-output-len 128 \
  --top-k 10 --top-p 0.9 --temperature 0.5 \
  --ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 10 \
  --goodput ttft:500 tpot:50 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99 \
  --num-prompts 1000 --save-result
