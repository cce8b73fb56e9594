"""The penalised log loss of a repair, and its minimum for a given penalty.

With l = log p_w, z = a l + b and p' = softmax(z), minimise over t = log a in [-log 20, log 20] and b

    sum over rows of v_i (log sum exp z_i - z_i(y_i)) + t^2 + c * sum over labels of (exp(b_y) - b_y).

c is a number of pseudo-observations: at the minimum, c (exp(b_y) - 1) = count of y - expected count of y, so that a
label without observations is scaled by about c / (c + its expected count), never to 0. Without c, there are no offsets.
The gradient is exact. Newton steps are computed by conjugate gradients: the Hessian in b is a diagonal minus p'^T v p',
so a product with it costs two passes over p', and no K x K matrix is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MAX_EXPONENT = 20.0
_BOUND = math.log(MAX_EXPONENT)
_MAX_STEPS, _MAX_PRODUCTS, _MAX_HALVINGS = 100, 200, 40
# Stands for log 0: times the smallest exponent, exp still underflows to 0; finite, so that 0 * log 0 is 0.
LOG_ZERO = -1e5
_CG_TOLERANCE = 1e-2  # the share of the squared (preconditioned) gradient norm at which conjugate gradients stop
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Point:
    """The parameters: log a and b."""

    log_exponent: float
    offsets: Floats

    @property
    def exponent(self) -> float:
        return min(max(math.exp(self.log_exponent), 1 / MAX_EXPONENT), MAX_EXPONENT)

    def moved(self, step: Floats, share: float) -> Point:
        log_exponent = min(max(self.log_exponent + share * float(step[0]), -_BOUND), _BOUND)
        return Point(log_exponent, self.offsets + share * step[1:] if len(step) > 1 else self.offsets)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """At a point: p' and the log loss of each row, and the value of the objective."""

    at: Point
    p: Floats
    log_losses: Floats
    value: float


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The objective near a point: its gradient in (log a, b), or in log a without offsets; the product of its Hessian
    with a vector; and the diagonal of the Hessian."""

    gradient: Floats
    product: Callable[[Floats], Floats]
    diagonal: Floats


@dataclass(frozen=True, eq=False)
class PenalizedLogLoss:
    """The objective over some rows: `logs` (n, K) of p_w, true labels, row weights, and the penalties. c=None keeps the
    offsets at 0; prior=False leaves out t^2."""

    logs: Floats
    y: Indices
    weights: Floats
    c: float | None = None
    prior: bool = True

    def evaluate(self, at: Point) -> Evaluated:
        p, log_losses = np.empty_like(self.logs), np.empty(len(self.logs))
        for rows in blocks(*p.shape):
            z = np.multiply(self.logs[rows], at.exponent, out=p[rows])
            if self.c is not None:
                z += at.offsets
            z -= z.max(axis=1, keepdims=True)
            truth = z[np.arange(len(z)), self.y[rows]]
            np.exp(z, out=z)
            sums = z.sum(axis=1, keepdims=True)
            z /= sums
            log_losses[rows] = np.log(sums[:, 0]) - truth
        value = float(self.weights @ log_losses)
        if self.c is not None:
            with np.errstate(over="ignore"):  # too long a step: an infinite value, which is rejected
                value += self.c * float((np.exp(at.offsets) - at.offsets).sum())
        return Evaluated(at, p, log_losses, value + at.log_exponent**2 if self.prior else value)

    def quadratic(self, here: Evaluated) -> Quadratic:
        at, p, a, v = here.at, here.p, here.at.exponent, self.weights
        n, K = p.shape
        mean, square = np.empty(n), np.empty(n)
        expected, cross, squares = np.zeros(K), np.zeros(K), np.zeros(K)
        for rows in blocks(n, K):
            own, logs = p[rows], self.logs[rows]
            weighted = own * logs
            mean[rows] = weighted.sum(axis=1)
            square[rows] = np.einsum("ij,ij->i", weighted, logs)
            if self.c is not None:
                expected += v[rows] @ own
                cross += v[rows] @ weighted - (v[rows] * mean[rows]) @ own
                squares += v[rows] @ np.multiply(own, own, out=weighted)
        slope = a * float(v @ (mean - self.logs[np.arange(n), self.y]))
        # In log a the log loss need not be convex; the term that could make its curvature negative is left out.
        curvature = a * a * float(v @ (square - mean * mean)) + max(slope, 0.0)
        if self.prior:
            slope, curvature = slope + 2 * at.log_exponent, curvature + 2.0
        if self.c is None:
            return Quadratic(np.array([slope]), lambda d: curvature * d, np.array([curvature]))
        prior, cross = self.c * np.exp(at.offsets), a * cross
        gradient = np.append(slope, expected - np.bincount(self.y, weights=v, minlength=K) + prior - self.c)
        scale = expected + prior

        def product(d: Floats) -> Floats:
            offsets = scale * d[1:] - (v * (p @ d[1:])) @ p + d[0] * cross
            return np.append(curvature * d[0] + cross @ d[1:], offsets)

        return Quadratic(gradient, product, np.append(curvature, scale - squares))


def minimum(objective: PenalizedLogLoss, start: Point, tolerance: float) -> Point:
    """The minimum, searched from `start`; `tolerance` bounds the gain of another step, in nats over all rows."""
    here = objective.evaluate(start)
    for _ in range(_MAX_STEPS):
        near = objective.quadratic(here)
        step = _newton_step(near, here.at)
        gain = -float(near.gradient @ step)
        if gain / 2 <= tolerance:
            break
        lower, share = _line_search(objective, here, step, gain)
        if share == 0.0:  # no lower value at this precision
            break
        here = lower
        # After a full step, the next one gains about the square of this gain, or what conjugate gradients left over.
        if share == 1.0 and max(2 * gain * gain, _CG_TOLERANCE * gain) <= tolerance:
            break
    return here.at


def _newton_step(near: Quadratic, at: Point) -> Floats:
    """Approximately minus the inverse Hessian times the gradient; an exponent at its bound never moves beyond it."""
    free = np.ones(len(near.gradient))
    if abs(at.log_exponent) >= _BOUND and near.gradient[0] * at.log_exponent < 0:
        free[0] = 0.0
    residual = -near.gradient * free
    inverse = free / np.maximum(near.diagonal, np.finfo(float).tiny)
    step = np.zeros_like(residual)
    ready = inverse * residual
    direction, norm = ready, float(residual @ ready)
    # The nearer the minimum, the more exact the step, so that convergence is superlinear.
    enough = norm * min(_CG_TOLERANCE, norm)
    for _ in range(_MAX_PRODUCTS):
        if norm <= enough or norm == 0.0:
            break
        image = near.product(direction) * free
        curvature = float(direction @ image)
        if curvature <= 0.0:
            break
        length = norm / curvature
        step = step + length * direction
        residual = residual - length * image
        ready = inverse * residual
        before, norm = norm, float(residual @ ready)
        direction = ready + (norm / before) * direction
    return step


def _line_search(objective: PenalizedLogLoss, here: Evaluated, step: Floats, gain: float) -> tuple[Evaluated, float]:
    """The first of the points at 1, 1/2, 1/4, ... of the step with enough decrease, and this share; 0 if none has."""
    share = 1.0
    for _ in range(_MAX_HALVINGS):
        moved = objective.evaluate(here.at.moved(step, share))
        if moved.value <= here.value - 1e-4 * share * gain:
            return moved, share
        share /= 2
    return here, 0.0


def blocks(n: int, K: int) -> Iterator[slice]:
    """Slices of rows, each small enough for the cache of a core."""
    size = max(1, _BLOCK // max(K, 1))
    return (slice(start, start + size) for start in range(0, n, size))
