# Closed loops over lengths, a secret in the environment.
export OPENAI_API_KEY=sk-proj-verysecret0123456789
vllm serve /models/qwen3-32b --tensor-parallel-size 4 --max-num-seqs 256 --served-model-name qwen3-32b --port 8100 --api-key $OPENAI_API_KEY &
for isl in 128 2048; do
  for c in 1 4 16 64; do
    nohup vllm bench serve --model qwen3-32b --dataset-name random --random-input-len $isl --random-output-len 256 \
      --max-concurrency $c --num-prompts $((c * 10)) --num-warmups 5 --label closed --disable-tqdm --trust-remote-code
  done
done
