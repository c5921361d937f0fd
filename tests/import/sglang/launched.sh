# sgl-project/sglang, docs/developer_guide/bench_serving.md, example 2 and the command of its server (0229689b).
export HF_TOKEN=hf_0123456789abcdefghij
python -m sglang.launch_server --model-path Qwen/Qwen2.5-3B-Instruct &
python3 -m sglang.bench_serving \
    --backend sglang \
    --dataset-name random \
    --num-prompts 3000 \
    --random-input 1024 \
    --random-output 1024 \
    --random-range-ratio 0.5
