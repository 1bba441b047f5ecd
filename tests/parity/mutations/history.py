"""What the graph keeps and when it notices a write: saved values, versions, CopySlices."""


def result_of_sqrt_written(xp, x):
    y = xp.sqrt(x)
    y *= 2
    return y


def argument_of_abs_written(xp, x):
    y = x * 1
    z = xp.abs(y)
    y.zero_()
    return z


def argument_of_where_written(xp, x):
    y = x * 1
    z = xp.where(y > 1, y, 0.0)
    y += 1
    return z, y


def factor_of_a_constant_written(xp, x, c):
    y = x * 1
    z = y * c
    y += 1
    return z, y


def constant_factor_written(xp, x, c):
    z = x * c
    c += 1
    return z


def constant_divisor_written(xp, x, c):
    z = x / c
    c *= 2
    return z


def factor_written_under_no_grad(xp, x, y):
    v = y * 1
    z = x * v
    with xp.no_grad():
        v *= 2
    return z


def factor_written_through_view(xp, x, y):
    v = y * 1
    z = x * v
    v[1:3].multiply_(2)
    return z


def view_as_factor_base_written(xp, t, x):
    y = x * 1
    z = t * y[:3]
    y[5] = 0.0
    return z


def parameter_step_before_backward(xp, x, y):
    z = xp.sum(x * y)
    with xp.no_grad():
        x -= 0.1
    return z


def parameter_step_after_backward(xp, x, y):
    xp.sum(x * y).backward()
    with xp.no_grad():
        x -= 0.5 * x.grad
    return xp.sum(x * y)


def matmul_operand_written(xp, a, b):
    m = a * 1
    z = xp.matmul(m, b.T)
    m[0, 0] = 1.0
    return z


def matmul_of_constant_operand_written(xp, a, d):
    m = a * 1
    z = xp.matmul(m, d.T)
    m[0, 0] = 1.0
    return z


def matmul_result_written(xp, a, b):
    z = xp.matmul(a, b.T)
    z[0, 0] = 1.0
    z += 1
    return z


def index_array_written(xp, x):
    i = xp.ints(4, 0)
    z = x[i]
    i += 1
    return z


def index_array_of_a_write_written(xp, x, u):
    i = xp.ints(4, 0)
    y = x * 1
    y[i] = u
    i += 1
    return y


def mask_written(xp, x):
    m = xp.mask(1, 0, 1, 0, 0, 1)
    y = x * 1
    y[m] = 0.0
    m[0] = False
    return y


def condition_written(xp, x, y):
    m = x > 1
    z = xp.where(m, x, y)
    m[0] = True
    return z


def write_with_old_value_kept(xp, x):
    y = x * 1
    y *= x
    y.sin_()
    y.exp_()
    return y


def twin_keeps_a_copy_of_the_old_value(xp, x):
    y = x * 1
    y.sin_()
    y.cos_()
    y.square_()
    return y


def versions(xp, x, t):
    y = x * 1
    v = y[1:4]
    log = [y._version, v._version]
    v *= t
    log += [y._version, v._version]
    y[0] = 1.0
    y.zero_()
    y.copy_(x)
    y.sin_()
    log += [y._version, v._version, y.detach()._version, y.data._version, y.clone()._version]
    with xp.no_grad():
        v += 1
    y.detach().multiply_(2)
    log += [y._version, v._version]
    return y, log


def versions_through_data(xp, c):
    c.data.multiply_(2)
    c.data[1:].multiply_(2)
    log = [c._version]
    c += 1
    return c, log


def versions_of_augmented_items(xp, x, t):
    y = x * 1
    y[1:4] += t
    log = [y._version]
    y[0] *= 2
    log += [y._version]
    y[xp.ints(0, 1)] *= 2
    log += [y._version]
    return y, log


def version_of_what_is_only_read(xp, x):
    y = x * 1
    v, w = y[1:3], y + 1
    y.requires_grad_()
    return y, v * w[:2], [y._version, x._version]


def node_names(xp, x, t):
    y = x * 1
    v = y[1:4]
    log = [xp.node(y), xp.node(v)]
    v *= t
    log += [xp.node(y), xp.node(v)]
    y *= 2
    log += [xp.node(y), xp.node(v)]
    return y, v, log


def node_of_written_constant(xp, c, t):
    v = c[4:]
    log = [xp.node(c), c.requires_grad, v.requires_grad, c.is_leaf]
    c[:3] = t
    return c, log + [xp.node(c), c.requires_grad, v.requires_grad, c.is_leaf]


def parents_of_copy_slices(xp, x, t):
    y = x * 1
    before = y.grad_fn
    y[1:4] = t
    parents = [node for node, _ in y.grad_fn.next_functions]
    return y, [len(parents), parents[0] is before, xp.node_name(parents[1])]
