#!/bin/bash
# aws-neuron/aws-neuron-sdk, libraries/nxd-inference/tutorials/trn2-llama3.3-70b-dp-tutorial.rst (094394bc), benchmark_model.sh as it is
# run there (-t 32 -d 2 -b 4). Its two addresses, http://0.0.0.0:8000/v1;http://0.0.0.0:8001/v1, take a patch of llmperf, and import refuses
# them: here is the first. Its product is awk's there.
DEFAULT_TP_DEGREE=32
DEFAULT_DP_DEGREE=2
DEFAULT_BS=4
show_help() {
    echo "Usage: $0 [options]"
    echo "  -b bs          Batch size (default: $DEFAULT_BS)"
}
while getopts "t:d:b:h" opt; do
    case $opt in
        t) tp_degree="$OPTARG" ;;
        d) dp_degree="$OPTARG" ;;
        b) bs="$OPTARG" ;;
        h) show_help; exit 0 ;;
        ?) show_help; exit 1 ;;
    esac
done
tp_degree=${tp_degree:-$DEFAULT_TP_DEGREE}
dp_degree=${dp_degree:-$DEFAULT_DP_DEGREE}
bs=${bs:-$DEFAULT_BS}
concurrency=$((bs * dp_degree))
echo "concurrency: $concurrency"
MODEL_PATH="/ubuntu/model_hf/Llama-3.3-70B-Instruct/"
export OPENAI_API_KEY=EMPTY
export OPENAI_API_BASE="http://0.0.0.0:8000/v1"
python /root/llmperf/token_benchmark_ray.py --model ${MODEL_PATH} --mean-input-tokens 7936 --stddev-input-tokens 30 \
  --mean-output-tokens 256 --stddev-output-tokens 30 --num-concurrent-requests ${concurrency} --results-dir "/ubuntu/results/" \
  --timeout 21600 --max-num-completed-requests 1000 --additional-sampling-params '{"temperature": 0.7, "top_k": 50}' --llm-api "openai"
