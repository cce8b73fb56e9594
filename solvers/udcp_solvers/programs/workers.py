"""Worker processes that solve instances, each with a solver of its own.

A worker has one instance at a time. If it dies (a solver may crash its process), it is replaced, and its instance is
tried once more, then given up and reported. Workers end with the process that started them, when the pipe to it closes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from udcp_dsl.diagnostics import OracleError
from udcp_solvers.numeric.arrays import Floats
from udcp_solvers.programs.instance import ChainGoal, Outcome, Recipe, given_up


class Task(NamedTuple):
    """Instance `i`: its probabilities, and what is asked of it."""

    i: int
    p: Floats
    goal: ChainGoal


@dataclass(eq=False)
class _Worker:
    process: Any  # of the spawn context; its type differs by platform
    pipe: Connection
    task: Task | None = None
    ready: bool = False


class Workers:
    """At most `max_workers` processes, started when there is work for them, and kept until `close`."""

    def __init__(self, recipe: Recipe, max_workers: int) -> None:
        try:
            pickle.dumps(recipe)
        except Exception as error:  # a third-party solver object may raise anything
            raise OracleError(
                f"oracle 'ilp': solver {recipe.solver!r} cannot be sent to worker processes ({error}): give its name, "
                "or workers=1"
            ) from error
        self._recipe = recipe
        self._max_workers = max_workers
        self._workers: list[_Worker] = []

    def solve(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with its outcome, as they are finished."""
        waiting = deque(tasks)
        crashed: set[int] = set()
        unfinished = len(tasks)
        while len(self._workers) < min(self._max_workers, unfinished):
            self._workers.append(self._start())
        for worker in self._workers:
            if worker.ready:
                _send_next(worker, waiting)
        while unfinished:
            pipes = {worker.pipe: worker for worker in self._workers}
            for pipe in wait(list(pipes)):
                worker = pipes[pipe]  # type: ignore[index]  # the pipes that were given, and nothing else
                task = worker.task
                try:
                    outcome: Outcome | None = worker.pipe.recv()
                except (EOFError, OSError):
                    self._replace(worker)
                    if task is None:
                        continue
                    if task.i not in crashed:
                        crashed.add(task.i)
                        waiting.appendleft(task)
                        continue
                    outcome = given_up(task.p, self._recipe.settings.program)
                else:
                    worker.ready = True
                    _send_next(worker, waiting)
                if task is not None and outcome is not None:
                    unfinished -= 1
                    yield task, outcome

    def _start(self) -> _Worker:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_run_worker, args=(theirs, self._recipe), daemon=True)
        with _interrupts_blocked():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> None:
        _terminate(worker)
        self._workers.remove(worker)
        if not worker.ready:
            raise OracleError(
                "oracle 'ilp': a worker process ended before it began; a script that uses workers must keep its own "
                "work below `if __name__ == '__main__':`"
            )
        self._workers.append(self._start())

    def close(self) -> None:
        """End all workers, even if they are busy."""
        for worker in self._workers:
            _terminate(worker)
        self._workers.clear()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes started in this context never see Ctrl-C, which a terminal sends to all; the parent process handles
    it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send_next(worker: _Worker, waiting: deque[Task]) -> None:
    worker.task = waiting.popleft() if waiting else None
    if worker.task is not None:
        with contextlib.suppress(OSError):  # it has died, which the next read reports
            worker.pipe.send(worker.task[1:])


def _terminate(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.terminate()
    worker.process.join()


def _run_worker(pipe: Connection, recipe: Recipe) -> None:
    """The worker process: reports that it is ready, then solves one instance after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for platforms where it could not be blocked
    instances = recipe.build()
    pipe.send(None)
    with contextlib.suppress(EOFError, OSError):  # the parent process is gone
        while True:
            p, goal = pipe.recv()
            pipe.send(instances.solve(p, goal))
