"""Operators and twins of every sort; operands that are the array itself; what only looks like a
view.
"""


def every_operator(xp, x, y):
    w = x * 1
    w += y
    w -= 0.5
    w *= 2
    w /= y
    w **= 2
    return w


def power_by_array(xp, x, t):
    w = x[:3] * 1
    w **= t
    return w


def remainder_by_number(xp, x):
    w = x * 5
    w %= 2
    return w


def matmul_operator(xp, a, d):
    m = a * 1
    m @= xp.matmul(d.T, d)  # in PyTorch an array of its own, so its version is not looked at
    return m * 1


def twins_one_after_the_other(xp, x):
    w = x * 1
    w.sqrt_()
    w.log1p_()
    w.tanh_()
    w.negative_()
    w.exp_()
    w.reciprocal_()
    return w


def twins_of_steps(xp, x):
    w = x * 3
    w.floor_()
    return w, x * w


def twin_of_power(xp, x):
    w = x * 1
    w.pow_(3)
    w.abs_()
    return w


def twin_of_atan2(xp, x, y):
    w = x * 1
    w.atan2_(y)
    w.copysign_(y)
    return w


def twins_return_themselves(xp, x, y):
    w = x * 1
    log = [w.sin_() is w, w.zero_() is w, w.copy_(y) is w, w.add_(1) is w, w.requires_grad_() is w]
    v = w
    w += 1
    return w, log + [v is w]


def plus_itself(xp, x):
    y = x * 1
    y += y
    return y


def view_plus_itself(xp, x):
    y = x * 1
    v = y[1:4]
    v += v
    return y, v


def times_clone_of_itself(xp, x):
    y = x * 1
    y *= y.clone()
    return y


def copied_from_itself(xp, x):
    y = x * 1
    y.copy_(y)
    return y


def assigned_itself(xp, x):
    y = x * 1
    y[...] = y
    return y


def copied_from_a_broadcast_leaf(xp, a, t):
    m = a * 1
    m.copy_(t)
    return m


def zeroed_constant(xp, c, x):
    c.zero_()
    c += x
    return c


def scalar_array(xp, s, x):
    y = s * 1
    y *= 3
    y += x[0]
    y[...] = y * 2
    y.square_()
    return y


def scalar_view_by_empty_key(xp, s):
    y = s * 1
    v = y[()]
    v *= 3
    return y, v


def cast_to_the_same_is_a_copy(xp, x):
    y = x * 1
    v = xp.astype(y, xp.float64)
    v *= 2
    return y, v


def empty_array(xp, x):
    y = x[3:3] * 1
    y *= 2
    y[...] = 1.0
    y.zero_()
    return y, x * 1


def times_clone_of_its_other_part(xp, x):
    y = x * 1
    y[:3] *= y[3:].clone()
    return y


def plus_clone_of_its_own_part(xp, x):
    y = x * 1
    y[1:] += y[:-1].clone()
    return y
