r"""A base learner that competes with a class of functions, with their negatives and with zero.

One copy of a learner gets the losses $\ell$, the other one $a \mapsto \ell(-a)$. An expert learner
mixes $A_+(x)$ and $-A_-(x)$:

$$y = p_+ A_+(x) - p_- A_-(x).$$

Its regret to $f$ and to $-f$ is that of a copy plus that of the expert learner. It is then no
larger to their mean, which is zero, for convex losses. Gradient boosting needs a class with these
properties; linear functions with weights in a ball or a box around 0 have them already.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.1, footnote 11.
"""

from olx import _check as check
from olx._refusal import public
from olx.boosting.scaled import multiple
from olx.core import Learner
from olx.meta.mix import mix


@public
def symmetrized(inner: Learner, mixer: Learner) -> Learner:
    r"""Mix the predictions of `inner` and the negative ones of a second copy.

    inner: a predictor of real numbers.
    mixer: a learner whose action is a distribution, such as `olx.hedge(rate)`. Losses of a booster
        at $|y| \le D$ lie in $[-D, D]$.

    Weights from 0 to 1, whose sum is 1, cannot follow a negative target; with a sign they can:

    >>> import jax.numpy as jnp, olx
    >>> from olx.boosting import symmetrized
    >>> weak = olx.linear(olx.omd(0.5, olx.mirrors.negative_entropy()))
    >>> rounds = olx.Rounds(jnp.array([[0.2, 0.9]] * 300), jnp.full(300, -0.5))
    >>> play = lambda one: olx.rollout(one, olx.losses.squared, rounds, jnp.ones(2) / 2)
    >>> both = play(symmetrized(weak, olx.hedge(0.5)))
    >>> bool(both.losses[-1] < 0.01 < 0.2 < play(weak).losses[-1])
    True
    """
    check.instance("inner", inner, Learner)
    return mix((inner, multiple(inner, -1.0)), mixer)
