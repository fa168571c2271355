r"""The potential of the NormalHedge family, $\Phi(R, C) = e^{[R]_+^2 / (3 C)}$.

The weight of an expert is the difference $\frac12 (\Phi(R + 1, C + 1) - \Phi(R - 1, C + 1))$. With
$b = [R - 1]_+^2 / (3 (C + 1))$ and $g$ the difference of the two squares it is
$\frac12 e^b (e^{g / (3 (C + 1))} - 1)$. This form has no cancellation. Its second factor does not
overflow: $|R| \le C$, so its exponent is at most $\frac43$.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.1.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from olx.experts._vectors import expm1
from olx.experts.account import relative_entropy
from olx.experts.base import Weights


def difference(regret: Array) -> Array:
    r"""$[R + 1]_+^2 - [R - 1]_+^2$."""
    return jnp.where(regret >= 1, 4 * regret, jnp.maximum(regret + 1, 0.0) ** 2)


def weigh(prior: Array, regret: Array, size: Array) -> Weights:
    scale = 1 / (3 * (size + 1))
    log = jnp.maximum(regret - 1, 0.0) ** 2 * scale
    return Weights(log, prior * expm1(difference(regret) * scale))


def regret_bound(
    u: Float[Array, " N"], prior: Float[Array, " N"], size: Array, excess: Array
) -> Array:
    r"""The bound on the regret to a mixture that follows from $\sum_i q_i (\Phi_i - 1) \le D$.

    With $S$ the support of $u$, $\sum_{i \in S} q_i \Phi_i \le D + q(S)$; by Jensen $\sum_i u_i
    [R_i]_+^2 / (3 C_i) \le \mathrm{RE}(u \| q) + \ln(D + q(S))$; by Cauchy and Schwarz

    $$\langle u, R\rangle \le \sqrt{3 \langle u, C\rangle (\mathrm{RE}(u \| q) + \ln(D + q(S)))}.$$

    size, excess: $C$ and $D$.
    """
    return jnp.sqrt(3 * (size @ u) * price(u, prior, excess))


def price(u: Float[Array, " N"], prior: Float[Array, " N"], excess: Array) -> Array:
    r"""$\mathrm{RE}(u \| q) + \ln(D + q(S))$."""
    support = jnp.sum(jnp.where(u > 0, prior, 0.0))
    return jnp.maximum(relative_entropy(u, prior) + jnp.log(excess + support), 0.0)  # rounding
