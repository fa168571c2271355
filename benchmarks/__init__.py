"""Races of olx against its peers; `python -m benchmarks --help`.

A stream is one sequence of steps, so helper threads are switched off in libraries that would start
some, before any of them is loaded. XLA and Vowpal Wabbit have threads of their own; the report says
how many cores every contestant kept busy.
"""

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
for _name in THREADS:
    os.environ.setdefault(_name, "1")
