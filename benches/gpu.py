#!/usr/bin/env python3
"""A real GPU under load, its energy read twice: `cargo build --release && python3 benches/gpu.py`.

sweepline launches a decoder with random weights on the GPU (this file, `serve`: PyTorch, one CUDA graph for each decode
step, up to 64 requests at a time, OpenAI's streaming API, a page in vLLM's names) and measures it at three loads with
`telemetry: { prometheus: on, gpus: … }`, once with each source (NVML and nvidia-smi). Meanwhile, this script reads NVML
itself every 20 ms through NVIDIA's own Python package. For each run, it prints the energy of the window from both
readings, the mean power, the joules per output token, and the reasons. One more run has a second process on the GPU,
which must be detected. The script fails if the energy by counter differs by more than 1 % + 5 J (the resolution of a
reading), if the energy by power differs by more than 5 %, or if the second process is not detected. Needs an NVIDIA GPU
with 24 GiB, PyTorch, aiohttp and nvidia-ml-py.
"""
import asyncio
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.abspath(os.environ.get("SWEEPLINE_BENCH_PROGRAM", "target/release/sweepline"))
LAYERS, WIDTH, HEADS, GROUPS, INNER, WORDS = 32, 4096, 32, 8, 11008, 32000
SLOTS, CONTEXT = 64, 768
PLAN = """
sweepline: 1
name: gpu
endpoints:
  {source}:
    engine: vllm
    telemetry: {{ prometheus: on, gpus: {source}, every: 500ms }}
    launch:
      command: [{python}, {script}, serve, "{{{{ port }}}}"]
      port: auto
    ready: {{ within: 180s }}
models: {{ m: {{ id: decoder }} }}
scenarios: {{ chat: {{ prompt_tokens: 128, output_tokens: 128 }} }}
phases: {{ fill: 2s, stabilize: 1s, measure: {measure}s, drain: 10s }}
sweeps:
  load: {{ matrix: {{ endpoint: {source}, model: m, scenario: chat, batch_size: {batches} }} }}
"""


class Decoder:
    """A transformer with random weights: grouped-query attention over a fixed cache, one graph per decode step."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.manual_seed(1)
        options = dict(device="cuda", dtype=torch.bfloat16)
        head = WIDTH // HEADS

        def matrix(rows, columns):
            return torch.randn(rows, columns, **options) * rows**-0.5

        self.layers = [
            (
                matrix(WIDTH, WIDTH + 2 * GROUPS * head),
                matrix(WIDTH, WIDTH),
                matrix(WIDTH, 2 * INNER),
                matrix(INNER, WIDTH),
            )
            for _ in range(LAYERS)
        ]
        self.embedding = torch.randn(WORDS, WIDTH, **options)
        self.cache = torch.zeros(LAYERS, 2, SLOTS, GROUPS, CONTEXT, head, **options)
        self.token = torch.zeros(SLOTS, dtype=torch.long, device="cuda")
        self.place = torch.zeros(SLOTS, dtype=torch.long, device="cuda")
        self.slots = torch.arange(SLOTS, device="cuda")
        self.columns = torch.arange(CONTEXT, device="cuda")
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(3):
                self.decode()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.decode()
        torch.cuda.synchronize()

    def block(self, index, x, attend):
        functional = self.torch.nn.functional
        inward, outward, up, down = self.layers[index]
        head = WIDTH // HEADS
        mixed = functional.rms_norm(x, (WIDTH,)) @ inward
        query, key, value = mixed.split([WIDTH, GROUPS * head, GROUPS * head], dim=-1)
        x = x + attend(index, query, key, value) @ outward
        gate, inner = (functional.rms_norm(x, (WIDTH,)) @ up).chunk(2, dim=-1)
        return x + (functional.silu(gate) * inner) @ down

    def decode(self):
        """Decodes one token of every slot, in place."""
        head = WIDTH // HEADS
        mask = self.columns[None, :] > self.place[:, None]

        def attend(index, query, key, value):
            keys, values = self.cache[index]
            keys[self.slots, :, self.place] = key.view(SLOTS, GROUPS, head)
            values[self.slots, :, self.place] = value.view(SLOTS, GROUPS, head)
            scores = query.view(SLOTS, GROUPS, HEADS // GROUPS, head) @ keys.transpose(-1, -2) * head**-0.5
            weights = scores.masked_fill(mask[:, None, None, :], float("-inf")).softmax(-1)
            return (weights @ values).reshape(SLOTS, WIDTH)

        x = self.embedding[self.token]
        for index in range(LAYERS):
            x = self.block(index, x, attend)
        self.token.copy_((x @ self.embedding.T).argmax(-1))
        self.place.add_(1).clamp_(max=CONTEXT - 1)

    def prefill(self, slot, length):
        """Reads a prompt of `length` tokens into a slot; its first token is ready when the GPU is done."""
        torch, head = self.torch, WIDTH // HEADS
        words = torch.randint(WORDS, (length,), device="cuda")

        def attend(index, query, key, value):
            keys = key.view(length, GROUPS, head).transpose(0, 1)
            values = value.view(length, GROUPS, head).transpose(0, 1)
            self.cache[index, 0, slot, :, :length] = keys
            self.cache[index, 1, slot, :, :length] = values
            queries = query.view(length, HEADS, head).transpose(0, 1)[None]
            out = torch.nn.functional.scaled_dot_product_attention(
                queries, keys[None], values[None], is_causal=True, enable_gqa=True
            )
            return out[0].transpose(0, 1).reshape(length, WIDTH)

        with torch.no_grad():
            x = self.embedding[words]
            for index in range(LAYERS):
                x = self.block(index, x, attend)
            self.token[slot] = (x[-1] @ self.embedding.T).argmax()
            self.place[slot] = length

    def step(self):
        self.graph.replay()
        self.torch.cuda.synchronize()


class Server:
    """Assigns requests to slots in a separate thread; the asyncio side only writes responses."""

    def __init__(self, loop):
        self.loop, self.waiting, self.running = loop, queue.Queue(), {}
        self.counts = dict(prompt=0, generated=0, done=0)
        self.ready = False
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        decoder = Decoder()
        self.ready = True
        while True:
            while len(self.running) < SLOTS and not (self.waiting.empty() and self.running):
                slot = next(slot for slot in range(SLOTS) if slot not in self.running)
                request = self.waiting.get()
                if not request["gone"]:
                    decoder.prefill(slot, request["prompt"])
                    decoder.torch.cuda.synchronize()
                    self.running[slot] = request
                    self.counts["prompt"] += request["prompt"]
                    self.emit(slot)
            decoder.step()
            for slot in list(self.running):
                self.emit(slot)

    def emit(self, slot):
        request = self.running[slot]
        request["made"] += 1
        self.counts["generated"] += 1
        last = request["made"] >= request["most"]
        if last or request["gone"]:
            del self.running[slot]
            self.counts["done"] += 1
        self.loop.call_soon_threadsafe(request["out"].put_nowait, last)


async def serve(port):
    from aiohttp import web

    server = Server(asyncio.get_running_loop())

    async def chat(http):
        body = await http.json()
        text = "".join(str(message["content"]) for message in body["messages"])
        request = dict(
            prompt=max(1, min(len(text) // 4, CONTEXT - 256)), most=body.get("max_completion_tokens") or body.get("max_tokens") or 16,
            made=0, gone=False, out=asyncio.Queue(),
        )
        request["most"] = min(request["most"], CONTEXT - request["prompt"] - 1)
        server.waiting.put(request)
        usage = dict(prompt_tokens=request["prompt"], completion_tokens=request["most"], total_tokens=request["prompt"] + request["most"])
        if not body.get("stream"):
            while not await request["out"].get():
                pass
            message = dict(role="assistant", content=" w" * request["most"])
            choice = dict(index=0, message=message, finish_reason="length")
            return web.json_response(dict(id="1", object="chat.completion", model="decoder", choices=[choice], usage=usage))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        try:
            last = False
            while not last:
                last = await request["out"].get()
                choice = dict(index=0, delta=dict(content=" w"), finish_reason="length" if last else None)
                await response.write(b"data: " + json.dumps(dict(id="1", object="chat.completion.chunk", model="decoder", choices=[choice])).encode() + b"\n\n")
            await response.write(b"data: " + json.dumps(dict(id="1", object="chat.completion.chunk", model="decoder", choices=[], usage=usage)).encode() + b"\n\ndata: [DONE]\n\n")
        finally:
            request["gone"] = True
        return response

    async def models(_):
        if not server.ready:
            raise web.HTTPServiceUnavailable()
        return web.json_response(dict(object="list", data=[dict(id="decoder", object="model")]))

    async def health(_):
        return web.Response(status=200 if server.ready else 503)

    async def metrics(_):
        rows = [
            ("num_requests_running", "gauge", len(server.running)), ("num_requests_waiting", "gauge", server.waiting.qsize()),
            ("prompt_tokens_total", "counter", server.counts["prompt"]), ("generation_tokens_total", "counter", server.counts["generated"]),
        ]
        page = "".join(f'# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name="decoder"}} {value}\n' for name, kind, value in rows)
        return web.Response(text=page)

    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", chat), web.get("/v1/models", models), web.get("/health", health), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


class Watch(threading.Thread):
    """Reads NVML's energy on the monotonic clock, independently of sweepline."""

    def __init__(self):
        super().__init__(daemon=True)
        import pynvml

        pynvml.nvmlInit()
        self.nvml, self.gpu, self.seen = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0), []

    def run(self):
        while True:
            energy = self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.gpu) / 1e3
            self.seen.append((time.monotonic_ns(), energy))
            time.sleep(0.02)

    def energy(self, start, end):
        """Returns the joules between two times, interpolated linearly between readings at which the counter changed."""
        moved = [self.seen[0]]
        for at, joules in self.seen:
            if joules != moved[-1][1]:
                moved.append((at, joules))

        def at(instant):
            after = next(index for index, (when, _) in enumerate(moved) if when >= instant)
            (t0, e0), (t1, e1) = moved[after - 1], moved[after]
            return e0 + (e1 - e0) * (instant - t0) / (t1 - t0)

        return at(end) - at(start)


def measure(folder, watch, source, batches, seconds):
    plan = os.path.join(folder, f"{source}-{len(batches)}.yaml")
    with open(plan, "w") as file:
        file.write(PLAN.format(source=source, python=sys.executable, script=os.path.abspath(__file__), batches=batches, measure=seconds))
    results = plan.removesuffix(".yaml")
    ran = subprocess.run([PROGRAM, "run", plan, "--results", results], capture_output=True, text=True, timeout=400)
    print(ran.stdout[-1500:], ran.stderr[-1500:], sep="\n")
    time.sleep(0.3)
    runs = []
    for at, _, names in os.walk(os.path.join(results, "runs")):
        if "run.json" not in names:
            continue
        shown = subprocess.run([PROGRAM, "show", os.path.basename(at)[:16], "--results", results, "--format", "json"], capture_output=True, text=True)
        with open(os.path.join(at, "run.json")) as file:
            facts = json.load(file)["facts"]
        start, windows, shown = facts["start_monotonic_ns"], facts["windows"], json.loads(shown.stdout)
        runs.append(dict(
            batch=facts["batch_size"],
            watched=watch.energy(start + windows["measure_start_ns"], start + windows["measure_end_ns"]),
            server={figure["name"]: figure["value"] if figure["value"] is not None else figure["absent"] for figure in shown["server"]},
            reasons=[(reason["name"], reason["text"]) for reason in shown["verdict"]["reasons"]],
            unchecked=shown["verdict"]["not_checked"],
            metrics={name: shown["metrics"].get(name) for name in ("output_throughput_tokens_per_s", "itl_p50_ms", "ttft_p50_ms")},
        ))
    return sorted(runs, key=lambda run: run["batch"])


def main():
    watch = Watch()
    watch.start()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for source, batches, allowed in [("nvml", [1, 16, 64], 0.01), ("nvidia-smi", [16], 0.05)]:
            for run in measure(folder, watch, source, batches, 20):
                told = next((run["server"][name] for name in ("energy_by_counter", "energy_by_power") if name in run["server"]), None)
                print(source, json.dumps(run, indent=1))
                if not isinstance(told, float) or abs(told - run["watched"]) > allowed * run["watched"] + 5:
                    failed.append(f"{source} at {run['batch']}: {told} J, watched {run['watched']:.1f} J")
        other = subprocess.Popen([sys.executable, "-c", "import torch, time; x = torch.zeros(2**28, device='cuda'); print('on', flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
        other.stdout.readline()
        try:
            for run in measure(folder, watch, "nvml", [8], 10):
                print("shared", run["reasons"], run["unchecked"])
                if "gpu_shared" not in [name for name, _ in run["reasons"]]:
                    failed.append("a second process on the GPU was not found")
        finally:
            other.kill()
            other.wait()
    print("failed: " + "; ".join(failed) if failed else "ok")
    sys.exit(bool(failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2])))
    else:
        main()
