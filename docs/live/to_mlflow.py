"""Hands the runs of `sweepline export PLAN --format json -o FILE` to MLflow: python to_mlflow.py FILE

The tracking server is the one that MLFLOW_TRACKING_URI names. A run that is there already is left alone.
"""

import json
import sys

NAMES = ("sweep", "endpoint", "model", "scenario", "batch_size", "qps", "repeat", "run_id", "verdict", "reasons")


def split(row):
    """What a run is, and the numbers that were measured; what is null was not measured and is left out."""
    there = {key: value for key, value in row.items() if value is not None}
    params = {key: there[key] for key in NAMES if key in there}
    is_number = lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
    metrics = {key: value for key, value in there.items() if key not in params and is_number(value)}
    return params, metrics


def main(path):
    import mlflow

    for row in json.load(open(path)):
        params, metrics = split(row)
        experiment = mlflow.set_experiment(row["plan"])
        query = f"tags.run_id = '{row['run_id']}' and tags.attempt = '{row['attempt']}' and tags.sweep = '{row['sweep']}'"
        if len(mlflow.search_runs([experiment.experiment_id], query)) > 0:
            continue
        with mlflow.start_run(run_name=f"{row['sweep']} {row['endpoint']} {row['scenario']} {row['run_id'][:8]}"):
            mlflow.set_tags({"run_id": row["run_id"], "attempt": row["attempt"], "sweep": row["sweep"]})
            mlflow.log_params(params)
            mlflow.log_metrics(metrics)


if __name__ == "__main__":
    main(sys.argv[1])
