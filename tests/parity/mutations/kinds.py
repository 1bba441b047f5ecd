"""dtypes, complex numbers and broadcasting."""


def single_plus_double(xp, f, x):
    y = f * 1
    y += x
    return y


def double_times_single(xp, x, f):
    y = x * 1
    y *= f
    return y


def single_slice_assigned_double(xp, f, t):
    y = f * 1
    y[1:4] = t
    return y


def double_assigned_integers(xp, x, i):
    y = x * 1
    y[::2] = i[::2]
    return y


def integers_copied_from_doubles(xp, i, c):
    i.copy_(c)
    return i


def integers_arithmetic(xp, i, j):
    i += j
    i *= 2
    i //= 3
    i %= 5
    i[1:] -= j[1:]
    return i


def integers_bitwise(xp, i, j):
    i &= 7
    i |= j
    i ^= 1
    i <<= 2
    i >>= 1
    return i


def booleans_bitwise(xp, x):
    m = x > 1
    m |= x < 0.5
    m ^= x > 1.75
    m[1:3] = True
    return m


def complex_assigned_real(xp, z, t):
    y = z * 1
    y[1:4] = t
    return y


def complex_constant_times_leaf(xp, w, x):
    w *= x
    return w


def both_parts_written(xp, z):
    y = z * 1
    re, im = xp.real(y), xp.imag(y)
    re *= 2
    im[1:] *= 3
    re += im
    return y, re, im


def part_of_slice_written(xp, z, t):
    y = z * 1
    v = xp.real(y[1:4])
    v[...] = t
    return y


def parts_after_write_to_base(xp, z, w):
    y = z * 1
    re, im = xp.real(y), xp.imag(y)
    y *= w
    return re, im


def complex_twins(xp, z):
    y = z * 1
    y.exp_().square_()
    y[1:3].sin_()
    return y


def broadcast_through_transpose(xp, a, u):
    m = a * 1
    v = m.T
    v += u
    return m
