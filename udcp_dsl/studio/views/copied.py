"""A command and Python code to copy, with the loss, the parameters and the alpha that the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.studio.state import State


def copied(state: State, loss: str, chosen: bool, moved: Mapping[str, float], oracle: str) -> dict[str, str]:
    """`chosen`: whether the loss is not the last of the spec; `moved`: parameters that differ from the spec's."""
    spec, alpha = state.place.name, show_level(state.alpha)
    command = ["udcp", "compare", spec, "--probs", "probs.npy", "--truth", "truth.npy", "--alpha", alpha]
    command += ["--loss", loss] if chosen else []
    for name, value in moved.items():
        command += ["--param", f"{name}={value:g}"]
    params = f", params={dict(moved)!r}" if moved else ""
    other = f", loss={loss!r}" if chosen else ""
    python = f"""import numpy as np

import udcp_dsl as udcp

loss = udcp.load({spec!r}{params}{other})
predictor = udcp.SetPredictor(loss, oracle={oracle!r}, alpha={alpha})
predictor.calibrate(np.load("probs.npy"), np.load("truth.npy"))  # columns in the order of loss.labels
sets = predictor.predict_set(np.load("new_probs.npy"))
"""
    return {"command": shlex.join(command), "python": python}
