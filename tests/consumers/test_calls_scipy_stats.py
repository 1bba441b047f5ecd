"""scipy.stats: the functions that SciPy writes for any array library, and others that have a
derivative, on Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Table

stats = pytest.importorskip("scipy.stats", reason="scipy is a dependency of the tests only")

X, Y, V, W = drawn(2, 5), drawn(2, 5, seed=1), drawn(6), drawn(6, seed=2)
U, P = drawn(8, seed=3), drawn(4, low=0.05, high=0.9)


def probed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A hypothesis test as a function to its statistic and its p-value."""

    def pair(*samples: Any) -> Any:
        result = function(*samples, **options)
        return [result.statistic, result.pvalue]

    return pair


def mean(x: Any, axis: int) -> Any:
    xp = x.__array_namespace__()
    return xp.mean(x, axis=axis)


def normal(size: Any) -> Any:
    return np.random.default_rng(0).normal(size=size)


CALLS = [
    *(
        Call(f"stats.{name}", probed(getattr(stats, name)), (V, W, U))
        for name in ("alexandergovern", "bartlett", "f_oneway", "fligner", "kruskal", "levene")
    ),
    Call("stats.friedmanchisquare", probed(stats.friedmanchisquare), (V, W, V[::-1] * 2)),
    *(
        Call(f"stats.{name}", probed(getattr(stats, name)), (V, U))
        for name in (
            "ansari",
            "brunnermunzel",
            "cramervonmises_2samp",
            "epps_singleton_2samp",
            "mannwhitneyu",
            "mood",
            "ttest_ind",
        )
    ),
    *(
        Call(f"stats.{name}", probed(getattr(stats, name)), (V, W))
        for name in ("pearsonr", "spearmanrho", "ttest_rel", "wilcoxon", "chatterjeexi")
    ),
    *(
        Call(f"stats.{name}", probed(getattr(stats, name)), (drawn(n),))
        for name, n in (
            ("jarque_bera", 6),
            ("kurtosistest", 22),
            ("normaltest", 22),
            ("skewtest", 10),
        )
    ),
    Call(
        "stats.bootstrap",
        lambda x: (
            stats.bootstrap((x,), mean, n_resamples=4, rng=0, method="percentile").standard_error
        ),
        (V,),
    ),
    Call("stats.boxcox_llf", lambda x: stats.boxcox_llf(1.5, x), (V,)),
    Call("stats.chisquare", probed(stats.chisquare, sum_check=False), (V,)),
    Call("stats.circmean", stats.circmean, (V,)),
    Call("stats.circstd", stats.circstd, (V,)),
    Call("stats.circvar", stats.circvar, (V,)),
    Call("stats.combine_pvalues", probed(stats.combine_pvalues), (P,)),
    Call(
        "stats.cramervonmises", lambda x: probed(stats.cramervonmises, cdf=lambda t: t / 2)(x), (V,)
    ),
    Call("stats.describe", lambda x: list(stats.describe(x, axis=1))[1:], (X,)),
    Call("stats.differential_entropy", stats.differential_entropy, (drawn(12),)),
    Call("stats.directional_stats", lambda x: stats.directional_stats(x).mean_direction, (X,)),
    Call("stats.entropy", lambda x, y: stats.entropy(x, y, axis=1), (X, Y), also=["jax"]),
    Call("stats.false_discovery_control", stats.false_discovery_control, (P,)),
    Call("stats.gmean", lambda x, w: stats.gmean(x, axis=1, weights=w), (X, Y)),
    Call("stats.gstd", lambda x: stats.gstd(x, axis=1), (X,)),
    Call("stats.gzscore", lambda x: stats.gzscore(x, axis=1), (X,)),
    Call("stats.hmean", lambda x: stats.hmean(x, axis=1), (X,)),
    Call("stats.iqr", lambda x: stats.iqr(x, axis=1), (X,)),
    Call("stats.ks_1samp", lambda x: probed(stats.ks_1samp, cdf=lambda t: t / 2)(x), (V,)),
    Call("stats.kstat", lambda x: stats.kstat(x, 3), (V,)),
    Call("stats.kstatvar", stats.kstatvar, (V,)),
    Call("stats.kurtosis", lambda x: stats.kurtosis(x, axis=1, bias=False), (X,)),
    Call("stats.lmoment", stats.lmoment, (V,)),
    Call("stats.median_abs_deviation", lambda x: stats.median_abs_deviation(x, axis=1), (X,)),
    Call("stats.mode", lambda x: stats.mode(x, axis=1).count, (X,)),
    Call("stats.moment", lambda x: stats.moment(x, 3), (V,)),
    Call(
        "stats.monte_carlo_test",
        lambda x: stats.monte_carlo_test(x, normal, mean, n_resamples=4, vectorized=True).statistic,
        (V,),
    ),
    Call(
        "stats.permutation_test",
        lambda x, y: (
            stats.permutation_test(
                (x, y),
                lambda a, b, axis: mean(a, axis) - mean(b, axis),
                n_resamples=4,
                rng=0,
                vectorized=True,
            ).statistic
        ),
        (V, U),
    ),
    Call("stats.pmean", lambda x: stats.pmean(x, 3, axis=1), (X,)),
    Call("stats.power_divergence", probed(stats.power_divergence, lambda_=0.5), (V,)),
    Call("stats.quantile", lambda x: stats.quantile(x, 0.3, axis=1), (X,)),
    Call("stats.rankdata", stats.rankdata, (V,)),
    Call("stats.sem", lambda x: stats.sem(x, axis=1), (X,)),
    Call("stats.sigmaclip", lambda x: stats.sigmaclip(x, 1.5, 1.5).clipped, (U,)),
    Call("stats.skew", stats.skew, (V,), also=["jax"]),
    Call("stats.tmax", lambda x: stats.tmax(x, 1.4), (V,)),
    Call("stats.tmean", lambda x: stats.tmean(x, axis=1), (X,)),
    Call("stats.tmin", lambda x: stats.tmin(x, axis=1), (X,)),
    Call("stats.trim_mean", lambda x: stats.trim_mean(x, 0.2), (V,)),
    Call("stats.tsem", lambda x: stats.tsem(x, axis=1), (X,)),
    Call("stats.tstd", lambda x: stats.tstd(x, axis=1), (X,)),
    Call("stats.ttest_1samp", lambda x: probed(stats.ttest_1samp, popmean=0.5)(x), (V,)),
    Call(
        "stats.ttest_ind_from_stats",
        lambda m, s, n, t: probed(stats.ttest_ind_from_stats)(m, s, 6, n, t, 7),
        (V, W, V + 1, W + 1),
    ),
    Call("stats.tvar", lambda x: stats.tvar(x, axis=1), (X,)),
    Call("stats.variation", lambda x: stats.variation(x, axis=1), (X,)),
    Call("stats.yeojohnson_llf", lambda x: stats.yeojohnson_llf(1.5, x), (V,)),
    Call("stats.zmap", stats.zmap, (V, W)),
    Call("stats.zscore", lambda x: stats.zscore(x, axis=1), (X,), also=["jax"]),
    Call("stats.spearmanr", probed(stats.spearmanr), (V, W)),
    Call("stats.wasserstein_distance", stats.wasserstein_distance, (V, W)),
]

TABLE = Table("SciPy", "scipy_stats", CALLS, part="scipy.stats", settings=SCIPY)
test_calls = TABLE.test()
