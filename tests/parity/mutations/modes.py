"""Writes under no_grad, through detach() and .data, to constants, and requires_grad_() before and
after them.
"""


def written_under_no_grad_then_recorded(xp, x):
    y = x * 2
    with xp.no_grad():
        y *= 10
    y *= 3
    return y


def view_made_and_written_under_no_grad(xp, x):
    y = x * 2
    with xp.no_grad():
        v = y[1:4]
        v *= 10
    return y


def leaf_view_updated_under_no_grad(xp, a):
    with xp.no_grad():
        v = a.T
        v[0, ...] += 1
        v.multiply_(2)
    return a * a


def view_of_leaf_updated_under_no_grad(xp, x):
    v = x[1:4]
    with xp.no_grad():
        v *= 2
    return x * x, v


def views_under_no_grad_read(xp, x):
    y = x * 1
    with xp.no_grad():
        v = y[1:4]
    y *= 2
    return y, v * 1


def constant_of_no_grad_takes_history(xp, x):
    with xp.no_grad():
        y = x * 2
    y *= x
    return y


def enable_grad_inside_no_grad(xp, x):
    y = x * 1
    with xp.no_grad():
        y *= 2
        with xp.enable_grad():
            y *= 3
    return y


def detached_from_a_view_after_integers(xp, x, u):
    y = x * 2
    v = y[:4]
    v[xp.ints(2, 0)] = u
    w = v.detach()
    w -= 1
    return y, v, w


def detached_from_a_view_after_a_mask(xp, c):
    v = xp.reshape(c, (2, 3))
    v[xp.mask([1, 0, 1], [0, 1, 0])] = 7.0
    w = v.detach()
    w -= 1
    w[0, 0] = 3.0
    return c, v, w


def detached_then_base_written(xp, x):
    y = x * 2
    v = y.detach()
    y *= 10
    return y, v, x * v


def detached_written_with_a_leaf(xp, x, y):
    w = x * 2
    v = w.detach()
    v *= y
    return w, v


def write_through_detached_result_is_noticed(xp, x):
    y = xp.exp(x)
    y.detach()[0] = 1.0
    return y


def write_through_view_of_detached_is_noticed(xp, x, y):
    v = y * 1
    z = x * v
    v.detach()[1:3].zero_()
    return z


def detached_of_detached_is_noticed(xp, x, y):
    z = x * y
    y.detach().detach().add_(1)
    return z


def write_through_data_is_not_noticed(xp, x, y):
    v = y * 1
    z = x * v
    v.data.multiply_(2)
    return z, v


def write_through_view_of_data_is_not_noticed(xp, x, y):
    v = y * 1
    z = x * v
    v.data[1:3] = 7.0
    return z, v


def leaf_updated_through_data(xp, x):
    x.data -= 0.25
    x.data[0] = 2.0
    return x * x


def data_of_leaf_seen_by_views(xp, x):
    v = x[1:4]
    x.data.multiply_(2)
    return v * v


def clone_of_view(xp, x):
    y = x * 1
    v = y[1:4]
    w = v.clone()
    v *= 2
    w *= 3
    return y, v, w


def detached_in_place_then_written(xp, x, y):
    w = x * 2
    w.detach_()
    w *= y
    return w


def requires_grad_after_writes(xp, c):
    c *= 2
    c[0] = 1.0
    w = c.requires_grad_()
    y = w * w
    xp.sum(y).backward(retain_graph=True)
    return y, w.grad * 1


def requires_grad_of_a_view_of_a_constant(xp, c):
    v = c[1:4]
    v.requires_grad_()
    y = v * v
    xp.sum(y).backward()
    return v.grad * 1, c, [c.requires_grad]


def constant_base_picks_up_requires_grad(xp, c, t):
    v, w = c[:3], c[3:]
    log = [c.requires_grad, v.requires_grad, w.requires_grad]
    v *= t
    return c, v, w, log + [c.requires_grad, v.requires_grad, w.requires_grad]


def constant_view_before_assignment(xp, c, t):
    v = c[2:5]
    c[1:4] = t
    return c, v, v * 2


def constant_detached_stays_constant(xp, c, x):
    v = c.detach()
    c *= x
    return c, v


def leaf_flag_dropped_and_set_again(xp, x):
    x.requires_grad_(False)
    x *= 2
    x.requires_grad_()
    return x * x


def momentum_step_by_hand(xp, x, c):
    velocity = xp.zeros_like(c)
    for _ in range(3):
        x.grad = None
        xp.sum((x - c) * (x - c)).backward()
        with xp.no_grad():
            velocity *= 0.5
            velocity += x.grad
            x.subtract_(velocity * 0.1)
    return x * 1, velocity


def running_mean(xp, x, c):
    y = x * x
    with xp.no_grad():
        c *= 0.75
        c += 0.25 * y
    return y - c, c
