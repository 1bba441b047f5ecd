"""The conformance tests that PyTorch cannot pass, with the reasons."""

DEFAULT = (
    "the result is of at least the library's default dtype, which is float32 in PyTorch "
    "and float64 in NumPy"
)
INTEGERS = (
    "average",
    "cov",
    "gradient",
    "median",
    "nanmean",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "nanstd",
    "nanvar",
    "percentile",
    "quantile",
)

EXEMPTIONS = {
    **{f"{name}/forward/rows@float32": DEFAULT for name in ("corrcoef", "cov")},
    **{f"{name}/forward/integers": DEFAULT for name in INTEGERS},
    "copy_slices/forward/complex-imag,-infinite": "the sum of complex numbers of which one is "
    "infinite is nan in PyTorch",
    "getitem/override/backwards": "the default is PyTorch's own indexing, which has no negative "
    "steps",
    "pow/kink/powers-of-complex-0": "0**0 of complex numbers is nan in PyTorch",
    **{
        f"special.lpmv/{check}/real-degrees*": "PyTorch has no lpmv, and the form in the standard "
        "takes integer degrees"
        for check in ("dual", "forward", "jvp", "nested", "second", "vjp")
    },
}
