"""Mercer kernels and the multi-task product kernel, of one input with all elements of a dictionary."""

import numpy as np

from braided._compiled import compiled
from braided._compiled.linear import FOUR, dot
from braided.types import Floats, Ints

OPERATIONS = range(6)  # of a kernel's program
CONSTANT, LINEAR, RBF, POLYNOMIAL, ADD, MULTIPLY = OPERATIONS


@compiled
def inner_inplace(k: Floats, inputs: Floats, x: Floats) -> None:
    """k ← the inner product of x with each input, four at a time."""
    m = inputs.shape[0]
    full = m - m % FOUR
    for j in range(0, full, FOUR):
        a, b, c, d = inputs[j], inputs[j + 1], inputs[j + 2], inputs[j + 3]
        ax, bx, cx, dx = 0.0, 0.0, 0.0, 0.0
        for i in range(x.size):
            ax += a[i] * x[i]
            bx += b[i] * x[i]
            cx += c[i] * x[i]
            dx += d[i] * x[i]
        k[j], k[j + 1], k[j + 2], k[j + 3] = ax, bx, cx, dx
    for j in range(full, m):
        k[j] = dot(inputs[j], x)


@compiled
def gaps_inplace(k: Floats, inputs: Floats, x: Floats) -> None:
    """k ← the squared distance of x from each input."""
    for j in range(inputs.shape[0]):
        gap = 0.0
        for i in range(x.size):
            gap += (inputs[j, i] - x[i]) ** 2
        k[j] = gap


@compiled
def evaluate_inplace(stack: Floats, program: Floats, inputs: Floats, x: Floats) -> None:
    """stack[0] ← κ(D, x) by the kernel's program: rows (operation, parameters) in postfix order."""
    m, top = inputs.shape[0], -1
    for n in range(program.shape[0]):
        operation, parameter = program[n, 0], program[n, 1]
        if operation in (ADD, MULTIPLY):
            top -= 1
            values, more = stack[top], stack[top + 1]
            for j in range(m):
                values[j] = values[j] + more[j] if operation == ADD else values[j] * more[j]
            continue
        top += 1
        values = stack[top]
        if operation == CONSTANT:
            for j in range(m):
                values[j] = parameter
        elif operation == RBF:
            gaps_inplace(values, inputs, x)
            for j in range(m):
                values[j] = np.exp(-0.5 * values[j] / parameter**2)
        else:
            inner_inplace(values, inputs, x)
            if operation == POLYNOMIAL:
                for j in range(m):
                    values[j] = (values[j] + parameter) ** program[n, 2]


@compiled
def kernel_inplace(
    k: Floats, inputs: Floats, rows: Ints, relation: Floats, program: Floats, stack: Floats, x: Floats
) -> None:
    """k ← k(D, x) by the multi-task kernel A⁻¹[s, t] κ(x, x'); `relation` is the row of A⁻¹ of the task of x."""
    evaluate_inplace(stack, program, inputs, x)
    values = stack[0]
    for j in range(rows.size):
        k[j] = relation[rows[j]] * values[j]  # Eq. 31


@compiled
def coherent(k: Floats, norms: Floats, kxx: float) -> float:
    """The coherence of x: the largest |k(x_j, x)| / √(k(x_j, x_j) k(x, x)) over all elements."""
    nearest = 0.0
    for j in range(norms.size):
        nearest = max(nearest, k[j] * k[j] / norms[j])
    return np.sqrt(nearest / kxx) if kxx > 0.0 else 0.0
