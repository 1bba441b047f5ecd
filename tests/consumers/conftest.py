"""The backends on which libraries written for any array library are tried, and SciPy's switch.

SciPy reads SCIPY_ARRAY_API once, when it is imported, and most of the other tests need it as it
comes. So the tests that need the switch run in processes of their own, which
`test_in_scipys_mode.py` starts; a run that has it set collects them directly.
"""

from __future__ import annotations

import os

SWITCHED = os.environ.get("SCIPY_ARRAY_API", "").lower() in ("1", "true")
collect_ignore_glob = (
    ["test_in_scipys_mode.py"] if SWITCHED else ["test_scipy*.py", "test_calls_sklearn.py"]
)
