"""The libraries of linear algebra, whose products of microseconds take longer in several threads than in one."""

import scipy.linalg  # noqa: F401  (brings a library of its own)
from threadpoolctl import ThreadpoolController

#: numpy's and scipy's. ``threadpoolctl.threadpool_limits`` would look through all loaded libraries whenever it is
#: called, and that takes as long as a third of a small fit.
BLAS = ThreadpoolController().select(user_api="blas")
