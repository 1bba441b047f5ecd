"""An example of each operation and its result, rounded.

Written by `make stubs` from the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "special.bdtr": ("mg.special.bdtr(1, 3, mg.asarray([0.25, 0.5])).tolist()", "[0.8438, 0.5]"),
    "special.bdtrc": ("mg.special.bdtrc(1, 3, mg.asarray([0.25, 0.5])).tolist()", "[0.1562, 0.5]"),
    "special.bdtri": ("mg.special.bdtri(1, 3, mg.asarray([0.25, 0.5])).tolist()", "[0.6736, 0.5]"),
    "special.beta": (
        "mg.special.beta(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[3.2, 3.1416]",
    ),
    "special.betainc": (
        "mg.special.betainc(2.0, 3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.2617, 0.6875]",
    ),
    "special.betaincc": (
        "mg.special.betaincc(2.0, 3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.7383, 0.3125]",
    ),
    "special.betainccinv": (
        "mg.special.betainccinv(2.0, 3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.5437, 0.3857]",
    ),
    "special.betaincinv": (
        "mg.special.betaincinv(2.0, 3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.243, 0.3857]",
    ),
    "special.betaln": (
        "mg.special.betaln(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[1.1632, 1.1447]",
    ),
    "special.binom": ("mg.special.binom(mg.asarray([4.0, 5.0]), 2.0).tolist()", "[6.0, 10.0]"),
    "special.boxcox": (
        "mg.special.boxcox(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[-0.4688, -0.5858]",
    ),
    "special.boxcox1p": (
        "mg.special.boxcox1p(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[0.2812, 0.4495]",
    ),
    "special.cbrt": ("mg.special.cbrt(mg.asarray([0.25, 0.5])).tolist()", "[0.63, 0.7937]"),
    "special.chdtr": (
        "mg.special.chdtr(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.0309, 0.0811]",
    ),
    "special.chdtrc": (
        "mg.special.chdtrc(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.9691, 0.9189]",
    ),
    "special.chdtri": (
        "mg.special.chdtri(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[4.1083, 2.366]",
    ),
    "special.cosdg": ("mg.special.cosdg(mg.asarray([30.0, 45.0])).tolist()", "[0.866, 0.7071]"),
    "special.cosm1": ("mg.special.cosm1(mg.asarray([0.25, 0.5])).tolist()", "[-0.0311, -0.1224]"),
    "special.cotdg": ("mg.special.cotdg(mg.asarray([30.0, 45.0])).tolist()", "[1.7321, 1.0]"),
    "special.digamma": (
        "mg.special.digamma(mg.asarray([0.25, 0.5])).tolist()",
        "[-4.2275, -1.9635]",
    ),
    "special.ellipe": ("mg.special.ellipe(mg.asarray([0.25, 0.5])).tolist()", "[1.4675, 1.3506]"),
    "special.ellipk": ("mg.special.ellipk(mg.asarray([0.25, 0.5])).tolist()", "[1.6858, 1.8541]"),
    "special.ellipkm1": (
        "mg.special.ellipkm1(mg.asarray([0.25, 0.5])).tolist()",
        "[2.1565, 1.8541]",
    ),
    "special.entr": ("mg.special.entr(mg.asarray([0.25, 0.5])).tolist()", "[0.3466, 0.3466]"),
    "special.erf": ("mg.special.erf(mg.asarray([0.25, 0.5])).tolist()", "[0.2763, 0.5205]"),
    "special.erfc": ("mg.special.erfc(mg.asarray([0.25, 0.5])).tolist()", "[0.7237, 0.4795]"),
    "special.erfcx": ("mg.special.erfcx(mg.asarray([0.25, 0.5])).tolist()", "[0.7703, 0.6157]"),
    "special.erfinv": ("mg.special.erfinv(mg.asarray([0.25, 0.5])).tolist()", "[0.2253, 0.4769]"),
    "special.exp1": ("mg.special.exp1(mg.asarray([0.25, 0.5])).tolist()", "[1.0443, 0.5598]"),
    "special.exp10": ("mg.special.exp10(mg.asarray([0.25, 0.5])).tolist()", "[1.7783, 3.1623]"),
    "special.exp2": ("mg.special.exp2(mg.asarray([0.25, 0.5])).tolist()", "[1.1892, 1.4142]"),
    "special.expi": ("mg.special.expi(mg.asarray([0.25, 0.5])).tolist()", "[-0.5425, 0.4542]"),
    "special.expit": ("mg.special.expit(mg.asarray([0.25, 0.5])).tolist()", "[0.5622, 0.6225]"),
    "special.expn": ("mg.special.expn(2, mg.asarray([0.25, 0.5])).tolist()", "[0.5177, 0.3266]"),
    "special.exprel": ("mg.special.exprel(mg.asarray([0.25, 0.5])).tolist()", "[1.1361, 1.2974]"),
    "special.fdtr": (
        "mg.special.fdtr(4.0, 5.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.1019, 0.2608]",
    ),
    "special.fdtrc": (
        "mg.special.fdtrc(4.0, 5.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.8981, 0.7392]",
    ),
    "special.fdtri": (
        "mg.special.fdtri(4.0, 5.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.4826, 0.9646]",
    ),
    "special.gamma": ("mg.special.gamma(mg.asarray([0.25, 0.5])).tolist()", "[3.6256, 1.7725]"),
    "special.gammainc": (
        "mg.special.gammainc(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.0022, 0.0144]",
    ),
    "special.gammaincc": (
        "mg.special.gammaincc(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.9978, 0.9856]",
    ),
    "special.gammainccinv": (
        "mg.special.gammainccinv(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[3.9204, 2.6741]",
    ),
    "special.gammaincinv": (
        "mg.special.gammaincinv(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[1.7273, 2.6741]",
    ),
    "special.gammaln": ("mg.special.gammaln(mg.asarray([0.25, 0.5])).tolist()", "[1.288, 0.5724]"),
    "special.gammasgn": ("mg.special.gammasgn(mg.asarray([0.25, 0.5])).tolist()", "[1.0, 1.0]"),
    "special.gdtr": (
        "mg.special.gdtr(2.0, 1.5, mg.asarray([0.25, 0.5])).tolist()",
        "[0.1987, 0.4276]",
    ),
    "special.gdtrc": (
        "mg.special.gdtrc(2.0, 1.5, mg.asarray([0.25, 0.5])).tolist()",
        "[0.8013, 0.5724]",
    ),
    "special.gelu": ("mg.special.gelu(mg.asarray([0.25, 0.5])).tolist()", "[0.1497, 0.3457]"),
    "special.huber": ("mg.special.huber(1.0, mg.asarray([0.5, 3.0])).tolist()", "[0.125, 2.5]"),
    "special.hurwitz_zeta": (
        "mg.special.hurwitz_zeta(mg.asarray([2.0, 4.0]), 1.5).tolist()",
        "[0.9348, 0.2348]",
    ),
    "special.hyp1f1": (
        "mg.special.hyp1f1(1.0, 2.0, mg.asarray([0.25, 0.5])).tolist()",
        "[1.1361, 1.2974]",
    ),
    "special.i0": ("mg.special.i0(mg.asarray([0.25, 0.5])).tolist()", "[1.0157, 1.0635]"),
    "special.i0e": ("mg.special.i0e(mg.asarray([0.25, 0.5])).tolist()", "[0.791, 0.645]"),
    "special.i1": ("mg.special.i1(mg.asarray([0.25, 0.5])).tolist()", "[0.126, 0.2579]"),
    "special.i1e": ("mg.special.i1e(mg.asarray([0.25, 0.5])).tolist()", "[0.0981, 0.1564]"),
    "special.inv_boxcox": (
        "mg.special.inv_boxcox(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[1.2247, 1.5625]",
    ),
    "special.inv_boxcox1p": (
        "mg.special.inv_boxcox1p(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[0.2247, 0.5625]",
    ),
    "special.iv": ("mg.special.iv(2, mg.asarray([0.25, 0.5])).tolist()", "[0.0079, 0.0319]"),
    "special.ive": ("mg.special.ive(2, mg.asarray([0.25, 0.5])).tolist()", "[0.0061, 0.0194]"),
    "special.j0": ("mg.special.j0(mg.asarray([0.25, 0.5])).tolist()", "[0.9844, 0.9385]"),
    "special.j1": ("mg.special.j1(mg.asarray([0.25, 0.5])).tolist()", "[0.124, 0.2423]"),
    "special.jv": ("mg.special.jv(2, mg.asarray([0.25, 0.5])).tolist()", "[0.0078, 0.0306]"),
    "special.k0": ("mg.special.k0(mg.asarray([0.25, 0.5])).tolist()", "[1.5415, 0.9244]"),
    "special.k0e": ("mg.special.k0e(mg.asarray([0.25, 0.5])).tolist()", "[1.9793, 1.5241]"),
    "special.k1": ("mg.special.k1(mg.asarray([0.25, 0.5])).tolist()", "[3.747, 1.6564]"),
    "special.k1e": ("mg.special.k1e(mg.asarray([0.25, 0.5])).tolist()", "[4.8113, 2.731]"),
    "special.kl_div": (
        "mg.special.kl_div(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[1.2301, 0.0]",
    ),
    "special.kv": ("mg.special.kv(2, mg.asarray([0.25, 0.5])).tolist()", "[31.5177, 7.5502]"),
    "special.kve": ("mg.special.kve(2, mg.asarray([0.25, 0.5])).tolist()", "[40.4695, 12.4481]"),
    "special.log_expit": (
        "mg.special.log_expit(mg.asarray([0.25, 0.5])).tolist()",
        "[-0.5759, -0.4741]",
    ),
    "special.log_ndtr": (
        "mg.special.log_ndtr(mg.asarray([0.25, 0.5])).tolist()",
        "[-0.513, -0.3689]",
    ),
    "special.loggamma": (
        "mg.special.loggamma(mg.asarray([0.25, 0.5])).tolist()",
        "[1.288, 0.5724]",
    ),
    "special.logit": ("mg.special.logit(mg.asarray([0.25, 0.5])).tolist()", "[-1.0986, 0.0]"),
    "special.lpmv": (
        "mg.special.lpmv(1, 2, mg.asarray([0.25, 0.5])).tolist()",
        "[-0.7262, -1.299]",
    ),
    "special.multigammaln": (
        "mg.special.multigammaln(mg.asarray([3.0, 4.0]), 2).tolist()",
        "[1.5502, 3.5651]",
    ),
    "special.nbdtr": (
        "mg.special.nbdtr(1, 3, mg.asarray([0.25, 0.5])).tolist()",
        "[0.0508, 0.3125]",
    ),
    "special.nbdtrc": (
        "mg.special.nbdtrc(1, 3, mg.asarray([0.25, 0.5])).tolist()",
        "[0.9492, 0.6875]",
    ),
    "special.nbdtri": (
        "mg.special.nbdtri(1, 3, mg.asarray([0.25, 0.5])).tolist()",
        "[0.4563, 0.6143]",
    ),
    "special.ndtr": ("mg.special.ndtr(mg.asarray([0.25, 0.5])).tolist()", "[0.5987, 0.6915]"),
    "special.ndtri": ("mg.special.ndtri(mg.asarray([0.25, 0.5])).tolist()", "[-0.6745, 0.0]"),
    "special.pdtr": ("mg.special.pdtr(2, mg.asarray([0.25, 0.5])).tolist()", "[0.9978, 0.9856]"),
    "special.pdtrc": ("mg.special.pdtrc(2, mg.asarray([0.25, 0.5])).tolist()", "[0.0022, 0.0144]"),
    "special.pdtri": ("mg.special.pdtri(2, mg.asarray([0.25, 0.5])).tolist()", "[3.9204, 2.6741]"),
    "special.poch": ("mg.special.poch(mg.asarray([4.0, 5.0]), 2.0).tolist()", "[20.0, 30.0]"),
    "special.polygamma": (
        "mg.special.polygamma(2, mg.asarray([0.25, 0.5])).tolist()",
        "[-129.3277, -16.8288]",
    ),
    "special.pseudo_huber": (
        "mg.special.pseudo_huber(1.0, mg.asarray([0.5, 3.0])).tolist()",
        "[0.118, 2.1623]",
    ),
    "special.psi": ("mg.special.psi(mg.asarray([0.25, 0.5])).tolist()", "[-4.2275, -1.9635]"),
    "special.radian": (
        "mg.special.radian(mg.asarray([90.0, 180.0]), 30.0, 0.0).tolist()",
        "[1.5795, 3.1503]",
    ),
    "special.rel_entr": (
        "mg.special.rel_entr(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[-0.5199, 0.0]",
    ),
    "special.rgamma": ("mg.special.rgamma(mg.asarray([0.25, 0.5])).tolist()", "[0.2758, 0.5642]"),
    "special.riemann_zeta": (
        "mg.special.riemann_zeta(mg.asarray([2.0, 4.0])).tolist()",
        "[1.6449, 1.0823]",
    ),
    "special.sinc": ("mg.special.sinc(mg.asarray([0.25, 0.5])).tolist()", "[0.9003, 0.6366]"),
    "special.sindg": ("mg.special.sindg(mg.asarray([30.0, 45.0])).tolist()", "[0.5, 0.7071]"),
    "special.spence": ("mg.special.spence(mg.asarray([0.25, 0.5])).tolist()", "[0.9785, 0.5822]"),
    "special.stdtr": (
        "mg.special.stdtr(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[0.5906, 0.6743]",
    ),
    "special.stdtrit": (
        "mg.special.stdtrit(3.0, mg.asarray([0.25, 0.5])).tolist()",
        "[-0.7649, 0.0]",
    ),
    "special.tandg": ("mg.special.tandg(mg.asarray([30.0, 45.0])).tolist()", "[0.5774, 1.0]"),
    "special.xlog1py": (
        "mg.special.xlog1py(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[0.2747, 0.2027]",
    ),
    "special.xlogy": (
        "mg.special.xlogy(mg.asarray([0.25, 0.5]), mg.asarray([2.0, 0.5])).tolist()",
        "[0.1733, -0.3466]",
    ),
    "special.y0": ("mg.special.y0(mg.asarray([0.25, 0.5])).tolist()", "[-0.9316, -0.4445]"),
    "special.y1": ("mg.special.y1(mg.asarray([0.25, 0.5])).tolist()", "[-2.7041, -1.4715]"),
    "special.yn": ("mg.special.yn(2, mg.asarray([0.25, 0.5])).tolist()", "[-20.7013, -5.4414]"),
    "special.yv": ("mg.special.yv(2, mg.asarray([0.25, 0.5])).tolist()", "[-20.7013, -5.4414]"),
    "special.zeta": ("mg.special.zeta(mg.asarray([2.0, 4.0])).tolist()", "[1.6449, 1.0823]"),
    "special.zeta_derivative": (
        "mg.special.zeta_derivative(1, mg.asarray([2.0, 4.0]), 1.5).tolist()",
        "[-1.0245, -0.1207]",
    ),
    "special.zetac": ("mg.special.zetac(mg.asarray([2.0, 4.0])).tolist()", "[0.6449, 0.0823]"),
}
