"""Break detection: the lines on which a gradient is lost. Public as autograd.detect_breaks."""
