#!/usr/bin/env python3
"""Checks that one plan gives the same runs in four places: `cargo build && python3 benches/places [PLACE …] [--faults]`.

Places: local, slurm (two nodes), moto (two processes on object storage), kubernetes (Jobs on a real API server, with a
stand-in for its nodes). Each must produce the same run ids as the local run, pass `verify`, and measure no run twice. A
place that is not installed is skipped, with a message about its requirements. --faults also kills nodes, controllers,
pods, servers and workers midway: everything must resume, lose nothing, and measure nothing twice except the interrupted
runs. The check needs root, uses only loopback, and takes a minute, or about ten minutes with --faults.
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kubernetes  # noqa: E402
import moto  # noqa: E402
import slurm  # noqa: E402
from lab import ONLY, PROGRAM, Lab, Missing, fail, say  # noqa: E402


def local(**how):
    lab = Lab(**how)
    lab.run("run", "plan.yaml", codes=(0,))
    lab.whole(lab.ids(), 0)
    return lab.ids()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", metavar="PLACE", help="slurm, moto, kubernetes (default: all)")
    parser.add_argument("--faults", action="store_true", help="also kill processes midway")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME", help="only this fault, by the name of its function")
    parser.add_argument("--moto", metavar="PROGRAM", help="moto_server (default: that in PATH)")
    parser.add_argument("--kube", metavar="FOLDER", help="the folder of kube-apiserver and kube-controller-manager")
    args = parser.parse_args()
    if not os.path.exists(PROGRAM):
        fail(f"{PROGRAM} is missing: cargo build, or SWEEPLINE_BENCH_PROGRAM=PATH")
    ids = local()
    say(f"local: {len(ids)} runs: {' '.join(name[:8] for name in ids)}")
    ONLY.extend(args.fault)
    args.faults |= bool(args.fault)
    more = local(measure="3s", first=(1, 2, 4)) if args.faults else []
    options = {"slurm": (slurm, ()), "moto": (moto, (args.moto,)), "kubernetes": (kubernetes, (args.kube,))}
    failed = 0
    for name in args.places or options:
        place, rest = options[name]
        for part, of in (("plain", ids), ("faults", more))[: 1 + args.faults]:
            if part == "plain" and args.fault:
                continue
            try:
                getattr(place, part)(of, *rest)
            except Missing as missing:
                say(f"{name}: skipped: {missing}")
                break
            except AssertionError as error:
                say(f"{name}: FAILED: {error}")
                failed += 1
    sys.exit(1 if failed else 0)


main()
