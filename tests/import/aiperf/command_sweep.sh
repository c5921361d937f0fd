# Facts of ai-dynamo/aiperf, docs/tutorials/yaml-config.md at 0f55efe2 (its command) and multi-run-confidence.md at 0b63bdb1.
aiperf profile \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --url http://localhost:8000/v1/chat/completions \
  --endpoint-type chat --streaming \
  --synthetic-input-tokens-mean 512 --synthetic-input-tokens-stddev 0 \
  --output-tokens-mean 128 --output-tokens-stddev 0 \
  --concurrency 8,16,32,64 \
  --request-count 500 \
  --warmup-request-count 50 \
  --num-profile-runs 5 \
  --profile-run-cooldown-seconds 10.0 \
  --artifact-dir ./artifacts/my-test
