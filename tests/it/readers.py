"""Reads a results folder with other tools. Called by readers.rs with the folder that contains it; every compared figure
is recomputed here from its definition in METRICS alone."""

import csv
import glob
import json
import math
import sys

import duckdb
import pyarrow.dataset
import pyarrow.parquet

folder = sys.argv[1]
runs = {}
for path in glob.glob(f"{folder}/results/runs/*/run.json"):
    with open(path) as file:
        run = json.load(file)
    runs[run["id"]] = run
assert len(runs) == 8, len(runs)


def query(sql):
    return duckdb.sql(sql).fetchall()


def parquet(table):
    return f"read_parquet('{folder}/results/runs/*/{table}.parquet')"


# The query of TELEMETRY; these runs have no telemetry.
assert query(sys.argv[2].replace("results/", f"{folder}/results/")) == []


def same(a, b, what):
    """Equal to 1e-9 of the value; null and empty are the same."""
    a, b = (None if value in ("", None) else float(value) for value in (a, b))
    assert (a is None) == (b is None), (what, a, b)
    assert a is None or math.isclose(a, b, rel_tol=1e-9), (what, a, b)
    return a is not None


# One table for both readers, whatever the axes, with as many rows as each commit lists.
for table in ["requests", "events", "samples"]:
    counts = dict(query(f"select run_id, count(*) from {parquet(table)} group by run_id"))
    assert counts == {id: run["files"][f"{table}.parquet"]["rows"] for id, run in runs.items()}, table
    files = glob.glob(f"{folder}/results/runs/*/{table}.parquet")
    schemas = [pyarrow.parquet.read_schema(file) for file in files]
    assert all(schema.equals(schemas[0]) for schema in schemas), table
    whole = pyarrow.dataset.dataset(files, format="parquet").to_table()
    assert whole.num_rows == sum(counts.values()) and whole.schema.equals(schemas[0]), table

# The labels in every row are those of the commit; the axes are a map that both readers can query.
labels = query(f"select distinct run_id, endpoint, model, scenario, batch_size, qps, axes from {parquet('requests')}")
assert len(labels) == len(runs)
for id, endpoint, model, scenario, batch_size, qps, axes in labels:
    spec, facts = runs[id]["spec"], runs[id]["facts"]
    wanted = (spec["endpoint"]["name"], spec["labels"]["model"], spec["labels"]["scenario"])
    assert (endpoint, model, scenario) == wanted
    assert (batch_size, qps, axes) == (facts["batch_size"], facts["qps"], spec["labels"]["axes"])
by_axis = query(f"""select distinct run_id from {parquet('requests')} where axes['temperature'] = '0.5'""")
assert [runs[id]["spec"]["labels"]["axes"] for (id,) in by_axis] == [{"temperature": "0.5"}]
kinds = {tuple(sorted(dict(axes))) for (*_, axes) in labels}
assert kinds == {(), ("temperature",), ("output_tokens",), ("stream",)}, kinds
column = pyarrow.dataset.dataset(glob.glob(f"{folder}/results/runs/*/requests.parquet")).to_table(["run_id", "axes"])
assert all(dict(row["axes"]) == runs[row["run_id"]]["spec"]["labels"]["axes"] for row in column.to_pylist())

# The gaps between token events belong to their requests.
joined = query(f"""
    select count(*), count(*) filter (len(e.gaps_ns) = greatest(r.events - 1, 0)),
           count(*) filter (e.first_token_ns is not distinct from r.first_token_ns),
           count(*) filter (len(e.gaps_ns) > 0
               and r.first_token_ns + list_sum(e.gaps_ns) is distinct from r.last_token_ns)
    from {parquet('requests')} r join {parquet('events')} e using (run_id, attempt, request)""")[0]
requests = query(f"select count(*) from {parquet('requests')}")[0][0]
assert joined == (requests, requests, requests, 0), joined


def metrics(run):
    """Computes some metrics of a run from its rows."""
    window = run["facts"]["windows"]
    start, end = window["measure_start_ns"], window["measure_end_ns"]
    seconds = (end - start) / 1e9
    stream = run["facts"]["stream"]
    rows = duckdb.sql(f"""
        select r.scheduled_ns, r.sent_ns, r.first_token_ns, r.last_token_ns, r.done_ns, r.outcome, r.output_tokens,
               r.prompt_tokens, e.gaps_ns
        from {parquet('requests')} r join {parquet('events')} e using (run_id, attempt, request)
        where run_id = '{run["id"]}'""").fetchall()
    inside = lambda instant: instant is not None and start <= instant < end
    members = [row for row in rows if inside(row[0])]
    failed = sum(row[5] != "ok" for row in members)
    ttft = sorted((row[2] - row[1]) / 1e6 for row in members if row[5] == "ok") if stream else []
    tokens = []
    sent = answered = prompt = 0
    for scheduled, sent_ns, first, last, done, outcome, output, prompted, gaps in rows:
        sent += inside(sent_ns)
        answered += outcome == "ok" and inside(last if stream else done)
        prompt += prompted if inside(first if stream else done) and prompted is not None else 0
        if stream and first is not None:
            each = 1.0 if output is None else output / (len(gaps) + 1)
            for gap in [0, *gaps]:
                first += gap
                tokens += [each] if inside(first) else []
        elif not stream and inside(done) and output is not None:
            tokens.append(output)
    return {
        "requests": len(members),
        "failed": failed,
        "error_share": failed / len(members),
        "ttft_p50_ms": median(ttft, failed) if stream else None,
        "output_throughput_tokens_per_s": math.fsum(tokens) / seconds,
        "prompt_throughput_tokens_per_s": prompt / seconds,
        "request_throughput_requests_per_s": answered / seconds,
        "achieved_rate_requests_per_s": sent / seconds,
    }


def median(values, failed):
    """Type 7, with failures above all values; null below 6 values and if the rank is among failures."""
    n = len(values) + failed
    if n < 6:
        return None
    rank = (n - 1) / 2
    below, above = math.floor(rank), math.ceil(rank)
    if above >= len(values):
        return None
    return values[below] + (values[above] - values[below]) * (rank - below)


with open(f"{folder}/runs.json") as file:
    exported_json = {run["run_id"]: run for run in json.load(file)}
with open(f"{folder}/runs.csv", newline="") as file:
    header, *lines = csv.reader(file)
exported_csv = {line[header.index("run_id")]: dict(zip(header, line, strict=True)) for line in lines}
stored = duckdb.sql(f"select * from read_parquet('{folder}/results/runs.parquet')")
names = stored.columns
exported_parquet = {row[names.index("run_id")]: dict(zip(names, row, strict=True)) for row in stored.fetchall()}

# One row per run; the columns that identify a run first, a column for each axis, units in names.
named = ["plan", "sweep", "endpoint", "model", "scenario", "batch_size", "qps"]
named += ["output_tokens", "stream", "temperature", "repeat", "run_id", "attempt", "started", "analysis", "verdict"]
assert header[: len(named)] == named, header
assert len(lines) == len(runs) and len(set(header)) == len(header)
for exported in [exported_csv, exported_json, exported_parquet]:
    assert exported.keys() == runs.keys()
for id, run in runs.items():
    row, axes = exported_csv[id], run["spec"]["labels"]["axes"]
    assert (row["plan"], row["endpoint"]) == ("axes", run["spec"]["endpoint"]["name"])
    assert {name: row[name] for name in ["output_tokens", "stream", "temperature"] if row[name]} == axes
    assert (row["qps"] == "") == (run["facts"]["qps"] is None)
    assert (row["ttft_p50_ms"] == "") == (exported_json[id]["ttft_p50_ms"] is None)
    assert row["goodput_share"] == ""

# Figures computed here are the exported ones, in every format.
compared = 0
for id, run in runs.items():
    for name, value in metrics(run).items():
        for exported in [exported_csv, exported_json, exported_parquet]:
            compared += same(value, exported[id][name], (run["spec"]["labels"], name))
    if exported_csv[id]["failed"] == "0" and run["facts"]["stream"]:
        window = run["facts"]["windows"]
        sql = f"""select quantile_cont((first_token_ns - sent_ns) / 1e6, 0.5) from {parquet('requests')}
            where run_id = '{id}' and scheduled_ns >= {window["measure_start_ns"]}
            and scheduled_ns < {window["measure_end_ns"]}"""
        compared += same(query(sql)[0][0], exported_csv[id]["ttft_p50_ms"], (id, "DuckDB's median"))
assert any(row["failed"] != "0" for row in exported_csv.values()), "the faulty endpoint has failures"

# Requests as CSV are the rows, with their metrics.
with open(f"{folder}/requests.csv", newline="") as file:
    lines = list(csv.DictReader(file))
assert len(lines) == requests
rows = {(row[0], str(row[1])): row for row in query(
    f"select run_id, request, sent_ns, first_token_ns, outcome, axes from {parquet('requests')}")}
for line in lines:
    id, _, sent, first, outcome, axes = rows[(line["run_id"], line["request"])]
    assert line["outcome"] == outcome
    assert line["axis_output_tokens"] == axes.get("output_tokens", "")
    ttft = (first - sent) / 1e6 if outcome == "ok" and runs[id]["facts"]["stream"] else None
    same(ttft, line["ttft_ms"], (id, line["request"]))

# The same tables as Parquet have the same rows, with types; the gap of a token event is one of its request's gaps.
for table, key in [("requests", ["run_id", "request"]), ("events", ["run_id", "request", "event"])]:
    text, typed = (duckdb.sql(f"select * from {read}") for read in (
        f"read_csv('{folder}/{table}.csv', header = true, nullstr = '', all_varchar = true)",
        f"read_parquet('{folder}/{table}.parquet')"))
    assert text.columns == typed.columns, table
    by_name = dict(zip(typed.columns, map(str, typed.types)))
    assert by_name["run_id"] == "VARCHAR" and by_name["request"] == "BIGINT", by_name
    lines = [dict(zip(text.columns, line)) for line in text.order(", ".join(f"{name}::varchar" for name in key)).fetchall()]
    cells = [dict(zip(typed.columns, line)) for line in typed.order(", ".join(f"{name}::varchar" for name in key)).fetchall()]
    assert len(lines) == len(cells) > 0, table
    for line, cell in zip(lines, cells):
        for name, value in cell.items():
            kept = line[name]
            if by_name[name] == "DOUBLE":
                same(value, kept, (table, name))
            else:
                text_of = None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
                assert text_of == kept, (table, name, value, kept)
assert by_name["gap_ns"] == "BIGINT"
gaps = query(f"""select count(*), sum(gap_ns), count(*) filter (gap_ns is null), sum((offset_ns + f)::hugeint - at_ns) from
    read_parquet('{folder}/events.parquet') join (select run_id, request, first_token_ns f from {parquet('events')})
    using (run_id, request)""")[0]
stored_gaps = query(f"""select sum(len(gaps_ns) + 1), sum(list_sum(gaps_ns)), count(*), 0 from {parquet('events')}
    where first_token_ns is not null""")[0]
assert gaps == stored_gaps, (gaps, stored_gaps)

print(json.dumps({"runs": len(runs), "figures": compared}))
