# A public script that runs llmperf over two lists (found by its text, which names no repository; November 2026): its facts.
export OPENAI_API_KEY="random"
export OPENAI_API_BASE="http://localhost:46221/v1/chat/completions"
concurrent_requests_list=(1 2 4 8 16 20)
mean_input_tokens_list=(550 1000  3500)
for concurrent_requests in "${concurrent_requests_list[@]}"; do
  for mean_input_tokens in "${mean_input_tokens_list[@]}"; do
    total_requests=$(( 4 * concurrent_requests ))
    python3 token_benchmark_ray.py --model "llama2-7b-chat" --mean-input-tokens $mean_input_tokens --stddev-input-tokens 150 \
      --mean-output-tokens 150 --stddev-output-tokens 10 --max-num-completed-requests $total_requests --timeout 6000 \
      --num-concurrent-requests $concurrent_requests --results-dir "result_outputs" --llm-api openai \
      --additional-sampling-params '{}' > "out_$concurrent_requests" 2>&1
  done
done
