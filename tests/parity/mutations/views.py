"""Writes through slices, rows, elements, views of views; what the base and the other views show
then.
"""


def element_as_view(xp, x):
    y = x * 1
    v = y[2]
    v *= 3
    v.sin_()
    return y, v


def three_levels(xp, a):
    m = a * 1
    v = m.T
    w = v[1:, ...]
    e = w[0, ...]
    e *= 10
    return m, v, w, e


def view_before_between_and_after(xp, x, y):
    b = x * 1
    v1 = b[:3]
    b *= 2
    v2 = b[1:4]
    v2 += 1
    v3 = b[3:]
    b *= y
    return v1 * 1, v2 * 1, v3 * 1


def overlapping_siblings(xp, x):
    y = x * 1
    v, w = y[:4], y[2:]
    v *= 2
    w *= 3
    v += 1
    return y, v, w


def used_before_and_after(xp, x):
    y = x * 1
    v = y[1:4]
    before = xp.sum(v) * 2
    v *= 10
    return before, xp.sum(v), y


def copied_broadcast_into(xp, a, t):
    m = a * 1
    m.T.copy_(m.T * 2)
    m[:, ...].copy_(t)
    return m


def twin_through_view(xp, x):
    y = x * 1
    y[1:3].sin_()
    y[2:4].exp_()
    y[3:5].square_()
    y[4:].tanh_()
    return y


def constant_base_with_older_view(xp, c, t):
    v, w = c[:2], c[3:]
    w *= t
    return c, v, w


def base_gone_siblings_live(xp, x):
    y = x * 2
    v, w = y[:4], y[2:]
    del y
    v *= 3
    return v, w


def broadcast_of_view_read_after(xp, t):
    y = t * 1
    m = xp.broadcast_to(y, (2, 3))
    y *= 2
    return m, y


def broadcast_row_written(xp, t):
    y = t * 1
    m = xp.broadcast_to(y, (2, 3))
    m[0, ...] *= 4
    return y, m
