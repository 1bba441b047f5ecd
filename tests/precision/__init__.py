"""How exact the derivative rules are: each against the same derivative in 60 digits and more.

    make test-precision                     # the sweep: prints the table, writes it to
                                            docs/precision.md, fails on a bug
    cd tests && python -m precision tanh    # some operations only

The reference knows nothing of the rules. It is the central difference of the *function*, in mpmath,
at the float64 arguments taken as exact, with steps so small and so many digits that two of them
agree to 30 digits (differences.py). The function is mpmath's for the elementwise operations
(scalars.py, special.py), and for those of whole arrays that of mparray, an Array API namespace over
mpmath, or, where mparray has none or a wrong one, its definition written out (arrays.py, linalg.py,
fourier.py).

**Measure.** The error in units of float64 epsilon, 2**-52, relative to the true derivative *at the
exact arguments*: for an elementwise operation at each point, for others the norm of the error of a
gradient over the norm of the gradient. It is the strict measure: that the derivative itself may be
sensitive to a rounding of its argument excuses nothing. Nothing is asked where the value or the
derivative leaves the range of normal numbers, but that the rule overflows or vanishes, too.

**Verdict.** More than 1000 epsilon is a bug, unless exceptions.py states the operation, by how
much, and why. An exception that is no longer needed fails, too.
"""
