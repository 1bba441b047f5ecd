"""dtypes, complex numbers and broadcasting."""


def single_plus_double(xp, f, x):
    y = f * 1
    y += x
    return y


def single_times_double(xp, f, x):
    y = f * 1
    y *= x
    return y


def single_constant_times_double(xp, g, x):
    g *= x
    return g


def double_times_single(xp, x, f):
    y = x * 1
    y *= f
    return y


def single_slice_assigned_double(xp, f, t):
    y = f * 1
    y[1:4] = t
    return y


def double_slice_assigned_single(xp, x, f):
    y = x * 1
    y[1:4] = f[:3]
    return y


def single_view_times_double(xp, f, t):
    y = f * 1
    v = y[1:4]
    v *= t
    return y, v


def single_copied_from_double(xp, f, x):
    y = f * 1
    y.copy_(x)
    return y


def double_plus_integers(xp, x, i):
    y = x * 1
    y += i
    y[1:] *= i[1:]
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


def complex_slice(xp, z, w):
    y = z * 1
    v = y[1:4]
    v *= w[1:4]
    return y, v


def complex_assigned_real(xp, z, t):
    y = z * 1
    y[1:4] = t
    return y


def complex_plus_real(xp, z, x):
    y = z * 1
    y += x
    return y


def complex_times_imaginary_number(xp, z):
    y = z * 1
    y[1:4] *= 2j
    return y


def complex_constant_times_leaf(xp, w, x):
    w *= x
    return w


def real_part_written(xp, z, x):
    y = z * 1
    r = xp.real(y)
    r *= x
    return y, r


def imaginary_part_written(xp, z, x):
    y = z * 1
    r = xp.imag(y)
    r += x
    return y, r


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


def slice_of_part_zeroed(xp, z):
    y = z * 1
    xp.imag(y)[::2].zero_()
    return y * y


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


def modulus_squared_by_parts(xp, z):
    re, im = xp.real(z) * 1, xp.imag(z) * 1
    re *= re.clone()
    re += im * im
    return re


def broadcast_vector_into_matrix(xp, a, t):
    m = a * 1
    m += t
    m *= t[1:2]
    return m


def broadcast_scalar_array(xp, x, s):
    y = x * 1
    y *= s
    y[1:] -= s
    return y


def broadcast_column(xp, a, u):
    m = a * 1
    m /= xp.expand_dims(u, axis=1)
    return m


def broadcast_row_into_view(xp, a, t):
    m = a * 1
    v = m[:, 1:]
    v *= t[1:]
    return m, v


def broadcast_through_transpose(xp, a, u):
    m = a * 1
    v = m.T
    v += u
    return m
