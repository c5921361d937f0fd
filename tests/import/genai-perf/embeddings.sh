# Facts of triton-inference-server/perf_analyzer, genai-perf/docs/embeddings.md, rankings.md and goodput.md at 263c5f6e.
genai-perf profile \
    -m intfloat/e5-mistral-7b-instruct \
    --endpoint-type embeddings \
    --batch-size-text 2 \
    --measurement-interval 1000
genai-perf profile \
    -m BAAI/bge-reranker-base \
    --endpoint-type rankings \
    --endpoint v1/rerank \
    --input-file synthetic:queries,passages \
    -u localhost:8080 \
    --synthetic-input-tokens-mean 100 \
    --batch-size-text 2
