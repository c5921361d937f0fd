"""Hands the runs of `sweepline export PLAN --format json -o FILE` to Weights & Biases: python to_wandb.py FILE

The id is that of the run and its attempt, so that a second call replaces what the first one wrote.
"""

import json
import sys

from to_mlflow import split


def main(path):
    import wandb

    for row in json.load(open(path)):
        params, metrics = split(row)
        name = f"{row['sweep']} {row['endpoint']} {row['scenario']} {row['run_id'][:8]}"
        key = f"{row['sweep']}-{row['run_id'][:16]}-{row['attempt']}"
        with wandb.init(project=row["plan"], id=key, name=name, config=params, resume="allow") as run:
            run.summary.update(metrics)


if __name__ == "__main__":
    main(sys.argv[1])
