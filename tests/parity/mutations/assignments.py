"""`x[key] = value`: slices with steps, masks, integer arrays, broadcast values, values made of what
is written.
"""


def element_from_element(xp, x):
    y = x * 1
    y[3] = y[0] * y[1]
    return y


def empty_slice(xp, x):
    y = x * 1
    y[3:3] = 5.0
    return y


def block_from_broadcast_column(xp, a, u):
    m = a * 1
    m[:, 1:] = xp.expand_dims(u, axis=1)
    return m


def value_with_leading_ones(xp, x, t):
    y = x * 1
    y[:3] = xp.expand_dims(t, axis=0)
    return y


def value_requires_grad_base_does_not(xp, c, t):
    before = c[:3]
    c[1:4] = t
    return c, before


def twice_the_same_place(xp, x, t):
    y = x * 1
    y[1:4] = t
    y[2:5] = t * 3
    return y


def value_written_afterwards(xp, x, t):
    y = x * 1
    w = t * 2
    y[1:4] = w
    w *= 10
    return y, w


def from_other_part(xp, x):
    y = x * 1
    y[:3] = y[3:]
    return y


def mask_scalar_leaf(xp, x, s):
    y = x * 1
    y[y > 1] = s
    return y


def mask_one_value(xp, x, t):
    y = x * 1
    y[xp.mask(1, 0, 1, 0, 0, 1)] = t[:1]
    return y


def mask_all_false(xp, x):
    y = x * 1
    y[xp.mask(0, 0, 0, 0, 0, 0)] = 3.0
    return y


def mask_of_values_written_since(xp, x):
    y = x * 1
    m = y > 1
    y *= 2
    y[m] = -1.0
    return y


def integers_repeated_number(xp, x):
    y = x * 1
    y[xp.ints(4, 4, 0)] = 2.0
    return y


def integers_repeated_scalar(xp, x, c):
    y = x * 1
    y[xp.ints(4, 4, 0)] = c[0]
    return y


def integers_repeated_read(xp, x):
    y = x * 1
    v = y[xp.ints(4, 4, 0)]
    v *= 5
    return y, v


def integers_matrix_of_indices(xp, x, a):
    y = x * 1
    y[xp.ints([5, 3, 1], [0, 2, 4])] = a
    return y


def integer_and_integers(xp, a, u):
    m = a * 1
    m[1, xp.ints(2, 0)] = u
    return m


def integers_through_view(xp, x, u):
    y = x * 1
    v = y[::2]
    v[xp.ints(2, 0)] = u
    return y, v


def integers_permute_itself(xp, x):
    y = x * 1
    y[:] = y[xp.ints(3, 1, 0, 5, 4, 2)] * y
    return y


def integers_from_searching(xp, x, s):
    y = x * 1
    y[xp.argsort(y)[:2]] = s
    return y
