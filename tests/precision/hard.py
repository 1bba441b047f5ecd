"""Samples of operations on whole arrays that are harder than those of the conformance suite."""

from __future__ import annotations

import numpy as np

from multigrad_conformance.sample import Sample

WIDE = np.asarray([1e-120, -3e100, 0.3, 2.5e-90, 1.7e110])
ZERO = np.asarray([0.3, 0.0, -2.5e80, 1.7])
FAR = np.asarray([0.3, -1.2, 2.5, 0.7, -0.4])  # from 0 by an offset

PRODUCTS = [Sample("far apart", WIDE), Sample("with a 0", ZERO)]
MOMENTS = [
    Sample("around 1e3", FAR + 1e3),
    Sample("around 1e6", FAR + 1e6),
    Sample("around -1e8", FAR - 1e8),
    Sample("tiny", FAR * 1e-120),
    Sample("huge", FAR * 1e120),
]

SAMPLES: dict[str, list[Sample]] = {
    "prod": PRODUCTS,
    "cumulative_prod": PRODUCTS,
    "var": MOMENTS,
    "std": MOMENTS,
    "mean": [Sample("cancelling", np.asarray([1e20, 1.0, -1e20]))],
    "linalg.vector_norm": [
        Sample("tiny", FAR * 1e-120),
        Sample("huge", FAR * 1e120),
        Sample("far apart", WIDE, ord=1),
        *(Sample(f"huge, ord {ord}", FAR * 1e80, ord=ord) for ord in (3, 2.5, 0.5, -1, np.inf)),
    ],
    "linalg.matrix_norm": [Sample("huge", (FAR[:4] * 1e100).reshape(2, 2))],
    "linalg.solve": [Sample("rows apart", np.asarray([[1e-100, 2e-100], [3.0, -1.0]]), FAR[:2])],
    "linalg.det": [
        Sample("tiny", (FAR[:4] * 1e-100).reshape(2, 2)),
        Sample("huge", (FAR[:4] * 1e100).reshape(2, 2)),
    ],
    "linalg.slogdet": [
        Sample("tiny", (FAR[:4] * 1e-100).reshape(2, 2)),
        Sample("huge", (FAR[:4] * 1e100).reshape(2, 2)),
    ],
    "linalg.inv": [Sample("tiny", (FAR[:4] * 1e-100).reshape(2, 2))],
    "difference_of_squares": [Sample("close", 1.0, 1 + np.asarray([1e-3, -1e-9, 1e-14]))],
    "clip": [Sample("huge", np.asarray([-1e300, 0.5, 1e300]), -1e200, 1e200)],
}
