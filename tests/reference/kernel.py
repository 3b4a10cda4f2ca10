"""Closed forms of the sparse kernel learner, also with a budget, and the paper's recursion on the inverse of K."""

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


def learned_along(w, P, phi, y, weight, along):
    """Mean and covariance after a sample, given those before; of its direction, only a share `along` of what was known.

    The information along the gain direction fades, Φ ← Φ − (1 − along) φφ'/(φ'Pφ), then the sample's is added.
    """
    information = np.linalg.inv(P) - (1 - along) * np.outer(phi, phi) / (phi @ P @ phi)
    covariance = np.linalg.inv(information + weight * np.outer(phi, phi))
    return w + covariance @ phi * weight * (y - phi @ w), covariance


class Bounded:
    """MT-OSLSSVR with a budget and forgetting, as mean and covariance of the function's values at the dictionary."""

    def __init__(self, kernel, penalty, novelty, budget=np.inf, shrink=1.0, along=1.0, coherence=1.0):
        self.kernel, self.penalty, self.novelty = kernel, penalty, novelty
        self.budget, self.shrink, self.along, self.coherence = budget, shrink, along, coherence
        self.dictionary, self.usage, self.age = [], [], []
        self.mean, self.covariance = np.zeros(0), np.zeros((0, 0))

    def gram(self, points):
        return np.array([[self.kernel(a, b) for b in self.dictionary] for a in points]).reshape(
            len(points), len(self.dictionary)
        )

    def shares(self, point):
        k = self.gram([point])[0]
        return np.linalg.solve(self.gram(self.dictionary), k) if self.dictionary else k

    def learn(self, point, y, opens=False):
        if opens:
            self.mean = self.shrink * self.mean
            prior = self.gram(self.dictionary) / self.penalty
            self.covariance = self.shrink**2 * self.covariance + (1 - self.shrink**2) * prior.reshape(
                len(self.mean), len(self.mean)
            )
        k, kxx, a = self.gram([point])[0], self.kernel(point, point), self.shares(point)
        nearest = max(
            (abs(b) / np.sqrt(kxx * self.kernel(c, c)) for b, c in zip(k, self.dictionary, strict=True)), default=0
        )
        delta = kxx - k @ a
        grows = delta > self.novelty and nearest <= self.coherence
        if grows:
            new = self.covariance @ a
            corner = a @ self.covariance @ a + delta / self.penalty
            self.covariance = np.block([[self.covariance, new[:, None]], [new[None, :], np.array([[corner]])]])
            self.mean = np.append(self.mean, a @ self.mean)
            self.dictionary.append(point)
            a = np.append(np.zeros(len(a)), 1.0)
            self.usage.append(0.0)
            self.age.append(0)
        g = self.covariance @ a
        r = a @ g
        self.mean = self.mean + g * (y - a @ self.mean) / (self.along + r)
        self.covariance = self.covariance - np.outer(g, g) / (self.along + r) * (1 - (1 - self.along) / r)
        self.age = [min(n + 1, 10 * self.budget) for n in self.age]
        self.usage = [u + (b * b - u) / n for u, b, n in zip(self.usage, a, self.age, strict=True)]
        if len(self.dictionary) > self.budget:
            self.evict()

    def evict(self):
        """Drop the element without which the forecasts of late inputs change least."""
        inverse = np.linalg.inv(self.gram(self.dictionary))
        without = []
        for j, point in enumerate(self.dictionary):
            rest = [i for i in range(len(self.dictionary)) if i != j]
            k = self.gram(self.dictionary)
            others = np.linalg.solve(k[np.ix_(rest, rest)], self.mean[rest]) @ self.gram([point])[0][rest]
            without.append((self.mean[j] - others) ** 2 * self.usage[j])
        gone = int(np.argmin(without))
        np.testing.assert_allclose(
            without[gone], ((inverse @ self.mean)[gone] / inverse[gone, gone]) ** 2 * self.usage[gone]
        )
        keep = [i for i in range(len(self.dictionary)) if i != gone]
        self.mean, self.covariance = self.mean[keep], self.covariance[np.ix_(keep, keep)]
        self.dictionary, self.usage, self.age = (
            [part[i] for i in keep] for part in (self.dictionary, self.usage, self.age)
        )
