"""Writes through slices, rows, elements, views of views; what the base and the other views show
then.
"""


def slice_scaled(xp, x):
    y = x * 1
    v = y[1:4]
    v *= 10
    return y, v


def slice_added_to(xp, x, t):
    y = x * 2
    v = y[2:5]
    v += t
    return y, v


def slice_multiplied_by_leaf(xp, x, t):
    y = x * 2
    v = y[2:5]
    v *= t
    return y, v, y * y


def slice_with_step(xp, x, t):
    y = x * 1
    v = y[::2]
    v *= t
    return y, v


def slice_with_step_and_offset(xp, x, t):
    y = x * 1
    y[1::2].multiply_(t)
    return y


def slice_with_step_of_slice_with_step(xp, x, u):
    y = x * 1
    v = y[::2]
    w = v[::2]
    w += u
    return y, v, w


def slice_augmented(xp, x, t):
    y = x * 1
    y[1:4] += t
    return y


def slice_augmented_by_itself(xp, x):
    y = x * 1
    y[1:4] *= y[1:4] * 2
    return y


def element_augmented(xp, x, s):
    y = x * 1
    y[0] *= 2
    y[-1] -= s
    return y


def element_as_view(xp, x):
    y = x * 1
    v = y[2]
    v *= 3
    v.sin_()
    return y, v


def element_of_row(xp, a):
    m = a * 1
    r = m[1, ...]
    e = r[2]
    e *= 5
    return m, r, e


def row_augmented(xp, a, t):
    m = a * 1
    m[1, ...] *= t
    return m


def column_augmented(xp, a, u):
    m = a * 1
    m[:, 1] -= u
    return m


def row_seen_by_column(xp, a, t):
    m = a * 1
    row, column = m[1, ...], m[:, 2]
    row *= t
    return m, row, column


def column_written_then_row(xp, a, u, t):
    m = a * 1
    row, column = m[0, ...], m[:, 1]
    column *= u
    row += t
    return m, row, column


def row_without_ellipsis(xp, a, t):
    m = a * 1
    m[0] *= t
    v = m[1]
    v += m[0].clone()
    return m, v


def everything(xp, a):
    m = a * 1
    v, w = m[...], m[:, :]
    v *= 2
    w += 1
    return m, v, w


def empty_key(xp, a):
    m = a * 1
    v, w = m[...], m[()]
    v *= 2
    w += 1
    return m, v, w


def ellipsis_with_index(xp, a, u):
    m = a * 1
    v = m[..., -1]
    v *= u
    return m, v


def three_levels(xp, a):
    m = a * 1
    v = m.T
    w = v[1:, ...]
    e = w[0, ...]
    e *= 10
    return m, v, w, e


def four_levels_written_at_each(xp, x):
    y = x * 1
    v = y[1:]
    m = v[:4]
    w = m[::2]
    e = w[1]
    e *= 2
    w += 1
    m *= 3
    v -= 0.5
    y *= 2
    return y, v, m, w, e


def base_written_after_views(xp, x, y):
    b = x * 1
    v = b[1:4]
    w = v[::2]
    b *= y
    return b, v, w


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


def disjoint_siblings(xp, x, t):
    y = x * 1
    v, w = y[:3], y[3:]
    v *= t
    w += v
    return y, v, w


def sibling_reads_what_was_written(xp, x):
    y = x * 1
    v, w = y[:3], y[::2]
    v *= 10
    return w * w, v


def used_before_and_after(xp, x):
    y = x * 1
    v = y[1:4]
    before = xp.sum(v) * 2
    v *= 10
    return before, xp.sum(v), y


def base_used_before_the_write(xp, x):
    y = x * 1
    before = y + 1
    y[2:5].multiply_(3)
    return before, y


def written_twice(xp, x, t):
    y = x * 1
    v = y[1:4]
    v *= t
    v *= t
    return y, v


def alternately(xp, x, t):
    y = x * 1
    v = y[1:4]
    v *= t
    y += 1
    v -= 2
    y *= 3
    return y, v


def overwritten_altogether(xp, x, t):
    y = x * 1
    v = y[:3]
    v[...] = t
    return y, v


def zeroed(xp, x):
    y = x * 1
    v = y[1:4]
    v.zero_()
    return y, v


def zeroed_column(xp, a):
    m = a * 1
    m[:, 0].zero_()
    return m


def copied_into(xp, x, t):
    y = x * 1
    v = y[::2]
    v.copy_(t)
    return y, v


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


def twin_through_transpose(xp, a):
    m = a * 1
    m.T.sqrt_()
    m.mT[0, ...].negative_()
    return m


def constant_base_written_through_view(xp, c, t):
    v = c[1:4]
    v += t
    return c, v


def constant_base_with_older_view(xp, c, t):
    v, w = c[:2], c[3:]
    w *= t
    return c, v, w


def constant_base_and_constant_value(xp, c):
    v = c[1:4]
    v *= 2
    return c, v


def view_of_result_without_name(xp, x, t):
    v = (x * 2)[1:4]
    v *= t
    return v


def base_gone_siblings_live(xp, x):
    y = x * 2
    v, w = y[:4], y[2:]
    del y
    v *= 3
    return v, w


def row_of_stack(xp, t):
    m = xp.stack([t, t * 2])
    m[0, ...] *= 3
    return m


def part_of_concat(xp, t):
    y = xp.concat([t, t * 2])
    y[:3].multiply_(t)
    return y


def broadcast_of_view_read_after(xp, t):
    y = t * 1
    m = xp.broadcast_to(y, (2, 3))
    y *= 2
    return m, y


def row_of_broadcast_read_after(xp, t):
    y = t * 1
    r = xp.broadcast_to(y, (2, 3))[1, ...]
    y[0] = 5.0
    return r, y


def broadcast_row_written(xp, t):
    y = t * 1
    m = xp.broadcast_to(y, (2, 3))
    m[0, ...] *= 4
    return y, m


def matmul_of_written_rows(xp, a, u):
    m = a * 1
    m[:, 0] *= u
    m[1, ...] += 1
    return xp.matmul(m, m.T)
