"""Views, writes and indices inside vmap, in functions of one example."""

from __future__ import annotations

import numpy as np
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import func

X = np.arange(1.0, 7.0).reshape(2, 3) / 4


class TestViewsInBatches:
    """Overlapping views, written one after the other, in a function of one example."""

    @staticmethod
    def program(y, total):
        tail, column, back = y[1:], y.reshape((3, 1)), y[::-1]
        tail += 10.0
        column[0, 0] = y[2] * 1.0
        tail[0] *= column[0, 0]
        back[0] += 1.0
        return y * total(tail) + back

    def test_values_and_derivatives(self, xp):
        f = lambda s: self.program(s * 1.0, xp.sum)
        expected = np.stack([self.program(row * 1.0, np.sum) for row in X])
        close(func.vmap(f)(raw(xp, X)), expected)
        h = 1e-6
        moved = lambda row, d: (
            (self.program(row + d, np.sum) - self.program(row - d, np.sum)) / (2 * h)
        )
        jacobian = np.stack([np.stack([moved(row, h * e) for e in np.eye(3)], -1) for row in X])
        for mode in (func.jacfwd, func.jacrev):
            np.testing.assert_allclose(
                values(mg.asarray(func.vmap(mode(f))(raw(xp, X)))), jacobian, atol=1e-6
            )


def test_index_of_an_outer_batch_in_an_inner_one(xp):
    """As an index, as a mask of where, as what is written, and as where to write."""

    def f(row):
        k, mask = xp.argmax(xp.sin(row * 3)), row > 0.6

        def g(s):
            y = xp.zeros(3) + s
            y[k] = row[k] * s
            return xp.sum(xp.where(mask, y, row))

        return func.vmap(func.grad(g))(row)

    def expected(row):
        k, mask = int(np.argmax(np.sin(row * 3))), row > 0.6
        slope = np.ones(3)
        slope[k] = row[k]
        return np.full(3, slope[mask].sum())

    close(func.vmap(f)(raw(xp, X)), np.stack([expected(row) for row in X]))
