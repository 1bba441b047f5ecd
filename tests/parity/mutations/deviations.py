"""Programs on which multigrad means something else than PyTorch, on purpose; each says what.

What is expected is multigrad's outcome.
"""


def times_itself(xp, x):
    """Differentiated, where PyTorch finds in the backward pass that its own operand was changed."""
    y = x * 1
    y *= y
    return y


def times_its_other_part(xp, x):
    """As times_itself: in PyTorch the two parts have one version, although they have no element in
    common.
    """
    y = x * 1
    y[:3] *= y[3:]
    return y


def plus_its_own_part(xp, x):
    """Reads the old values, where PyTorch refuses memory that overlaps in part."""
    y = x * 1
    y[1:] += y[:-1]
    return y


def flipped(xp, x):
    """A view, which in PyTorch is a copy."""
    y = x * 1
    v = xp.flip(y)
    v[:2] *= 3
    return y, v


def integers_repeated_value(xp, x, t):
    """The gradient goes to the value that counts, where PyTorch gives it to both."""
    y = x * 1
    y[xp.ints(4, 4, 0)] = t
    return y


def integers_augmented_repeated(xp, x):
    """As integers_repeated_value."""
    y = x * 1
    y[xp.ints(4, 4, 1)] += 1.0
    return y


def integers_assigned_fractions(xp, i, c):
    """A value of a higher kind is refused, where PyTorch casts it."""
    i[1:4] = c[:3]
    return i


def view_made_under_no_grad_is_a_constant(xp, x):
    """It does not require grad; in PyTorch it does, as a leaf of its own."""
    y = x * 1
    with xp.no_grad():
        v = y[1:4]
    return y, v * 2


def broadcast_zeroed(xp, t):
    """Refused where it happens; PyTorch lets zeros pass, and refuses in the backward pass."""
    m = xp.broadcast_to(t * 1, (2, 3))
    m.zero_()
    return m


def older_view_of_a_constant_written(xp, c, x):
    """Written, as in PyTorch if `v.grad_fn` was looked at before, which otherwise takes the view
    for a leaf.
    """
    v = c[:3]
    c *= x
    v *= 2
    return c, v


def negative_step(xp, x, t):
    """A view as any other; PyTorch has no negative steps."""
    y = x * 1
    v = y[::-2]
    v *= t
    return y, v


def views_of_a_base_detached_in_place(xp, x):
    """Once the base was written they are constants, as it is; in PyTorch they keep their
    history.
    """
    y = x * 1
    v = y[1:4]
    y.detach_()
    y += 1
    return v * x[:3], [v.requires_grad]


def hook_on_a_view_before_its_write(xp, x):
    """Called with the gradient of the old value; PyTorch drops it."""
    y = x * 1
    v = y[1:4]
    log = []
    v.register_hook(xp.append(log))
    v *= 3
    return y, log


def result_of_max_written(xp, a):
    """The argument is kept, and not the result."""
    m = xp.max(a, axis=0)
    m *= 2
    return m


def divisor_of_a_number_written(xp, x):
    """Kept, where PyTorch keeps the reciprocal."""
    y = x * 1
    z = 3 / y
    y *= 2
    return z


def floor_division_in_place(xp, x):
    """Ends the history; PyTorch refuses in the backward pass."""
    y = x * 3
    y //= 2
    return y, x * y
