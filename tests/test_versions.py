"""The tests run with the compiler that is installed, whatever flags it knows."""

import os

from conftest import known


def test_a_flag_that_the_compiler_does_not_know_is_left_out():
    assert not known("--xla_of_nobody=1")
    assert known(*os.environ["XLA_FLAGS"].split())
