# sgl-project/sglang, benchmark/blog_v0_2/405b_sglang.sh (08a3bd19): its ten commands.
BENCH="python3 -m sglang.bench_serving --backend sglang --dataset-name random"
for out in 1024 512; do
  for in in 1024 4096; do
    $BENCH --num-prompt 2500 --random-input $in --random-output $out --random-range-ratio 0.5 > sglang/offline
  done
done
python3 -m sglang.bench_serving --backend sglang --dataset-name sharegpt --num-prompt 2500 > sglang/log21
$BENCH --num-prompt 300 --request-rate 1 --random-input 4096 --random-output 1024 --random-range-ratio 0.125 > sglang/log31
$BENCH --num-prompt 600 --request-rate 2 --random-input 4096 --random-output 1024 --random-range-ratio 0.125 > sglang/log32
$BENCH --num-prompt 1200 --request-rate 4 --random-input 4096 --random-output 1024 --random-range-ratio 0.125 > sglang/log33
$BENCH --num-prompt 2400 --request-rate 8 --random-input 4096 --random-output 1024 --random-range-ratio 0.125 > sglang/log34
$BENCH --num-prompt 3200 --request-rate 16 --random-input 4096 --random-output 1024 --random-range-ratio 0.125 > sglang/log35
