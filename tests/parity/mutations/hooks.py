"""Hooks, retained gradients and backward passes before, between and after writes."""


def hook_before_and_after(xp, x):
    y = x * 1
    log = []
    y.register_hook(xp.append(log))
    y *= 3
    y.register_hook(xp.append(log))
    return y, log


def hook_on_base_then_write_through_view(xp, x):
    y = x * 1
    log = []
    y.register_hook(xp.append(log))
    v = y[1:4]
    v *= 3
    y.register_hook(xp.append(log))
    return y, log


def hook_on_view_after_its_write(xp, x):
    y = x * 1
    v = y[1:4]
    v *= 3
    log = []
    v.register_hook(xp.append(log))
    return y, v, log


def hook_of_base_changes_the_gradient(xp, x, t):
    y = x * 1
    y.register_hook(lambda g: g * 10)
    y[1:4].multiply_(t)
    y.register_hook(lambda g: g + 1)
    return y


def hook_of_leaf_counts_once(xp, x):
    log = []
    x.register_hook(xp.append(log))
    y = x * 1
    y[1:4] = x[2:5] * x[:3]
    return y, log


def retained_gradient_follows(xp, x):
    y = x * 1
    y.retain_grad()
    y *= 3
    return y, y * y


def retained_gradient_of_base_follows_a_write_through_view(xp, x):
    y = x * 1
    y.retain_grad()
    v = y[1:4]
    v *= 3
    return y * y


def retained_after_the_write(xp, x):
    y = x * 1
    v = y[1:4]
    v *= 3
    y.retain_grad()
    v.retain_grad()
    return y * y, v * 2, y, v


def backward_between_writes(xp, x):
    y = x * 1
    y[1:3].multiply_(2)
    xp.sum(y).backward(retain_graph=True)
    y[2:4].multiply_(3)
    return y


def backward_twice_through_writes(xp, x):
    y = x * 1
    y[1:3] = 2.0
    xp.sum(y).backward()
    xp.sum(y).backward()
    return y


def gradient_of_view_and_base(xp, x):
    y = x * 1
    v = y[1:4]
    v *= 2
    g, h = xp.grad(xp.sum(y * y), [y, x], retain_graph=True)
    return y, g * 1, h * 1


def gradient_written(xp, x, y):
    (g,) = xp.grad(xp.sum(x * x * y), x, create_graph=True)
    g[1:3] = 0.0
    g *= y
    return g


def grad_attribute_scaled(xp, x):
    xp.sum(x * x).backward()
    x.grad[:3] *= 10
    return x * 2
