"""The measured constants of the engine: at which sizes it plays another way, and in what pieces.

They change the speed, the memory and the order of sums, not what is computed. Code reads them when
it uses them, as `tuning.CHUNK_ROUNDS`, so that tests can make them small and play every way on tiny
games. How a short game is played is remembered: after a change, call `PREPARED.clear()` of
`olx.engine.prepared`. Those in `TRACED` are read while a round is traced, so a compiled program
holds them: then call `olx._cache.clear()`.
"""

CHUNK_BYTES = 1 << 21  # bytes of rows per chunk: a chunk that is copied should stay in the cache
CHUNK_TIMES_READY = 16  # times as many if at most this part of them is copied
CHUNK_ROUNDS = 1 << 16  # rounds per chunk at most
CHUNK_ROUNDS_UNKNOWN = 1024  # rounds per chunk of an iterable; later pieces may be longer
CHUNK_CONFIGURATIONS = 64  # with more of them a chunk has fewer rounds: records may be large
CHUNK_LOSSES = 1 << 20  # losses per chunk, over all configurations
CHUNK_LOSSES_MOST = 1 << 24  # as many at most, so that a chunk has
CHUNK_ROUNDS_ENOUGH = 64  # so many rounds
DIGEST_ROUNDS = 1 << 16  # rounds per update of a digest
DEVICE_BYTES = 1 << 32  # bytes; the memory of a device that does not say how much it has

MAP_BYTES_PLAYED = 1 << 25  # bytes of played rows that are given back at a time
MAP_BYTES_AHEAD = 1 << 24  # bytes that are read before they are needed
LONGER_BYTES = 1 << 28  # bytes; longer rows of more than this are made in pieces
LONGER_PIECE_BYTES = 1 << 24  # bytes per such piece
SPARSE_COPY_BYTES = 1 << 20  # bytes of sparse values; fewer are copied, so that they are one chunk
DENSE_PIECE_BYTES = 1 << 24  # bytes per piece when sparse rows are made dense

KERNEL_WIDTH_MOST = 1 << 22  # from this width on, the plain loop; two cores gained nothing below
REDUCTION_LANES = 32  # in one kernel a vector is filled up to a multiple of this, which is
REDUCTION_LEAST = 16  # longer, if it has so many numbers at least, and fewer than
REDUCTION_MOST = 100  # so many for a sum or an extreme,
PRODUCT_MOST = 640  # or so many for an inner product
LAUNCH_CONFIGURATIONS = 1024  # with fewer of them a launch costs more than its work

HOST_ROUNDS = 16  # rounds at most. A compilation takes as long as a thousand calls of so many
HOST_NUMBERS = 1 << 12  # of a state at most; to compute on more takes longer than to call NumPy

ACTION_NUMBERS = 64  # of an action; to copy fewer of them costs less than to wait for the loss
MATRIX_ENTRIES = 1024  # of a state: with as many, configurations are played one after the other

BLOCK_ROUNDS = 32  # rounds per block at most
BLOCK_TERMS = 4  # of a block, which are added in one pass over the configurations
BLOCK_CONFIGURATIONS = 65  # with fewer configurations the loop over rounds is faster

# Of the GPU kernel; chosen on paper, never measured on a device. See `gpu_resources`.
GPU_BLOCK_MOST = 64  # configurations per program
GPU_PROGRAMS = 256  # at least, before a program plays several configurations: two per processor
GPU_WARPS = 4  # of a program; more only if its numbers need
GPU_WARPS_MOST = 16  # which are all registers of a multiprocessor
GPU_NUMBERS_WANTED = 32  # live numbers per thread
GPU_NUMBERS_MOST = 96  # at most, and beside them
GPU_REGISTERS_BESIDE = 32  # for addresses and counters
GPU_DOT_LEAST = 16  # rows and columns of matrices from which Triton's `dot` takes them
GPU_EIGH_MOST = 32  # rows of a matrix whose eigenvectors a kernel computes,
GPU_EIGH_SWEEPS = 8  # by so many passes over all pairs of rows

ROW_BLOCKS = 8  # the first size to which rows are padded, in blocks,
ROW_GROWTH = 8  # and how many times larger the next one is; each size is one more program
ROW_WORTH = 4  # how many times a size the widest row must be for the size to be used
SCALE_LEAST, SCALE_MOST = 1e-3, 1e3  # common factors outside are multiplied into the table
SHIFT_MOST = 16.0  # the largest logarithm of a common shift; a part of the digits of the table
SUM_FALL = 1 / 64  # of the sum, since the last pass; below, errors of larger terms could be seen

SHARES = 8  # more of them cost more than they gain, since each is a call per chunk,
SHARES_CONFIGURATIONS = 2048  # but for those of so many, whose states leave the cache,
SHARES_MOST = 64  # up to so many
SHARES_WORK = 1 << 23  # numbers: about 5 ms; to cut and to join takes about 2 ms
SHARE_BLOCKS = 128  # configurations per share at least; fewer cost more than their part saves:
SHARE_DENSE = 32  # dense rounds,
SHARE_DENSE_ADDS = 64  # if a round only adds a multiple of a vector: half of them take as long,
SHARE_IN_TURN = 1  # one learner after the other,
SHARE_SPARSE = 64  # sparse rows

FINITE_NUMBERS = 1 << 16  # a look at fewer of them costs less than a proof
SUM_BYTES = 64  # Booleans per round; for fewer of them 255 rounds cost less than a call of NumPy
SUM_PARTS = 64  # for fewer of them a Python loop of sums is faster
PREDICT_BYTES = 1 << 24  # bytes of contexts per call
PREDICT_ROWS = 1 << 14  # rows per call

LOCK_SECONDS = 0.1  # between two looks at a folder that another run has locked
SIGN_SECONDS = 2.0  # between two signs of life of a process
LOST_SECONDS = 60.0  # without one, after which a process is lost; JAX itself waits 100
VALUE_BYTES = 1 << 20  # bytes per value in the store of the processes
LOOK_MILLISECONDS = 1000  # of one look for a value

TRACED = frozenset(
    {
        "ACTION_NUMBERS",
        "BLOCK_ROUNDS",
        "BLOCK_TERMS",
        "GPU_BLOCK_MOST",
        "GPU_DOT_LEAST",
        "GPU_EIGH_MOST",
        "GPU_EIGH_SWEEPS",
        "GPU_NUMBERS_MOST",
        "GPU_NUMBERS_WANTED",
        "GPU_PROGRAMS",
        "GPU_REGISTERS_BESIDE",
        "GPU_WARPS",
        "GPU_WARPS_MOST",
        "PRODUCT_MOST",
        "REDUCTION_LANES",
        "REDUCTION_LEAST",
        "REDUCTION_MOST",
        "ROW_BLOCKS",
        "ROW_GROWTH",
        "ROW_WORTH",
        "SCALE_LEAST",
        "SCALE_MOST",
        "SHIFT_MOST",
        "SUM_FALL",
    }
)
