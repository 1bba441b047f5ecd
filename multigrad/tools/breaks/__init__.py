"""Where a gradient is lost: multigrad.autograd.detect_breaks."""
