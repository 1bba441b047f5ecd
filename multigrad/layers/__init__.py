"""The array objects besides Tensor that stand for another array: each an Array API object over the
arrays one layer further in.
"""
