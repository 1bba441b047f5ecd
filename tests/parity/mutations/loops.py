"""Algorithms that write: recurrences over rows and elements, swaps, sweeps, buffers that are
filled.
"""


def cumulative_sum(xp, x):
    y = x * 1
    for i in range(1, 6):
        y[i] += y[i - 1]
    return y


def recurrence_that_keeps_what_is_written(xp, t, b):
    h = b * 1
    h[0, ...] = t
    h[1, ...] = h[0, ...] * h[0, ...]
    h[0, ...] = t * 2
    return h


def buffer_filled_through_views(xp, t, u):
    m = xp.zeros((2, 3), dtype=xp.float64)
    for i in range(2):
        row = m[i, ...]
        row += t
        row *= u[i]
    return m


def rows_swapped_through_clone(xp, a, t):
    m = a * 1
    old = m[0, ...].clone()
    m[0, ...] = m[1, ...]
    m[1, ...] = old
    m[0, ...] *= t
    return m


def rows_swapped_without_clone(xp, a):
    m = a * 1
    old = m[0, ...]
    m[0, ...] = m[1, ...]
    m[1, ...] = old
    return m


def column_eliminated(xp, a):
    m = a * 1
    factor = m[1, 0] / m[0, 0]
    m[1, ...] -= factor * m[0, ...]
    return m


def even_and_odd_sweeps(xp, x):
    y = x * 1
    even, odd = y[::2], y[1::2]
    for _ in range(2):
        even += 0.5 * odd
        odd -= 0.25 * even
    return y


def polynomial_by_horner(xp, x):
    y = xp.zeros_like(x.detach())
    for coefficient in (1.0, -2.0, 0.5, 3.0):
        y *= x
        y += coefficient
    return y


def writes_into_every_view_in_turn(xp, x):
    y = x * 1
    views = [y[i : i + 2] for i in range(5)]
    for i, v in enumerate(views):
        v *= 1 + i
    return (y, *views[::2])


def queue(xp, t, s):
    y = t * 1
    for i in range(2):
        y[:2] = y[1:].clone()
        y[2] = s * (i + 1)
    return y
