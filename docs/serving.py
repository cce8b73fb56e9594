"""A saved predictor behind an HTTP endpoint (Starlette), warm before the first request.

    PREDICTOR=triage.json uvicorn --app-dir docs serving:app
    curl -d '{"probs": [[0.7, 0.2, 0.1]], "ids": ["a"]}' localhost:8000/sets

Needs the extra `studio` (starlette, uvicorn).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import udcp_dsl as udcp

MOST = 1 << 24  # bytes of a request


@asynccontextmanager
async def warm(app: Starlette) -> AsyncIterator[None]:
    """Load the predictor and compile what it needs, for one row and for several, before anything is asked."""
    predictor = udcp.SetPredictor.load(os.environ["PREDICTOR"])
    K, inputs = predictor.loss.K, predictor.loss.inputs.values()
    if predictor.conditional != "group" and not predictor.calibrated.weighted:
        for n in (1, 2):
            least = {x.name: np.full(n if x.width is None else (n, x.width), x.low) for x in inputs}
            how = {"alpha": predictor.alphas[0], "inputs": least or None, "class_names": predictor.loss.labels}
            predictor.predict_set(np.full((n, K), 1 / K), **how)
    app.state.predictor = predictor
    yield


async def sets(request: Request) -> JSONResponse:
    """The sets of the rows in `probs`, whose columns are in the order of `class_names` (by default, as in calibration).

    `inputs`, `ids` and `groups` have one entry per row; `alpha` selects one.
    """
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MOST:
        return refusal(f"send at most {MOST:,} bytes, and say how many", 413)
    try:
        asked = await request.json()
        if not isinstance(asked, dict):
            raise TypeError('send an object, such as {"probs": [[0.7, 0.2, 0.1]]}')
        more = {name: asked[name] for name in ("ids", "inputs", "groups", "alpha", "class_names") if name in asked}
        found = await run_in_threadpool(request.app.state.predictor.predict_set, asked["probs"], **more)
    except KeyError as missing:
        return refusal(f"there is no {missing}")
    except RecursionError:
        return refusal("the request is nested too deeply: probs are a list of rows, each a list of numbers")
    except (ValueError, TypeError) as error:  # of JSON, or of the rows: it names them
        return refusal(str(error))
    ids = range(len(found)) if found.ids is None else found.ids.tolist()
    rows = zip(ids, found.labels, found.costs.tolist(), strict=True)
    return JSONResponse([{"id": i, "labels": labels, "size": len(labels), "cost": cost} for i, labels, cost in rows])


def refusal(why: str, status: int = 422) -> JSONResponse:
    """An answer that says what is wrong; half a character, which a request can contain, is written as `\\ud800`."""
    return JSONResponse({"error": why.encode(errors="backslashreplace").decode()}, status)


app = Starlette(routes=[Route("/sets", sets, methods=["POST"])], lifespan=warm)
