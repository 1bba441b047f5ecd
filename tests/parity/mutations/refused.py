"""What must be refused: leaves, their views, one of several views, views of no_grad, memory shown
twice, dtypes, shapes, spoilt values.
"""


def leaf_augmented(xp, x):
    x += 1
    return x


def leaf_copied_into(xp, x, y):
    x.copy_(y)
    return x


def leaf_assigned(xp, x):
    x[0] = 1.0
    return x


def leaf_view_augmented(xp, x):
    v = x[1:3]
    v += 1
    return x


def view_of_constant_made_leaf(xp, c):
    c.requires_grad_()
    v = c[1:3]
    v *= 2
    return c


def constant_view_made_leaf(xp, c):
    v = c[1:3]
    v.requires_grad_()
    v *= 2
    return v


def base_of_a_view_made_leaf(xp, c):
    v = c[1:3]
    v.requires_grad_()
    c *= 2
    return c, v


def one_of_unstack(xp, a):
    m = a * 1
    r, _ = xp.unstack(m)
    r *= 2
    return m


def one_of_unstack_assigned(xp, a, t):
    m = a * 1
    r = xp.unstack(m)[1]
    r[...] = t
    return m


def view_of_one_of_unstack(xp, a):
    m = a * 1
    r, _ = xp.unstack(m)
    v = r[1:]
    v *= 2
    return m


def one_of_unstack_under_no_grad(xp, a):
    m = a * 1
    r, _ = xp.unstack(m)
    with xp.no_grad():
        r *= 2
    return m


def one_of_unstack_of_constant_by_leaf(xp, d, t):
    r, _ = xp.unstack(d)
    r *= t
    return d


def base_of_unstack_read_afterwards(xp, a):
    m = a * 1
    r, q = xp.unstack(m)
    m *= 2
    return m, r, q


def view_of_leaf_made_under_no_grad(xp, x):
    with xp.no_grad():
        v = x[1:3]
    v *= 2
    return x


def view_made_under_no_grad(xp, x):
    y = x * 1
    with xp.no_grad():
        v = y[1:3]
    v *= 2
    return y


def view_of_view_made_under_no_grad(xp, x):
    y = x * 1
    with xp.no_grad():
        v = y[1:5]
    w = v[1:]
    w *= 2
    return y


def view_under_no_grad_of_view(xp, x):
    y = x * 1
    v = y[1:5]
    with xp.no_grad():
        w = v[1:]
    w *= 2
    return y


def view_of_constant_made_under_no_grad_by_leaf(xp, c, u):
    with xp.no_grad():
        v = c[1:3]
    v *= u
    return c, v


def broadcast_written(xp, t):
    m = xp.broadcast_to(t * 1, (2, 3))
    m += 1
    return m


def broadcast_assigned(xp, t):
    m = xp.broadcast_to(t * 1, (2, 3))
    m[...] = 0.0
    return m


def broadcast_constant_written(xp, k):
    m = xp.broadcast_to(k, (2, 3))
    m += 1
    return m


def integers_plus_floats(xp, i, c):
    i += c
    return i


def real_times_imaginary_number(xp, x):
    y = x * 1
    y *= 2j
    return y


def boolean_plus_integers(xp, i):
    m = i > 2
    m += i
    return m


def sine_of_integers(xp, i):
    i.sin_()
    return i


def enlarged(xp, t, d):
    y = t * 1
    y += d
    return y


def shapes_that_do_not_fit(xp, x, t):
    y = x * 1
    y += t
    return y


def assigned_too_long(xp, x, t):
    y = x * 1
    y[1:3] = t
    return y


def assigned_through_integers_too_long(xp, x, t):
    y = x * 1
    y[xp.ints(0, 1)] = t
    return y


def assigned_out_of_bounds(xp, x):
    y = x * 1
    y[6] = 1.0
    return y


def assigned_with_too_many_indices(xp, x):
    y = x * 1
    y[0, 0] = 1.0
    return y


def copied_too_long(xp, x, t):
    y = t * 1
    y.copy_(x)
    return y


def view_detached_in_place(xp, x):
    y = x * 1
    v = y[1:3]
    v.detach_()
    return y, v


def flag_of_result_changed(xp, x):
    y = x * 1
    y.requires_grad = False
    return y


def flag_of_integers(xp, i):
    i += 1
    i.requires_grad_()
    return i


def graph_used_up(xp, x):
    y = x * 1
    y[1:4].square_()
    xp.sum(y).backward()
    return y
