"""Algorithms that write: recurrences over rows and elements, swaps, sweeps, buffers that are
filled.
"""


def cumulative_sum(xp, x):
    y = x * 1
    for i in range(1, 6):
        y[i] += y[i - 1]
    return y


def cumulative_product_refused(xp, x):
    y = x * 1
    for i in range(1, 6):
        y[i] = y[i] * y[i - 1]
    return y


def cumulative_product_of_clones(xp, x):
    y = x * 1
    for i in range(1, 6):
        y[i] = y[i].clone() * y[i - 1].clone()
    return y


def recurrence_by_rows(xp, a, t):
    m = a * 1
    m[0, ...] += t
    m[1, ...] += m[0, ...] * 2
    return m


def recurrence_by_rows_twice(xp, a):
    m = a * 1
    for _ in range(2):
        m[1, ...] = m[1, ...] + m[0, ...] * 0.5
        m[0, ...] = m[0, ...] - m[1, ...]
    return m


def recurrence_in_a_buffer(xp, t, b):
    h = xp.zeros_like(b)
    state = t
    for i in range(2):
        state = xp.tanh(state + b[i, ...])
        h[i, ...] = state
    return h


def recurrence_that_reads_the_buffer(xp, t, b):
    h = b * 1
    h[0, ...] = xp.tanh(t)
    h[1, ...] = xp.tanh(h[0, ...].clone() + h[1, ...])
    return h


def recurrence_that_keeps_what_is_written(xp, t, b):
    h = b * 1
    h[0, ...] = t
    h[1, ...] = h[0, ...] * h[0, ...]
    h[0, ...] = t * 2
    return h


def buffer_filled_by_elements(xp, x):
    y = xp.zeros_like(x.detach())
    for i in range(6):
        y[i] = x[5 - i] * x[i]
    return y


def buffer_filled_by_columns(xp, t, u):
    m = xp.zeros((2, 3), dtype=xp.float64)
    for i in range(3):
        m[:, i] = t[i] * u
    return m


def buffer_filled_through_views(xp, t, u):
    m = xp.zeros((2, 3), dtype=xp.float64)
    for i in range(2):
        row = m[i, ...]
        row += t
        row *= u[i]
    return m


def accumulated(xp, x, y):
    total = xp.zeros_like(x.detach())
    for i in range(3):
        total += x * y * (i + 1)
    return total


def accumulated_by_slices(xp, x, t):
    total = xp.zeros_like(x.detach())
    for i in range(4):
        total[i : i + 3] += t * x[i]
    return total


def histogram_of_values(xp, x):
    bins = xp.zeros((3,), dtype=xp.float64)
    for i in range(3):
        bins[i] = xp.sum(xp.where((x >= i) & (x < i + 1), x, 0.0))
    return bins


def rows_swapped_through_clone(xp, a, t):
    m = a * 1
    old = m[0, ...].clone()
    m[0, ...] = m[1, ...]
    m[1, ...] = old
    m[0, ...] *= t
    return m


def rows_swapped_by_integers(xp, a):
    m = a * 1
    m[xp.ints(0, 1)] = m[xp.ints(1, 0)]
    m[0, ...] *= 2
    return m


def rows_swapped_without_clone(xp, a):
    m = a * 1
    old = m[0, ...]
    m[0, ...] = m[1, ...]
    m[1, ...] = old
    return m


def elements_swapped(xp, x):
    y = x * 1
    first = y[0] * 1
    y[0] = y[5]
    y[5] = first
    return y


def elements_sorted_by_swaps(xp, x):
    y = x * 1
    for i in range(5):
        pair = y[i : i + 2].clone()
        y[i], y[i + 1] = xp.min(pair), xp.max(pair)
    return y


def column_eliminated(xp, a):
    m = a * 1
    factor = m[1, 0] / m[0, 0]
    m[1, ...] -= factor * m[0, ...]
    return m


def column_eliminated_by_clones(xp, a):
    m = a.clone()
    factor = m[1, 0].clone() / m[0, 0].clone()
    m[1, ...] -= factor * m[0, ...].clone()
    return m


def rows_divided_by_their_sums(xp, a):
    m = xp.exp(a) + 1
    for i in range(2):
        m[i, ...] /= xp.sum(m[i, ...])
    return m


def rows_divided_by_clones_of_their_sums(xp, a):
    m = xp.exp(a).clone()
    for i in range(2):
        m[i, ...] /= xp.sum(m[i, ...].clone())
    return m


def columns_scaled_one_by_one(xp, a, t):
    m = a * 1
    for i in range(3):
        m[:, i] *= t[i]
    return m


def columns_scaled_through_transpose(xp, a, t):
    m = a * 1
    for i, column in enumerate((m.T[0, ...], m.T[1, ...], m.T[2, ...])):
        column *= t[i]
    return m


def smoothing_sweep(xp, x):
    y = x * 1
    for i in range(1, 5):
        y[i] = 0.25 * y[i - 1] + 0.5 * y[i] + 0.25 * y[i + 1]
    return y


def even_and_odd_sweeps(xp, x):
    y = x * 1
    even, odd = y[::2], y[1::2]
    for _ in range(2):
        even += 0.5 * odd
        odd -= 0.25 * even
    return y


def doubling_of_a_prefix(xp, s):
    y = xp.zeros((6,), dtype=xp.float64)
    y[0] = s
    y[1:2] = y[:1] * 2
    y[2:4] = y[:2] * 3
    y[4:6] = y[2:4] + y[:2]
    return y


def power_iteration_in_place(xp, a, t):
    v = t * 1
    for _ in range(2):
        v = xp.matmul(a.T, xp.matmul(a, v))
        v /= xp.sum(v)
    return v


def polynomial_by_horner(xp, x):
    y = xp.zeros_like(x.detach())
    for coefficient in (1.0, -2.0, 0.5, 3.0):
        y *= x
        y += coefficient
    return y


def polynomial_by_powers(xp, x):
    y, power = x * 0, x * 0 + 1
    for coefficient in (3.0, 0.5, -2.0):
        y += power * coefficient
        power *= x
    return y


def clipped_by_masks(xp, x, s):
    y = x * 2
    y[y > 2] = 2.0
    y[y < 1] = s
    return y * x


def game_on_a_ring(xp, x):
    y = x * 1
    for _ in range(2):
        old = y.clone()
        y[1:] += old[:-1]
        y[0] += old[-1]
    return y


def writes_into_every_view_in_turn(xp, x):
    y = x * 1
    views = [y[i : i + 2] for i in range(5)]
    for i, v in enumerate(views):
        v *= 1 + i
    return (y, *views[::2])


def halving(xp, x):
    v = y = x * 1
    for n in (4, 2, 1):
        v = v[:n]
        v *= 2
    return y, v


def queue(xp, t, s):
    y = t * 1
    for i in range(2):
        y[:2] = y[1:].clone()
        y[2] = s * (i + 1)
    return y
