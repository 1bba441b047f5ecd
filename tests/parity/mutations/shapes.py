"""Writes through transposes, reshapes that copy and reshapes that do not, inserted and removed
axes.
"""


def transpose_scaled(xp, a, b):
    m = a * 1
    v = m.T
    v *= b.T
    return m, v


def matrix_transpose(xp, a):
    m = a * 1
    v = m.mT
    v[2, ...] *= 4
    return m, v


def permuted(xp, a, u):
    m = a * 1
    v = xp.permute_dims(m, (1, 0))
    v[1:, ...] += u
    return m, v


def moved_axis(xp, a, u):
    m = a * 1
    v = xp.moveaxis(m, 0, 1)
    v[0, ...] *= u
    return m, v


def reshape_of_transpose_copies(xp, a):
    m = a * 1
    v = xp.reshape(m.T, (6,))
    v *= 3
    return m, v


def reshape_of_double_transpose_is_a_view(xp, a):
    m = a * 1
    v = xp.reshape(m.T.T, (6,))
    v *= 3
    return m, v


def reshape_with_minus_one(xp, a, t):
    m = a * 1
    v = xp.reshape(m, (-1,))
    v[3:] = t
    return m, v


def reshape_with_copy(xp, x):
    y = x * 1
    v = xp.reshape(y, (2, 3), copy=True)
    v *= 2
    return y, v


def expanded_and_squeezed(xp, a):
    m = a * 1
    v = xp.expand_dims(m, axis=0)
    w = xp.squeeze(v, axis=0)
    w[:, 0] *= 7
    v += 1
    return m, v, w
