"""`x[key] = value`: slices with steps, masks, integer arrays, broadcast values, values made of what
is written.
"""


def slice_from_leaf(xp, x, t):
    y = x * 1
    y[1:4] = t
    return y


def slice_with_step_from_leaf(xp, x, t):
    y = x * 1
    y[1::2] = t * t
    return y


def number_into_slice(xp, x):
    y = x * 1
    y[2:] = 7.0
    return y


def element_from_scalar(xp, x, s):
    y = x * 1
    y[3] = s
    return y


def element_from_element(xp, x):
    y = x * 1
    y[3] = y[0] * y[1]
    return y


def element_with_negative_index(xp, x, s):
    y = x * 1
    y[-2] = s * 2
    return y


def everything(xp, x, y):
    w = x * 1
    w[...] = y
    return w


def everything_of_a_constant(xp, c, x):
    c[:] = x * 2
    return c


def empty_slice(xp, x):
    y = x * 1
    y[3:3] = 5.0
    return y


def row_from_vector(xp, a, t):
    m = a * 1
    m[1, ...] = t
    return m


def column_from_vector(xp, a, u):
    m = a * 1
    m[:, 2] = u
    return m


def rows_from_broadcast_vector(xp, a, t):
    m = a * 1
    m[:, ...] = t
    return m


def block_from_broadcast_scalar(xp, a, s):
    m = a * 1
    m[:, 1:] = s
    return m


def block_from_broadcast_column(xp, a, u):
    m = a * 1
    m[:, 1:] = xp.expand_dims(u, axis=1)
    return m


def value_with_leading_ones(xp, x, t):
    y = x * 1
    y[:3] = t[None]
    return y


def ellipsis_and_index(xp, a, u):
    m = a * 1
    m[..., 0] = u
    return m


def with_new_axis(xp, a, t):
    m = a * 1
    m[None, 0] = t
    return m


def slices_in_both_axes(xp, a, u):
    m = a * 1
    m[1:, ::2] = u
    return m


def value_requires_grad_base_does_not(xp, c, t):
    before = c[:3]
    c[1:4] = t
    return c, before


def twice_the_same_place(xp, x, t):
    y = x * 1
    y[1:4] = t
    y[2:5] = t * 3
    return y


def value_kept_and_used(xp, x, t):
    y = x * 1
    w = t * 2
    y[1:4] = w
    return y, w


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


def from_other_part_scaled(xp, x):
    y = x * 1
    y[::2] = y[1::2] * 2
    return y


def from_view_of_other_base(xp, x, y):
    w = x * 1
    v = (y * 2)[1:4]
    w[:3] = v
    v *= 2
    return w, v


def through_view(xp, x, u):
    y = x * 1
    v = y[1:5]
    v[1:3] = u
    return y, v


def through_transpose(xp, a, u):
    m = a * 1
    v = m.T
    v[1, ...] = u
    return m, v


def through_reshape(xp, x, t):
    y = x * 1
    m = xp.reshape(y, (2, 3))
    m[1, ...] = t
    m[0, 0] = 9.0
    return y, m


def through_reshape_of_row_and_column(xp, x, u):
    y = x * 1
    m = xp.reshape(y, (3, 2))
    m[1:, 0] = u
    return y, m


def mask_number(xp, x):
    y = x * 1
    y[y > 1] = 0.5
    return y


def mask_scalar_leaf(xp, x, s):
    y = x * 1
    y[y > 1] = s
    return y


def mask_from_constant(xp, x, c):
    y = x * 1
    y[c > 0] = 2.0
    return y


def mask_vector_value(xp, x, t):
    y = x * 1
    y[xp.mask(1, 0, 1, 0, 0, 1)] = t * 2
    return y


def mask_one_value(xp, x, t):
    y = x * 1
    y[xp.mask(1, 0, 1, 0, 0, 1)] = t[:1]
    return y


def mask_of_matrix(xp, a, s):
    m = a * 1
    m[m < 1] = s * s
    return m


def mask_of_matrix_vector_value(xp, a, t):
    m = a * 1
    m[xp.mask([1, 0, 1], [0, 1, 0])] = t
    return m


def mask_of_rows(xp, a, t):
    m = a * 1
    m[xp.mask(0, 1)] = t
    return m


def mask_of_columns(xp, a, u):
    m = a * 1
    m[:, xp.mask(1, 0, 1)] = xp.expand_dims(u, axis=1)
    return m


def mask_all_false(xp, x):
    y = x * 1
    y[xp.mask(0, 0, 0, 0, 0, 0)] = 3.0
    return y


def mask_all_true(xp, x, s):
    y = x * 1
    y[y > -10] = s
    return y


def mask_through_view(xp, x):
    y = x * 1
    v = y[1:5]
    v[v > 1] = 0.25
    return y, v


def mask_through_transpose(xp, a, s):
    m = a * 1
    v = m.T
    v[v > 1] = s
    return m, v


def mask_augmented(xp, x):
    y = x * 1
    y[xp.mask(1, 0, 1, 0, 0, 1)] *= 3
    return y


def mask_augmented_by_leaf(xp, x, t):
    y = x * 1
    y[xp.mask(1, 0, 1, 0, 0, 1)] += t
    return y


def mask_of_values_written_since(xp, x):
    y = x * 1
    m = y > 1
    y *= 2
    y[m] = -1.0
    return y


def mask_is_a_copy_when_read(xp, x):
    y = x * 1
    v = y[xp.mask(1, 1, 0, 0, 0, 1)]
    v *= 5
    return y, v


def relu_by_mask(xp, x, c):
    y = x * c
    y[y < 0] = 0.0
    return y * y


def integers_number(xp, x):
    y = x * 1
    y[xp.ints(4, 0)] = 2.0
    return y


def integers_value(xp, x, u):
    y = x * 1
    y[xp.ints(4, 0)] = u
    return y


def integers_negative(xp, x, u):
    y = x * 1
    y[xp.ints(-1, -6)] = u * 2
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


def integers_rows(xp, a, b):
    m = a * 1
    m[xp.ints(1, 0)] = b
    return m


def integers_one_row(xp, a, t):
    m = a * 1
    m[xp.ints(1)] = t
    return m


def integers_columns(xp, a, u):
    m = a * 1
    m[:, xp.ints(2, 0)] = xp.expand_dims(u, axis=1)
    return m


def integers_pairs(xp, a, u):
    m = a * 1
    m[xp.ints(0, 1), xp.ints(2, 1)] = u
    return m


def integer_and_integers(xp, a, u):
    m = a * 1
    m[1, xp.ints(2, 0)] = u
    return m


def slice_and_integers(xp, a, t):
    m = a * 1
    m[1:, xp.ints(2, 0, 1)] = t
    return m


def integers_through_view(xp, x, u):
    y = x * 1
    v = y[::2]
    v[xp.ints(2, 0)] = u
    return y, v


def integers_through_transpose(xp, a, u):
    m = a * 1
    m.T[xp.ints(2)] = u
    return m


def integers_augmented(xp, x, u):
    y = x * 1
    y[xp.ints(4, 1)] *= u
    return y


def integers_swap(xp, x):
    y = x * 1
    y[xp.ints(0, 5)] = y[xp.ints(5, 0)]
    return y


def integers_permute_itself(xp, x):
    y = x * 1
    y[:] = y[xp.ints(3, 1, 0, 5, 4, 2)] * y
    return y


def integers_from_searching(xp, x, s):
    y = x * 1
    y[xp.argsort(y)[:2]] = s
    return y


def take_is_a_copy(xp, x):
    y = x * 1
    v = xp.take(y, xp.ints(0, 2, 4))
    v *= 3
    return y, v


def where_is_a_copy(xp, x, y):
    w = xp.where(x > 1, x, y)
    w *= 2
    return w
