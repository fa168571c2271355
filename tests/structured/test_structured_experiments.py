"""The experiments on words and chunks: their parts, and a short run where the data are."""

import jax.numpy as jnp
import numpy as np
import pytest
from stored import FOLDER, needs

import olx
from experiments import conll_chunking, ocr_letters
from olx import structured

NAMES = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]


def tags(*words):
    return np.array([NAMES.index(word) for word in words])


CHUNKS = {
    ("B-NP", "I-NP", "O", "B-VP"): {(0, 1, "NP"), (3, 3, "VP")},
    ("B-NP", "B-NP", "I-NP"): {(0, 0, "NP"), (1, 2, "NP")},
    ("O", "I-NP", "I-VP"): {(1, 1, "NP"), (2, 2, "VP")},  # conlleval starts a chunk at these
    ("B-NP", "I-VP", "I-VP"): {(0, 0, "NP"), (1, 2, "VP")},
    ("O", "O"): set(),
}


@pytest.mark.parametrize("words", CHUNKS)
def test_chunks_begin_and_end_as_conlleval_says(words):
    assert conll_chunking.chunks(tags(*words), NAMES) == CHUNKS[words]


def test_f1_counts_chunks_that_are_right_as_a_whole():
    truth = [tags("B-NP", "I-NP", "O", "B-VP"), tags("B-NP")]
    seen = [tags("B-NP", "O", "O", "B-VP"), tags("B-NP")]
    assert conll_chunking.f1(truth, seen, NAMES) == pytest.approx(100 * 2 / 3)


def test_templates_name_the_same_values_alike_and_new_ones_not_at_all():
    words = [np.array([3, 1, 3]), np.array([1, 3]), np.array([7])]
    same = [np.zeros(len(row), np.int64) for row in words]
    rows, size = conll_chunking.indexed(conll_chunking.Sentences(words, same, same, NAMES, train=2))
    own = 2  # the column of the word itself
    assert rows[0][0, own] == rows[0][2, own] == rows[1][1, own] != rows[0][1, own]
    assert rows[2][0, own] == -1
    known = np.concatenate(rows[:2])
    assert known.min() == 0
    assert known.max() == size - 1
    assert len(np.unique(known)) == size


@needs("conll2000.npz")
def test_the_shared_task_has_as_many_chunks_as_its_authors_say():
    data = conll_chunking.read(FOLDER)
    counts = [len(conll_chunking.chunks(labels, data.names)) for labels in data.chunk]
    assert (sum(counts[: data.train]), sum(counts[data.train :])) == (106_978, 23_852)


@needs("ocr_letters.npz")
def test_a_chain_reads_letters():
    words = ocr_letters.read(FOLDER)
    chain = structured.chain(ocr_letters.CLASSES, ocr_letters.FEATURES)
    train, test = (ocr_letters.stream(words, np.flatnonzero(words.fold == i), True) for i in (0, 1))
    rounds, start = ocr_letters.passes(train, 2, 0), chain.zeros(jnp.float32)
    learner = structured.structured_perceptron(chain)
    run = olx.run(learner, structured.decoded_cost(chain), rounds, start)
    letter, word = ocr_letters.errors(chain, structured.averaged_weights(run.state), test)
    assert letter < 0.25
    assert letter < word < 0.8
