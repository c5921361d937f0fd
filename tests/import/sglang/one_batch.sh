# sgl-project/sglang, python/sglang/benchmark/one_batch_server.py, usage (0184a62e).
python3 -m sglang.bench_one_batch_server --model meta-llama/Meta-Llama-3.1-8B --batch-size 1 16 64 --input-len 1024 --output-len 8
