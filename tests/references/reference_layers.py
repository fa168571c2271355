"""Second implementations of sequence layers in plain NumPy, written from the papers.

Each takes keys and queries (T, dk), values (T, dv) and numbers per token (T,), and returns the
outputs (T, dv). Matrices are built from their definitions.
"""

import numpy as np


def linear_attention(keys, values, queries, beta):
    """Katharopoulos et al. 2020, without a feature map: S_t = S_{t-1} + beta_t v_t k_t'."""
    S, outputs = np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q, b in zip(keys, values, queries, beta, strict=True):
        S = S + b * np.outer(v, k)
        outputs.append(S @ q)
    return np.array(outputs)


def delta_net(keys, values, queries, beta):
    """Yang et al. 2024, equation 1: S_t = S_{t-1} (I - beta_t k_t k_t') + beta_t v_t k_t'."""
    return gated_delta_net(keys, values, queries, beta, np.ones(len(keys)))


def gated_delta_net(keys, values, queries, beta, alpha):
    """Yang, Kautz, Hatamizadeh 2024: S_t = S_{t-1} (alpha_t (I - beta_t k k')) + beta_t v k'."""
    S, outputs = np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q, b, a in zip(keys, values, queries, beta, alpha, strict=True):
        S = S @ (a * (np.eye(len(k)) - b * np.outer(k, k))) + b * np.outer(v, k)
        outputs.append(S @ q)
    return np.array(outputs)


def longhorn(keys, values, queries, beta):
    """Liu et al. 2024, the exact minimizer of |S - S_{t-1}|^2 + beta_t |S k_t - v_t|^2, solved row
    by row, before the matrix is replaced by its diagonal."""
    S, outputs = np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q, b in zip(keys, values, queries, beta, strict=True):
        S = np.linalg.solve(np.eye(len(k)) + b * np.outer(k, k), (S + b * np.outer(v, k)).T).T
        outputs.append(S @ q)
    return np.array(outputs)


def mesa(keys, values, queries, lam):
    """Von Oswald et al. 2023: the minimizer of sum_{s<=t} |Phi k_s - v_s|^2 / 2 + |Phi|^2 / (2
    lam), times the query."""
    outputs = []
    for t in range(len(keys)):
        K, V = keys[: t + 1], values[: t + 1]
        outputs.append(V.T @ K @ np.linalg.solve(K.T @ K + np.eye(K.shape[1]) / lam, queries[t]))
    return np.array(outputs)


def normalized_lms(keys, values, queries, mu, epsilon):
    """Nagumo, Noda 1967: S_t = S_{t-1} + mu / (epsilon + |k_t|^2) (v_t - S_{t-1} k_t) k_t'."""
    S, outputs = np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q in zip(keys, values, queries, strict=True):
        S = S + mu / (epsilon + k @ k) * np.outer(v - S @ k, k)
        outputs.append(S @ q)
    return np.array(outputs)


def arow_of_regression(keys, values, queries, r):
    """Vaits, Crammer 2011, AROWR: a Gaussian over each row with one covariance P, P_0 = I; the step
    minimizes its divergence from the last one + ((v - mu k)^2 + k' P k) / (2 r)."""
    P, S, outputs = np.eye(keys.shape[1]), np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q in zip(keys, values, queries, strict=True):
        S = S + np.outer(v - S @ k, P @ k) / (r + k @ P @ k)
        P = np.linalg.inv(np.linalg.inv(P) + np.outer(k, k) / r)
        outputs.append(S @ q)
    return np.array(outputs)


def passive_aggressive_1_of_regression(keys, values, queries, C, epsilon):
    """Crammer et al. 2006, section 5: per row tau = min(C, loss / |k|^2), along sign(v - S k) k."""
    S, outputs = np.zeros((values.shape[1], keys.shape[1])), []
    for k, v, q in zip(keys, values, queries, strict=True):
        residual = v - S @ k
        loss = np.maximum(0, np.abs(residual) - epsilon)
        tau = np.minimum(C, loss / (k @ k)) if k @ k > 0 else 0 * loss
        S = S + np.outer(np.sign(residual) * tau, k)
        outputs.append(S @ q)
    return np.array(outputs)
