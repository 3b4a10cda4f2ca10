"""Mercer kernels: linear, RBF, polynomial, their sums, products and positive multiples.

A kernel is a short program in postfix order, so that any composition runs in compiled code. A Python function
`kernel(X, x) -> (m,)` of X (m, d) and x (d,) works wherever a kernel does, more slowly.

>>> kernel = 0.5 * linear() + rbf(width=2.0)
>>> kernel
0.5 * linear() + rbf(2.0)
>>> kernel([[0.0, 1.0], [2.0, 3.0]], [0.0, 1.0])
array([1.5       , 1.86787944])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from braided._compiled.kernels import ADD, CONSTANT, LINEAR, MULTIPLY, OPERATIONS, POLYNOMIAL, RBF
from braided.errors import InputError
from braided.types import Floats
from braided.validate import count, floats, not_negative, positive, real

Step: TypeAlias = tuple[float, float, float]  # operation and its parameters
UserKernel: TypeAlias = Callable[[Floats, Floats], Any]


@final
@dataclass(frozen=True, repr=False)
class Kernel:
    """A Mercer kernel, made by `linear`, `rbf` and `polynomial`, and composed by `+` and `*`."""

    program: tuple[Step, ...]

    def __post_init__(self) -> None:
        """Check every step, and that the program leaves one value: compiled code runs it unchecked."""
        steps = tuple((real(a, "operation"), real(b, "parameter"), real(c, "parameter")) for a, b, c in self.program)
        depth, is_kernel = 0, True
        for operation, first, second in steps:
            depth += -1 if operation in (ADD, MULTIPLY) else 1
            is_kernel = is_kernel and operation in OPERATIONS and depth >= 1
            if operation in (CONSTANT, RBF):
                positive(first, "parameter of a kernel")
            elif operation == POLYNOMIAL:
                not_negative(first, "offset")
                count(int(second) if second.is_integer() else second, "degree")
        if not is_kernel or depth != 1:
            raise InputError(f"{steps!r:.80} is not a kernel: make one with linear, rbf and polynomial")
        object.__setattr__(self, "program", steps)

    @property
    def is_linear(self) -> bool:
        """Whether this is the inner product x·z itself."""
        return self.program == linear().program

    def __call__(self, X: Any, x: Any) -> Floats:
        """Evaluate κ between the rows of X and x."""
        X, x = floats(X, "X", 2), floats(x, "x", 1)
        inner, gap = X @ x, ((X - x) ** 2).sum(axis=1)
        stack: list[Floats] = []
        for operation, first, second in self.program:
            if operation == CONSTANT:
                stack.append(np.full(len(X), first))
            elif operation == LINEAR:
                stack.append(inner)
            elif operation == RBF:
                stack.append(np.exp(-0.5 * gap / first**2))
            elif operation == POLYNOMIAL:
                stack.append((inner + first) ** second)
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(left + right if operation == ADD else left * right)
        return stack[0]

    def __add__(self, other: Kernel) -> Kernel:
        """Sum of two kernels."""
        return _joined(self, other, ADD) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        """Product with a kernel or a positive number."""
        return _joined(self, other if isinstance(other, Kernel) else _constant(other), MULTIPLY)

    def __rmul__(self, number: float) -> Kernel:
        """Product with a positive number."""
        return _joined(_constant(number), self, MULTIPLY)

    def __repr__(self) -> str:
        """The expression that makes this kernel."""
        stack: list[tuple[str, bool]] = []  # text, and whether it is a bare sum
        for operation, first, second in self.program:
            if operation == ADD:
                (right, _), (left, _) = stack.pop(), stack.pop()
                stack.append((f"{left} + {right}", True))
            elif operation == MULTIPLY:
                right, left = (f"({text})" if is_sum else text for text, is_sum in (stack.pop(), stack.pop()))
                stack.append((f"{left} * {right}", False))
            else:
                texts = {CONSTANT: f"{first!r}", LINEAR: "linear()", RBF: f"rbf({first!r})"}
                stack.append((texts.get(int(operation), f"polynomial({int(second)}, {first!r})"), False))
        return stack[0][0]


def _joined(left: Kernel, right: Kernel, operation: int) -> Kernel:
    return Kernel((*left.program, *right.program, _step(operation)))


def _step(operation: int, first: float = 0.0, second: float = 0.0) -> Step:
    return float(operation), first, second


def _constant(number: float) -> Kernel:
    return Kernel((_step(CONSTANT, positive(number, "factor of a kernel")),))


def linear() -> Kernel:
    """x·z, the paper's kernel."""
    return Kernel((_step(LINEAR),))


def rbf(width: float = 1.0) -> Kernel:
    """exp(−½ ‖x − z‖² / width²)."""
    return Kernel((_step(RBF, positive(width, "width")),))


def polynomial(degree: int = 2, offset: float = 1.0) -> Kernel:
    """(x·z + offset)^degree."""
    return Kernel((_step(POLYNOMIAL, not_negative(offset, "offset"), float(count(degree, "degree"))),))


def as_kernel(kernel: str | Kernel | UserKernel, n_features: int) -> Kernel | UserKernel:
    """Resolve a name; "rbf" is rbf(√(n_features / 2)), which suits standardised features."""
    if isinstance(kernel, str):
        named = {"linear": linear(), "rbf": rbf(float(np.sqrt(n_features / 2)))}
        if kernel not in named:
            raise InputError(f"kernel is {kernel!r}: choose 'linear' or 'rbf', or compose one with braided.kernels")
        return named[kernel]
    uncalled: tuple[object, ...] = (linear, rbf, polynomial)
    if not callable(kernel) or kernel in uncalled:
        raise InputError(f"kernel is {kernel!r}: give a name, a kernel of braided.kernels, or a function(X, x)")
    return kernel
