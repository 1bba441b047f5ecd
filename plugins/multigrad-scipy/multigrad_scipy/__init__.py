from .fitting import least_squares
from .minimizing import minimize
from .roots import root
