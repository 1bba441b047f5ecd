"""What the conformance suite tries these operations on: a generator of samples for each, a family of functions a module.

Arrays away from the poles. The suite does the rest: from each it makes arrays of float32, without elements, without
axes and not contiguous, and compares values, gradients and second derivatives with NumPy and with finite differences.
"""
