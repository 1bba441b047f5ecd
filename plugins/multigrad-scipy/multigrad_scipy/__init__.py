from .fitting import least_squares
from .linear import linear_solve
from .minimizing import minimize
from .roots import root
