"""Speed comparisons of olx with other libraries; see `python -m benchmarks --help`.

A stream is sequential, so the helper threads of all libraries are switched off before they are
loaded. XLA and Vowpal Wabbit still start threads; the report shows how many cores were busy.
"""

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
for _name in THREADS:
    os.environ.setdefault(_name, "1")
