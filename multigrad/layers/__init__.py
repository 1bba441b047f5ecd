"""The array objects besides Tensor: each wraps arrays of the next inner level."""
