# One command for each option that docs.vllm.ai/en/latest/cli/bench/serve lists, and those that its sources had before.
vllm bench serve --model m --trust-remote-code
vllm bench serve --model m --seed 7
vllm bench serve --model m --num-prompts 200
vllm bench serve --model m --dataset-name sharegpt
vllm bench serve --model m --no-stream
vllm bench serve --model m --dataset-path ./data.json
vllm bench serve --model m --no-oversample
vllm bench serve --model m --skip-chat-template
vllm bench serve --model m --enable-multimodal-chat
vllm bench serve --model m --disable-shuffle
vllm bench serve --model m --custom-output-len 64 --dataset-name custom
vllm bench serve --model m --spec-bench-output-len 64 --dataset-name spec_bench
vllm bench serve --model m --spec-bench-category writing
vllm bench serve --model m --sonnet-input-len 500 --dataset-name sonnet
vllm bench serve --model m --sonnet-output-len 100 --dataset-name sonnet
vllm bench serve --model m --sonnet-prefix-len 100 --dataset-name sonnet
vllm bench serve --model m --sharegpt-output-len 64 --dataset-name sharegpt
vllm bench serve --model m --blazedit-min-distance 0.1
vllm bench serve --model m --blazedit-max-distance 0.9
vllm bench serve --model m --asr-max-audio-len-sec 30
vllm bench serve --model m --asr-min-audio-len-sec 1
vllm bench serve --model m --random-input-len 300
vllm bench serve --model m --random-output-len 300
vllm bench serve --model m --random-range-ratio '{"input": 0.3, "output": 0.5}'
vllm bench serve --model m --random-prefix-len 30
vllm bench serve --model m --random-batch-size 1
vllm bench serve --model m --no-reranker
vllm bench serve --model m --random-mm-base-items-per-request 1
vllm bench serve --model m --random-mm-num-mm-items-range-ratio 0.5
vllm bench serve --model m --random-mm-limit-mm-per-prompt '{"image": 3}'
vllm bench serve --model m --random-mm-bucket-config '{(256, 256, 1): 0.5}'
vllm bench serve --model m --hf-subset a
vllm bench serve --model m --hf-split train
vllm bench serve --model m --hf-name a/b
vllm bench serve --model m --hf-output-len 64 --dataset-name hf
vllm bench serve --model m --prefix-repetition-prefix-len 100 --dataset-name prefix_repetition
vllm bench serve --model m --prefix-repetition-suffix-len 100 --dataset-name prefix_repetition
vllm bench serve --model m --prefix-repetition-num-prefixes 3 --dataset-name prefix_repetition
vllm bench serve --model m --prefix-repetition-output-len 100 --dataset-name prefix_repetition
vllm bench serve --model m --speed-bench-dataset-subset throughput_1k --dataset-name speed_bench
vllm bench serve --model m --speed-bench-output-len 100 --dataset-name speed_bench
vllm bench serve --model m --speed-bench-category x --dataset-name speed_bench
vllm bench serve --model m --label night
vllm bench serve --model m --backend openai-chat --endpoint /v1/chat/completions
vllm bench serve --model m --endpoint-type openai
vllm bench serve --model m --base-url http://127.0.0.1:9000
vllm bench serve --model m --host 127.0.0.2
vllm bench serve --model m --port 9001
vllm bench serve --model m --endpoint /openai/v1/completions
vllm bench serve --model m --header x-a=1
vllm bench serve --model m --max-concurrency 3
vllm bench serve --model m --input-len 77
vllm bench serve --model m --output-len 77
vllm bench serve --model m --tokenizer t
vllm bench serve --model m --tokenizer-mode slow
vllm bench serve --model m --use-beam-search
vllm bench serve --model m --logprobs 1
vllm bench serve --model m --request-rate 3
vllm bench serve --model m --request-rate 3 --burstiness 2
vllm bench serve --model m --probe-request-rate 1
vllm bench serve --model m --disable-tqdm
vllm bench serve --model m --num-warmups 3
vllm bench serve --model m --profile
vllm bench serve --model m --save-result
vllm bench serve --model m --save-detailed
vllm bench serve --model m --append-result
vllm bench serve --model m --metadata a=b
vllm bench serve --model m --result-dir d
vllm bench serve --model m --result-filename f
vllm bench serve --model m --ignore-eos
vllm bench serve --model m --self-timed
vllm bench serve --model m --no-self-timed
vllm bench serve --model m --percentile-metrics ttft
vllm bench serve --model m --metric-percentiles 99
vllm bench serve --model m --goodput ttft:100
vllm bench serve --model m --request-id-prefix x
vllm bench serve --model m --top-p 0.5
vllm bench serve --model m --top-k 5
vllm bench serve --model m --min-p 0.1
vllm bench serve --model m --temperature 0.3
vllm bench serve --model m --frequency-penalty 0.1
vllm bench serve --model m --presence-penalty 0.1
vllm bench serve --model m --repetition-penalty 1.1
vllm bench serve --model m --served-model-name served
vllm bench serve --model m --lora-modules a b
vllm bench serve --model m --lora-assignment round-robin
vllm bench serve --model m --ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2
vllm bench serve --model m --ready-check-timeout-sec 5
vllm bench serve --model m --chat-template-kwargs '{"thinking": true}'
vllm bench serve --model m --extra-body '{"min_tokens": 5}'
vllm bench serve --model m --skip-tokenizer-init
vllm bench serve --model m --insecure
vllm bench serve --model m --plot-timeline
vllm bench serve --model m --timeline-itl-thresholds 25,50
vllm bench serve --model m --plot-dataset-stats
vllm bench serve --model m --config f.yaml
vllm bench serve --model m --best-of 2
vllm bench serve --model m --timed-trace-chunk-hash-size 256 --dataset-name timed_trace
vllm bench serve --model m --timed-trace-sec-multiplier 0.001 --dataset-name timed_trace
vllm bench serve --model m --bfcl-categories simple
vllm bench serve --model m --custom-ensure-client-side-data
