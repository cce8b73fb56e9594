"""A predictor as an MLflow model: logged with its file, loaded anywhere, asked for sets.

    python docs/mlflow_model.py triage.json probs.npy

Needs mlflow and pandas. Rows are a table with one column per label; the answer is a table of labels, sizes and costs.
"""

from __future__ import annotations

import sys
from typing import Any

import mlflow
import numpy as np
import pandas as pd

import udcp_dsl as udcp


class PredictionSets(mlflow.pyfunc.PythonModel):  # type: ignore[misc]  # mlflow is not typed
    """Predict sets with the saved predictor that was logged as the artifact `predictor`."""

    def load_context(self, context: Any) -> None:
        self.predictor = udcp.SetPredictor.load(context.artifacts["predictor"])

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        sets = self.predictor.predict_set(model_input)
        return pd.DataFrame({"labels": [list(x) for x in sets.labels], "size": sets.sizes, "cost": sets.costs})


def logged(path: str) -> str:
    """Log a saved predictor as a model of the current run, with what identifies it; gives the model's address."""
    predictor = udcp.SetPredictor.load(path)
    with mlflow.start_run():
        mlflow.log_params({"loss": predictor.loss.name, "labels": predictor.loss.K, "alpha": str(predictor.alphas)})
        info = mlflow.pyfunc.log_model(
            name="sets",
            python_model=PredictionSets(),
            artifacts={"predictor": path},
            pip_requirements=[f"udcp_dsl=={udcp.__version__}", "pandas"],
        )
    return str(info.model_uri)


def main() -> None:
    path, rows = sys.argv[1:]
    model = mlflow.pyfunc.load_model(logged(path))
    labels = list(udcp.SetPredictor.load(path).loss.labels)
    print(model.predict(pd.DataFrame(np.load(rows), columns=labels)))


if __name__ == "__main__":
    main()
