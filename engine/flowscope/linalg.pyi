"""Linear algebra, under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.array.clipping import (
    global_norm as global_norm,
)
from flowscope.ops.array.one_hot import (
    eye as eye,
)
from flowscope.ops.linalg.einsum import (
    einsum as einsum,
)
from flowscope.ops.linalg.factors import (
    cholesky as cholesky,
    lu as lu,
    lu_matrix_inverse as lu_matrix_inverse,
    lu_reconstruct as lu_reconstruct,
    lu_solve as lu_solve,
    qr as qr,
)
from flowscope.ops.linalg.matrices import (
    diag as tensor_diag,
    diag_part as tensor_diag_part,
    matrix_band_part as band_part,
    matrix_diag as diag,
    matrix_diag_part as diag_part,
    matrix_set_diag as set_diag,
)
from flowscope.ops.linalg.matrix_functions import (
    matrix_exponential as expm,
    matrix_logarithm as logm,
    matrix_square_root as sqrtm,
)
from flowscope.ops.linalg.norms import (
    norm as norm,
    normalize as normalize,
)
from flowscope.ops.linalg.products import (
    adjoint as adjoint,
    cross as cross,
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    matrix_transpose as transpose,
    matvec as matvec,
    tensordot as tensordot,
    trace as trace,
)
from flowscope.ops.linalg.solving import (
    cholesky_solve as cholesky_solve,
    logdet as logdet,
    matrix_determinant as det,
    matrix_inverse as inv,
    matrix_solve as solve,
    matrix_solve_ls as lstsq,
    matrix_triangular_solve as triangular_solve,
    slogdet as slogdet,
)
from flowscope.ops.linalg.spectra import (
    eig as eig,
    eigvals as eigvals,
    matrix_rank as matrix_rank,
    pinv as pinv,
    self_adjoint_eig as eigh,
    self_adjoint_eigvals as eigvalsh,
    svd as svd,
)
from flowscope.ops.linalg.tridiagonal import (
    tridiagonal_matmul as tridiagonal_matmul,
    tridiagonal_solve as tridiagonal_solve,
)
from flowscope.ops.nn.normalization import (
    l2_normalize as l2_normalize,
)

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "transpose",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]
