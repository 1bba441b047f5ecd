"""What runs, how long it takes, what memory it needs: multigrad.autograd.profiler."""
