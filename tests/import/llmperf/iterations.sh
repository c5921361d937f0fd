# cwortman-amd/llmperf-benchmark, test.sh (0bed4b6f, August 2025): its facts.
PROJECT="llmperf"
MODEL=${MODEL:-"amd/Llama-3.1-70B-Instruct-FP8-KV"}
ITERATIONS=${ITERATIONS:-"3"}
export OPENAI_API_KEY=secret_abcdefg
export OPENAI_API_BASE="http://localhost:8000/v1/"
for ITERATION in $(seq 1 $ITERATIONS); do
  for CONCURRENCY in 1 2 4 8 16 32 64 128 256 ; do
    for INPUT in 1000; do
      for OUTPUT in 500; do
        python token_benchmark_ray.py --model $MODEL --mean-input-tokens $INPUT --stddev-input-tokens 150 \
          --mean-output-tokens $OUTPUT --stddev-output-tokens 10 --max-num-completed-requests $((10*CONCURRENCY+50)) \
          --timeout 600 --num-concurrent-requests $CONCURRENCY --results-dir results --llm-api "openai" \
          --additional-sampling-params '{}'
      done
    done
  done
done
