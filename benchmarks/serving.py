"""One row over HTTP: latency and rate of docs/serving.py on loopback, beside `predict_set` in process.

    python benchmarks/serving.py [--labels 1000] [--requests 2000] [--clients 4] [--seconds 20]

The server is a process of its own (uvicorn), each client a thread with a connection that is kept. It ends after so many
requests or seconds, whichever comes first. Needs the extra `studio`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from scale import rows, spec

ROOT = Path(__file__).parents[1]


def in_process(predictor: object, P: np.ndarray, many: int) -> list[float]:
    """Seconds of `predict_set` and what is answered of one row, again and again."""
    times = []
    for i in range(many):
        began = time.perf_counter()
        sets = predictor.predict_set(P[i % len(P)][None, :])  # type: ignore[attr-defined]  # a SetPredictor
        _ = sets.labels, sets.costs
        times.append(time.perf_counter() - began)
    return times


def asked(port: int, bodies: list[bytes], until: float, times: list[float]) -> None:
    """What a client does: one request after the other, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for body in bodies:
        if time.perf_counter() > until:
            break
        began = time.perf_counter()
        connection.request("POST", "/sets", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        times.append(time.perf_counter() - began)
        assert answer.status == 200, content
    connection.close()


def started(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until it answers."""
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit("the server ended by itself")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not answer")


def told(name: str, times: list[float], took: float | None = None) -> None:
    ordered = sorted(times)
    rate = "" if took is None else f", {len(times) / took:,.0f} requests/s"
    print(
        f"{name}: median {1e3 * statistics.median(ordered):.2f} ms, 99% below "
        f"{1e3 * ordered[int(0.99 * (len(ordered) - 1))]:.2f} ms, {len(times):,} rows{rate}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--labels", type=int, default=1000)
    options.add_argument("--requests", type=int, default=2000, help="in all, for each number of clients")
    options.add_argument("--clients", type=int, default=4)
    options.add_argument("--seconds", type=float, default=20.0, help="for each number of clients")
    chosen = options.parse_args()
    import udcp_dsl as udcp

    K = chosen.labels
    P = rows(500, K, 0, "sure")
    y = [str(np.random.default_rng(i).choice(K, p=p / p.sum())) for i, p in enumerate(P.astype(np.float64))]
    predictor = udcp.SetPredictor(udcp.loads(spec(K)), "price", alpha=0.1, repair=None).calibrate(P, y)
    in_process(predictor, P, 10)
    print(f"{K} labels, {os.cpu_count()} cores, oracle price")
    told("in process", in_process(predictor, P, min(500, chosen.requests)))
    bodies = [json.dumps({"probs": [p.tolist()]}).encode() for p in P]
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        predictor.save(Path(folder, "predictor.json"))
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "docs"), "serving:app", "--port", str(port)]
        environment = {**os.environ, "PREDICTOR": str(Path(folder, "predictor.json"))}
        server = subprocess.Popen([*command, "--log-level", "warning"], env=environment)
        try:
            started(port, server)
            for clients in sorted({1, chosen.clients}):
                times: list[float] = []
                own = [bodies[i % len(bodies)] for i in range(chosen.requests // clients)]
                began = time.perf_counter()
                work = (port, own, began + chosen.seconds, times)
                threads = [threading.Thread(target=asked, args=work) for _ in range(clients)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                told(f"over HTTP, {clients} client{'s' * (clients > 1)}", times, time.perf_counter() - began)
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
