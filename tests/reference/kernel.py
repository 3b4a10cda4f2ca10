"""Closed form of the sparse kernel learner, and the paper's recursion on the inverse of K."""

import numpy as np


class Defined:
    """MT-OSLSSVR by its definition: grow by approximate linear dependence, solve the whole problem at every step."""

    def __init__(self, kernel, penalty, novelty):
        self.kernel, self.penalty, self.novelty = kernel, penalty, novelty
        self.dictionary, self.C, self.y = [], [], []

    def gram(self, points):
        return np.array([[self.kernel(a, b) for b in self.dictionary] for a in points]).reshape(len(points), -1)

    def learn(self, point, y):
        k, kxx = self.gram([point])[0], self.kernel(point, point)
        a = np.linalg.solve(self.gram(self.dictionary), k) if self.dictionary else k
        if kxx - k @ a > self.novelty:
            self.dictionary.append(point)
            a = np.append(np.zeros(len(a)), 1.0)
        self.C.append(a)
        self.y.append(y)

    def fitted(self):
        """Kα of the minimiser of ‖C K α − y‖² + λ α'Kα, by orthogonal decomposition of the stacked problem."""
        m = len(self.dictionary)
        C = np.array([np.append(a, np.zeros(m - len(a))) for a in self.C])
        L = np.linalg.cholesky(self.gram(self.dictionary))
        stacked = np.vstack([C @ L, np.sqrt(self.penalty) * np.eye(m)])
        beta = np.linalg.lstsq(stacked, np.append(self.y, np.zeros(m)), rcond=None)[0]
        return L @ beta


def paper_step(Kinv, P, alpha, k, kxx, y, penalty, novelty):
    """One step of Algorithm 2 on the explicit inverse; returns the three, and whether the dictionary grew."""
    a = Kinv @ k
    delta, e, Pa = kxx - k @ a, y - k @ alpha, P @ a
    if delta <= novelty:
        q = Pa / (1 + a @ Pa)
        return Kinv, P - np.outer(q, Pa), alpha + Kinv @ q * e, False
    D = delta + penalty * (1 + a @ Pa)
    eta, c = e / D, penalty / D
    alpha = np.append(alpha - (a - penalty * Kinv @ Pa) * eta, eta)
    P = np.block([[P - c * np.outer(Pa, Pa), c * Pa[:, None]], [c * Pa[None, :], np.array([[1 - c]])]])
    Kinv = np.block(
        [[Kinv + np.outer(a, a) / delta, -a[:, None] / delta], [-a[None, :] / delta, np.array([[1 / delta]])]]
    )
    return Kinv, P, alpha, True
