# Facts of triton-inference-server/perf_analyzer, genai-perf/docs/analyze.md at 263c5f6e: a range, a range with a step, a list.
genai-perf analyze -m gpt2 --sweep-type concurrency --sweep-range 1:256
genai-perf analyze -m gpt2 --sweep-type request_rate --sweep-range 100:500:50
genai-perf analyze -m gpt2 --sweep-type input_sequence_length --sweep-list 100,150,200,400
