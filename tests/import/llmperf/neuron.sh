# aws-neuron/aws-neuron-sdk, the tutorial "benchmark the deployed model endpoints" with data parallelism, benchmark_model.sh: one
# server, a batch of 4 on each of two replicas.
bs=4
dp_degree=2
concurrency=$((bs * dp_degree))
MODEL_PATH="/ubuntu/model_hf/Llama-3.3-70B-Instruct/"
export OPENAI_API_KEY=EMPTY
export OPENAI_API_BASE="http://0.0.0.0:8000/v1"
python /root/llmperf/token_benchmark_ray.py --model ${MODEL_PATH} --mean-input-tokens 7936 --stddev-input-tokens 30 \
  --mean-output-tokens 256 --stddev-output-tokens 30 --num-concurrent-requests ${concurrency} --results-dir "/ubuntu/results/" \
  --timeout 21600 --max-num-completed-requests 1000 --additional-sampling-params '{"temperature": 0.7, "top_k": 50}' --llm-api "openai"
