"""How far one run's numbers are from another's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Errors of a run against a reference, of all values and of each time step: largest, root of mean square, SQNR.

    sqnr_db: signal to quantisation noise in decibels, 10 log10(sum of squares of the reference / sum of squared
        errors); infinite without any error, not a number if the reference is all zero.
    """

    max_error: float
    rms_error: float
    sqnr_db: float
    step_max: NDArray[np.float64]
    step_rms: NDArray[np.float64]
    step_sqnr_db: NDArray[np.float64]


def accuracy(values: NDArray[np.float64], reference: NDArray[np.float64]) -> Accuracy:
    """Measure the errors of values against a reference, both [steps, width].

    >>> errors = accuracy(np.array([[1.0, 0.5]]), np.array([[1.0, 0.6]]))
    >>> round(errors.max_error, 3), round(errors.sqnr_db, 1)
    (0.1, 21.3)
    """
    errors = values - reference
    signal, noise = np.square(reference), np.square(errors)
    return Accuracy(
        float(np.abs(errors).max(initial=0)),
        float(np.sqrt(noise.mean())),
        float(_decibels(signal.sum(), noise.sum())),
        np.abs(errors).max(axis=1, initial=0),
        np.sqrt(noise.mean(axis=1)),
        _decibels(signal.sum(axis=1), noise.sum(axis=1)),
    )


def _decibels(signal: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = 10 * np.log10(np.divide(signal, noise))
    return ratio
