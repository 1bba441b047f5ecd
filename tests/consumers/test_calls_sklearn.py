"""What scikit-learn says supports the array API, as a table: every estimator, with the methods that
give floats, and every metric.

The list is that of its guide, "Array API support". Calls run with `array_api_dispatch=True`, which
needs SCIPY_ARRAY_API=1. test_scipy_sklearn.py has more about some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_tables import Call, Setting, Table

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is a dependency of the tests only")

from sklearn import (  # noqa: E402
    calibration,
    decomposition,
    linear_model,
    metrics,
    mixture,
    model_selection,
    preprocessing,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.kernel_approximation import Nystroem  # noqa: E402
from sklearn.metrics import pairwise  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

RANDOM = np.random.default_rng(0)
LABELS = np.asarray([0, 1, 0, 1, 1, 0, 0, 1])
GUESSED = np.asarray([0, 1, 0, 0, 1, 0, 1, 1])
X = RANDOM.normal(size=(8, 3)) + LABELS[:, None]
OTHER = RANDOM.normal(size=(3, 3))
TARGET = X @ np.asarray([1.0, -2.0, 0.5]) + 0.1 * RANDOM.normal(size=8)
COUNTS = np.asarray([1.0, 3.0, 2.0, 5.0, 4.0, 1.0, 2.0, 6.0])
TRUE, PREDICTED = RANDOM.uniform(0.5, 2.5, 8), RANDOM.uniform(0.5, 2.5, 8)
CHANCE = RANDOM.permutation(np.linspace(0.11, 0.89, 8))
POSITIVE, ALSO_POSITIVE = np.abs(X) + 0.1, np.abs(OTHER) + 0.1
STRICT = ["strict"]


def dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            return function(*args)

    return call


def row(name: str, function: Callable[..., Any], *args: Any, **more: Any) -> Call:
    return Call(name, dispatched(function), args, **more)


def fitted(make: Callable[[], Any], use: Callable[..., Any], fits: int = 1) -> Callable[..., Any]:
    """`use` of what `make` fits to the first arguments, and of the others; of the first, if there
    are no others.
    """
    return lambda *args: use(make().fit(*args[:fits]), *(args[fits:] or args[:1]))


def scaler(cls: Any, **more: Any) -> list[Call]:
    return [
        row(
            f"preprocessing.{cls.__name__}.transform",
            fitted(cls, lambda e, x: e.transform(x)),
            X,
            OTHER,
            **more,
        ),
        row(
            f"preprocessing.{cls.__name__}.inverse_transform",
            fitted(cls, lambda e, x: e.inverse_transform(x)),
            X,
            OTHER,
        ),
    ]


def pca(solver: str) -> Any:
    return decomposition.PCA(2, svd_solver=solver, power_iteration_normalizer="QR", random_state=0)


def ridge() -> Any:
    return linear_model.Ridge(solver="svd")


def gaussians() -> Any:
    return mixture.GaussianMixture(2, init_params="random", random_state=0, max_iter=3, tol=0.0)


def calibrated() -> Any:
    return calibration.CalibratedClassifierCV(GaussianNB(), method="temperature", cv=2)


def temperature(classifier: Any, _: Any) -> Any:
    return classifier.calibrated_classifiers_[0].calibrators[0].beta_


def search() -> Any:
    return model_selection.GridSearchCV(ridge(), {"alpha": [0.1, 1.0]}, cv=2)


ESTIMATORS = [
    *(
        row(
            f"decomposition.PCA.fit_transform {solver}",
            lambda x, solver=solver: pca(solver).fit_transform(x),
            X,
            also=STRICT * (solver == "full"),
        )
        for solver in ("full", "covariance_eigh", "randomized")
    ),
    row(
        "decomposition.PCA.transform",
        fitted(lambda: pca("full"), lambda e, x: e.transform(x)),
        X,
        OTHER,
    ),
    row(
        "decomposition.PCA.inverse_transform",
        fitted(lambda: pca("full"), lambda e, x: e.inverse_transform(x[:, :2])),
        X,
        OTHER,
    ),
    row("decomposition.PCA.score", fitted(lambda: pca("full"), lambda e, x: e.score(x)), X),
    row(
        "linear_model.Ridge.fit",
        fitted(ridge, lambda e, _: (e.coef_, e.intercept_), 2),
        X,
        TARGET,
        also=STRICT,
        note="`coef_` and `intercept_`",
    ),
    row(
        "linear_model.Ridge.predict", fitted(ridge, lambda e, x: e.predict(x), 2), X, TARGET, OTHER
    ),
    row("linear_model.Ridge.score", lambda x, y: ridge().fit(x, y).score(x, y), X, TARGET),
    row(
        "linear_model.RidgeCV.predict",
        fitted(linear_model.RidgeCV, lambda e, x: e.predict(x), 2),
        X,
        TARGET,
    ),
    row(
        "linear_model.RidgeClassifier.decision_function",
        fitted(
            lambda: linear_model.RidgeClassifier(solver="svd"),
            lambda e, x: e.decision_function(x),
            2,
        ),
        X[:6, :2],
        LABELS[:6],
    ),
    row(
        "linear_model.RidgeClassifierCV.decision_function",
        fitted(linear_model.RidgeClassifierCV, lambda e, x: e.decision_function(x), 2),
        X[:6, :2],
        LABELS[:6],
    ),
    row(
        "linear_model.LogisticRegression.fit",
        fitted(linear_model.LogisticRegression, lambda e, _: e.coef_, 2),
        X,
        LABELS,
        value_rtol=1e-4,
    ),
    row(
        "linear_model.PoissonRegressor.fit",
        fitted(linear_model.PoissonRegressor, lambda e, _: e.coef_, 2),
        X,
        COUNTS,
        value_rtol=1e-4,
    ),
    *(
        row(
            f"discriminant_analysis.LinearDiscriminantAnalysis.{name}",
            fitted(LinearDiscriminantAnalysis, lambda e, x, name=name: getattr(e, name)(x), 2),
            X,
            LABELS,
        )
        for name in ("transform", "predict", "predict_proba")
    ),
    row(
        "discriminant_analysis.LinearDiscriminantAnalysis.score",
        lambda x, y: LinearDiscriminantAnalysis().fit(x, y).score(x, y),
        X,
        LABELS,
    ),
    *(
        row(
            f"naive_bayes.GaussianNB.{name}",
            fitted(GaussianNB, lambda e, x, name=name: getattr(e, name)(x), 2),
            X,
            LABELS,
        )
        for name in ("predict", "predict_proba")
    ),
    row("naive_bayes.GaussianNB.score", lambda x, y: GaussianNB().fit(x, y).score(x, y), X, LABELS),
    row(
        "kernel_approximation.Nystroem.transform",
        fitted(lambda: Nystroem(n_components=4, random_state=0), lambda e, x: e.transform(x)),
        X,
        OTHER,
    ),
    row(
        "preprocessing.Binarizer.transform",
        fitted(preprocessing.Binarizer, lambda e, x: e.transform(x)),
        X,
    ),
    row(
        "preprocessing.KernelCenterer.transform",
        lambda x, y: preprocessing.KernelCenterer().fit(x @ x.T).transform(y @ x.T),
        X,
        OTHER,
    ),
    row(
        "preprocessing.LabelEncoder.fit_transform",
        lambda y: preprocessing.LabelEncoder().fit_transform(y),
        LABELS,
    ),
    row(
        "preprocessing.LabelBinarizer.fit_transform",
        lambda y: preprocessing.LabelBinarizer().fit_transform(y),
        LABELS,
    ),
    *scaler(preprocessing.MaxAbsScaler),
    *scaler(preprocessing.MinMaxScaler, also=STRICT),
    *scaler(preprocessing.StandardScaler, also=STRICT),
    row(
        "preprocessing.Normalizer.transform",
        fitted(preprocessing.Normalizer, lambda e, x: e.transform(x)),
        X,
    ),
    row(
        "preprocessing.PolynomialFeatures.transform",
        fitted(preprocessing.PolynomialFeatures, lambda e, x: e.transform(x)),
        X,
    ),
    row(
        "mixture.GaussianMixture.fit",
        fitted(gaussians, lambda e, _: (e.weights_, e.means_, e.covariances_)),
        X,
        note="`weights_` `means_` `covariances_`",
    ),
    *(
        row(
            f"mixture.GaussianMixture.{name}",
            fitted(gaussians, lambda e, x, name=name: getattr(e, name)(x)),
            X,
        )
        for name in ("predict", "predict_proba", "score_samples", "bic")
    ),
    row(
        "calibration.CalibratedClassifierCV.fit",
        fitted(calibrated, temperature, 2),
        X,
        LABELS,
        value_rtol=1e-5,
        note="the temperature",
    ),
    row(
        "model_selection.GridSearchCV.predict",
        fitted(search, lambda e, x: e.predict(x), 2),
        X[:5, :2],
        TARGET[:5],
    ),
    row(
        "pipeline.Pipeline.predict",
        fitted(
            lambda: make_pipeline(preprocessing.StandardScaler(), ridge()),
            lambda e, x: e.predict(x),
            2,
        ),
        X,
        TARGET,
        OTHER,
    ),
    row(
        "model_selection.cross_val_predict",
        lambda x, y: model_selection.cross_val_predict(ridge(), x, y, cv=2),
        X[:5, :2],
        TARGET[:5],
    ),
    row(
        "model_selection.train_test_split",
        lambda x, y: model_selection.train_test_split(x, y, random_state=0),
        X,
        TARGET,
    ),
]
REGRESSION = [
    row(f"metrics.{name}", getattr(metrics, name), TRUE, PREDICTED)
    for name in (
        "d2_absolute_error_score",
        "d2_pinball_score",
        "d2_tweedie_score",
        "explained_variance_score",
        "max_error",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "mean_gamma_deviance",
        "mean_pinball_loss",
        "mean_poisson_deviance",
        "mean_squared_error",
        "mean_squared_log_error",
        "mean_tweedie_deviance",
        "median_absolute_error",
        "r2_score",
        "root_mean_squared_error",
        "root_mean_squared_log_error",
    )
]
REGRESSION.append(
    row(
        "metrics.mean_squared_error of several outputs",
        lambda y, z: metrics.mean_squared_error(y, z, multioutput="raw_values"),
        X,
        X[::-1] ** 2,
        note='with `multioutput="raw_values"`',
    )
)
CLASSIFICATION = [
    *(
        row(f"metrics.{name}", getattr(metrics, name), LABELS, CHANCE)
        for name in (
            "average_precision_score",
            "brier_score_loss",
            "d2_brier_score",
            "d2_log_loss_score",
            "det_curve",
            "log_loss",
            "precision_recall_curve",
            "roc_auc_score",
            "roc_curve",
        )
    ),
    *(
        row(f"metrics.{name}", getattr(metrics, name), LABELS, GUESSED)
        for name in (
            "accuracy_score",
            "balanced_accuracy_score",
            "cohen_kappa_score",
            "confusion_matrix",
            "f1_score",
            "hamming_loss",
            "jaccard_score",
            "multilabel_confusion_matrix",
            "precision_score",
            "recall_score",
            "zero_one_loss",
        )
    ),
    row("metrics.fbeta_score", lambda y, z: metrics.fbeta_score(y, z, beta=2.0), LABELS, GUESSED),
]
CLUSTERS = [
    row(f"metrics.{name}", getattr(metrics, name), X, LABELS)
    for name in ("calinski_harabasz_score", "davies_bouldin_score")
]
PAIRWISE = [
    *(
        row(
            f"metrics.pairwise.{name}",
            getattr(pairwise, name),
            X,
            OTHER,
            also=STRICT * (name == "euclidean_distances"),
        )
        for name in (
            "cosine_similarity",
            "cosine_distances",
            "euclidean_distances",
            "laplacian_kernel",
            "linear_kernel",
            "manhattan_distances",
            "pairwise_distances",
            "pairwise_kernels",
            "polynomial_kernel",
            "rbf_kernel",
            "sigmoid_kernel",
        )
    ),
    *(
        row(f"metrics.pairwise.{name}", getattr(pairwise, name), POSITIVE, ALSO_POSITIVE)
        for name in ("additive_chi2_kernel", "chi2_kernel")
    ),
    *(
        row(f"metrics.pairwise.{name}", getattr(pairwise, name), X, X[::-1] ** 2)
        for name in ("paired_cosine_distances", "paired_euclidean_distances")
    ),
]

CALLS = [*ESTIMATORS, *REGRESSION, *CLASSIFICATION, *CLUSTERS, *PAIRWISE]
SETTINGS = {
    "numpy": Setting("numpy", "numpy, array_api_dispatch=True", switched=True),
    "strict": Setting("strict", "strict, array_api_dispatch=True", switched=True, sample=True),
}
TABLE = Table("scikit-learn", "sklearn", CALLS, settings=SETTINGS)
test_calls = TABLE.test()
