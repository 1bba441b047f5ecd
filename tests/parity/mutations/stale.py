"""Views that are older than the last write to their memory, wherever a Tensor can stand: values and
history must be those of now.
"""


def _written(xp, x):
    """A base with a history, written after its view was made."""
    y = x * 1
    v = y[:3]
    y *= x
    return y, v


def _constant(c, x):
    """A constant base, which takes a history after its view was made."""
    v = c[:3]
    c *= x
    return v


def operand_of_operators_of_a_constant(xp, c, x, t):
    v = _constant(c, x)
    return v * t, t - v, -v, v**2, 2 / v


def operand_on_the_right(xp, c, x, k):
    v = _constant(c, x)
    return k * v, xp.add(k, v), xp.matmul(k, v)


def assigned_through_a_mask_of_a_constant(xp, c, x, k):
    v = _constant(c, x)
    k[xp.mask(1, 0, 1)] = v[:2]
    return k


def stacked(xp, c, x, k):
    v = _constant(c, x)
    return xp.stack([k, v]), xp.concat([v, k])


def chosen(xp, c, x, k):
    v = _constant(c, x)
    return xp.where(k > 0, v, k), xp.where(k > 0, k, v)


def condition(xp, i, x):
    m = x > 1
    v = m[:3]
    m[:2] = True
    return xp.where(v, x[:3], 0.0)


def mask_in_a_key(xp, x):
    m = x < 1
    v = m[:3]
    m[1] = True
    y = x[3:] * 1
    y[v] = 7.0
    return y


def integers_in_a_key(xp, i, x, u):
    i[...] = xp.ints(5, 3, 1, 0, 0, 0)
    v = i[:2]
    i += 0
    i[0] = 2
    y = x * 1
    y[v] = u
    return y, xp.take(x, v), x[v]


def reduced(xp, c, x):
    v = _constant(c, x)
    return xp.sum(v), xp.max(v), xp.prod(v), v.sum()


def multiplied_as_matrix(xp, d, b):
    v, w = d.T, d[0, ...]
    d *= b
    return xp.matmul(d, v), xp.matmul(d, w)


def unstacked(xp, d, b):
    v = d.T
    d *= b
    p, q, r = xp.unstack(v)
    return p, q * r


def broadcast(xp, c, x):
    v = _constant(c, x)
    return xp.broadcast_to(v, (2, 3)), xp.broadcast_arrays(v, xp.zeros((2, 3), dtype=xp.float64))[0]


def cast(xp, c, x):
    v = _constant(c, x)
    return xp.astype(v, xp.float32), xp.astype(v, xp.float64)


def cloned(xp, c, x):
    v = _constant(c, x)
    return v.clone(), xp.zeros_like(v) + v


def asked_for_its_flags(xp, c, x):
    v = c[:3]
    before = [v.requires_grad, v.is_leaf]
    c *= x
    return v, [*before, v.requires_grad, v.is_leaf, xp.node(v)]


def older_view_of_a_constant_written(xp, c, x):
    v = _constant(c, x)
    xp.look(v)
    v *= 2
    return c, v


def hooked(xp, c, x):
    v = _constant(c, x)
    log = []
    xp.look(v)
    v.register_hook(xp.append(log))
    return v * 2, log


def hooked_and_changed(xp, x):
    y, v = _written(xp, x)
    xp.look(v)
    v.register_hook(lambda g: g * 10)
    return v * 2, y


def retained(xp, c, x):
    v = _constant(c, x)
    xp.look(v)
    v.retain_grad()
    return v, v * v


def source_of_a_backward_pass(xp, c, x):
    v = _constant(c, x)
    xp.sum(v).backward(retain_graph=True)
    v.backward(xp.ones_like(v.detach()), retain_graph=True)
    return v * 1


def target_of_grad(xp, x):
    y, v = _written(xp, x)
    (g,) = xp.grad(xp.sum(v * v * y[:3]), v, retain_graph=True)
    return v, g * 1


def differentiated_itself(xp, c, x):
    v = _constant(c, x)
    (g,) = xp.grad(v, x, xp.ones_like(v.detach()), retain_graph=True)
    return v, g * 1


def grad_outputs(xp, c, x, t):
    v = _constant(c, x)
    (g,) = xp.grad(t * t, t, v, create_graph=True)
    return g


def several_writes_later(xp, x, t):
    y = x * 1
    v = y[:3]
    y *= 2
    y[1] = 5.0
    y[:3].multiply_(t)
    y += 1
    return v * 2, v, y


def chain_whose_middle_is_gone(xp, x):
    y = x * 1
    w = xp.reshape(y[1:5], (2, 2))[:, 0]
    y *= x
    return w * 2, y


def base_is_gone(xp, x):
    y = x * 1
    v, w = y[:3], y[1:]
    y *= x
    del y
    return v * 2, w


def written_through_two_stale_views(xp, x, t):
    y = x * 1
    v, w = y[:3], y[2:5]
    y *= x
    v *= t
    w += t
    v -= 1
    return y, v, w


def stale_imaginary_part_written(xp, z, w):
    y = z * 1
    v = xp.imag(y)
    y *= w
    v += 1
    return y, v


def stale_broadcast_read(xp, t):
    y = t * 1
    m = xp.broadcast_to(y, (2, 3))
    y *= t
    return m * m, y
