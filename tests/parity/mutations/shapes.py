"""Writes through transposes, reshapes that copy and reshapes that do not, inserted and removed
axes.
"""


def transpose_row(xp, a, u):
    m = a * 1
    m.T[0, ...] += u
    return m


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


def transposed_twice(xp, a, t):
    m = a * 1
    v = m.T
    w = v.mT
    w[0, ...] *= t
    return m, v, w


def moved_axis(xp, a, u):
    m = a * 1
    v = xp.moveaxis(m, 0, 1)
    v[0, ...] *= u
    return m, v


def reshaped_row(xp, x, t):
    y = x * 1
    m = xp.reshape(y, (2, 3))
    m[0, ...] *= t
    return y, m


def reshaped_row_of_temporary(xp, x):
    y = x * 1
    xp.reshape(y, (2, 3))[0, ...] *= 2
    return y


def reshaped_back_and_forth(xp, x, t):
    y = x * 1
    m = xp.reshape(y, (2, 3))
    v = xp.reshape(m, (6,))
    v[1:4] += t
    return y, m, v


def reshape_of_slice(xp, x, u):
    y = x * 1
    m = xp.reshape(y[::2], (3, 1))
    m += 0.5
    m[1:, 0] *= u
    return y, m


def reshape_of_contiguous_rows(xp, a, t):
    m = a * 1
    v = xp.reshape(m[1:, ...], (3,))
    v *= t
    return m, v


def reshape_of_transpose_copies(xp, a):
    m = a * 1
    v = xp.reshape(m.T, (6,))
    v *= 3
    return m, v


def reshape_of_transpose_to_matrix_copies(xp, a):
    m = a * 1
    v = xp.reshape(m.T, (2, 3))
    v[0, ...] *= 3
    return m, v


def reshape_of_columns_copies(xp, a):
    m = a * 1
    v = xp.reshape(m[:, :2], (4,))
    v += 1
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


def reshape_of_the_same_shape(xp, x):
    y = x * 1
    v = xp.reshape(y, (6,))
    v *= 2
    return y, v


def expanded(xp, x):
    y = x * 1
    v = xp.expand_dims(y, axis=1)
    v *= 2
    return y, v


def expanded_by_none(xp, x, t):
    y = x * 1
    v = y[None]
    v[0, :3] = t
    return y, v


def squeezed(xp, x, t):
    m = xp.reshape(x * 1, (1, 6))
    v = xp.squeeze(m, axis=0)
    v[3:] *= t
    return m, v


def expanded_and_squeezed(xp, a):
    m = a * 1
    v = xp.expand_dims(m, axis=0)
    w = xp.squeeze(v, axis=0)
    w[:, 0] *= 7
    v += 1
    return m, v, w
