"""The matrices of a graph, dense or sparse: checked to be square, symmetric and positive definite, and frozen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sparse
from scipy.sparse.linalg import eigsh, splu

from braided.errors import InputError, NumericalError
from braided.types import Floats
from braided.validate import floats

ONE_THREAD_ABOVE = 15_000  # rows: beyond, the threads of OpenBLAS may crash the process while factorising
Matrix: TypeAlias = Any  # Floats, or a scipy.sparse.csr_array of float64
NOT_FINITE = "infs or NaNs"  # part of the message of SciPy's error for such a matrix


@contextmanager
def numerical_errors(what: str, remedy: str) -> Iterator[None]:
    """Report a failure of linear algebra in the block as a NumericalError: what failed, why, and what to do.

    Overflow inside the block is not warned about: it ends in such a failure, or the caller checks the result.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except (NotImplementedError, RecursionError):
        raise
    except (RuntimeError, ValueError) as error:  # RuntimeError is what SuperLU and ARPACK raise
        is_numerical = isinstance(error, np.linalg.LinAlgError | RuntimeError) or NOT_FINITE in str(error)
        if not is_numerical:
            raise
        raise NumericalError(f"{what} ({error}): {remedy}") from error


def frozen(matrix: Matrix) -> Matrix:
    """Make the matrix read-only, and return it."""
    parts = (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,)
    for part in parts:
        part.flags.writeable = False
    return matrix


def square(similarity: Any) -> Matrix:
    """Return a fresh square float64 matrix with a zero diagonal."""
    is_sparse = sparse.issparse(similarity)
    if is_sparse:
        matrix = sparse.csr_array(similarity, copy=True)
        matrix.sum_duplicates()
        matrix = sparse.csr_array((floats(matrix.data, "similarity", 1), matrix.indices, matrix.indptr), matrix.shape)
    else:
        matrix = floats(similarity, "similarity", ndim=2).copy()
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"similarity has shape {matrix.shape}: it must be square, one row and column per task")
    if is_sparse:
        matrix = (matrix - sparse.diags_array(matrix.diagonal())).tocsr()
        matrix.eliminate_zeros()
    else:
        np.fill_diagonal(matrix, 0.0)
    return matrix


def symmetric(S: Matrix, names: Sequence[object]) -> Matrix:
    """Insist on symmetry, and remove asymmetry that is only rounding."""
    gap = abs(S - S.T)
    if gap.size and gap.max() > 1e-12 * abs(S).max():
        i, j = divmod(int(gap.argmax()), S.shape[0])
        raise InputError(
            f"similarity is not symmetric: [{names[i]!r}, {names[j]!r}] is {S[i, j]:g} but "
            f'[{names[j]!r}, {names[i]!r}] is {S[j, i]:g}: use (S + S.T) / 2, or form="penalty"'
        )
    return (S + S.T) / 2.0


def insist_positive_definite(A: Matrix, S: Matrix, form: str) -> None:
    """Refuse a relation matrix that is not positive definite."""
    if form == "penalty" or S.min() >= 0.0:  # A ⪰ γI is guaranteed
        return
    if sparse.issparse(A) and A.shape[0] > 2:
        if _has_positive_pivots(A):
            return
        # A start of ones could be an eigenvector, which would hide all others.
        start = np.random.default_rng(0).normal(size=A.shape[0])
        smallest = float(eigsh(A, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
    else:
        smallest = float(np.linalg.eigvalsh(A.toarray() if sparse.issparse(A) else A)[0])
    if smallest <= 1e-12 * abs(A).max():
        raise InputError(
            f"relation matrix is not positive definite (smallest eigenvalue {smallest:.3g}): "
            f'raise ridge by more than {abs(smallest):.3g}, or use sign="clip" or sign="absolute"'
        )


def _has_positive_pivots(A: Matrix) -> bool:
    """Whether elimination without pivoting, in an order that keeps A sparse, meets only positive pivots."""
    try:
        factor = sparse_factor(A)
    except RuntimeError:  # exactly singular
        return False
    return bool((factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0.0).all())


def sparse_factor(A: Matrix) -> Any:
    """Factorise a sparse symmetric matrix without pivoting (SuperLU in symmetric mode)."""
    return splu(A.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def insist_it_fits(n: int, what: str, remedy: str) -> None:
    """Refuse a dense matrix (n, n) that, with one copy to work on, exceeds the memory of this machine."""
    needed, available = 16 * n * n, _memory()
    if needed > available:
        size = f"{needed / 1e9:,.0f} GB, this machine has {available / 1e9:,.0f}"
        raise InputError(f"{what} of {n:,} rows and columns needs {size}: {remedy}")


def _memory() -> float:
    """Bytes of memory of this machine; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # pragma: no cover (not on every system)
        return np.inf


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric positive definite matrix, exactly symmetric."""
    n, threads = len(matrix), nullcontext()
    if n > ONE_THREAD_ABOVE:
        from threadpoolctl import threadpool_limits  # slow to import, and seldom needed

        threads = threadpool_limits(1)
    with threads:
        solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, lower=True), np.eye(n))
    return np.ascontiguousarray((solved + solved.T) / 2.0)
