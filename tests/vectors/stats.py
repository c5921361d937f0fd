"""Writes stats.json: results of numpy, scipy and statsmodels with which the unit tests of src/analysis compare ours.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy scipy statsmodels
    /tmp/venv/bin/python tests/vectors/stats.py
"""

import itertools
import json
import pathlib

import numpy as np
import scipy
import scipy.integrate
import scipy.optimize
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

rng = np.random.default_rng(6)


def some(n, ties=False):
    values = rng.lognormal(0, 0.4, n) - 0.9
    return [round(v, 1) if ties else float(v) for v in values]


def percentiles():
    for n in (1, 2, 6, 13, 37, 400, 3_700):
        values = rng.lognormal(3, 0.7, n)
        shares = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
        yield {"values": list(values), "is": [float(np.quantile(values, share)) for share in shares]}


def ranks():
    """Returns the largest l with P(B < l) <= 2.5 %, and the smallest u with P(B >= u) <= 2.5 %."""
    for share in (0.5, 0.75, 0.9, 0.95, 0.99, 0.999):
        for n in (6, 13, 50, 72, 368, 1_000, 3_688, 20_000):
            k = np.arange(0, n + 2)
            low = int(np.argmax(stats.binom.cdf(k, n, share) > 0.025))
            high = 1 + int(np.argmax(stats.binom.sf(k, n, share) <= 0.025))
            yield {"n": n, "share": share, "is": [low, high] if low >= 1 and high <= n else None}


def intervals():
    for n in (2, 3, 5, 8, 20, 60):
        values = list(rng.lognormal(5, 0.2, n))
        plain = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        log = stats.ttest_1samp(np.log(values), 0).confidence_interval(0.95)
        yield {
            "values": values,
            "plain": [float(np.mean(values)), float(plain.low), float(plain.high)],
            "log": [float(stats.gmean(values)), float(np.exp(log.low)), float(np.exp(log.high))],
        }


def paired():
    for n in (2, 3, 5, 8, 20, 60):
        for shift in (0.0, 0.02, 0.5):
            a = rng.lognormal(4, 0.3, n)
            b = a * rng.lognormal(shift, 0.05, n)
            test = stats.ttest_rel(np.log(b), np.log(a))
            ends = test.confidence_interval(0.95)
            yield {
                "a": list(a),
                "b": list(b),
                "t": float(test.statistic),
                "p": float(test.pvalue),
                "ratio": [float(np.exp(x)) for x in (np.mean(np.log(b / a)), ends.low, ends.high)],
            }


def every_sign(values):
    """Returns the exact p-value with ties, over all signs: scipy computes it only by permutations."""
    values = np.array([v for v in values if v != 0])
    rank = stats.rankdata(np.abs(values))
    seen = min(rank[values > 0].sum(), rank[values < 0].sum())
    sums = np.array([sum(r for r, s in zip(rank, signs) if s) for signs in itertools.product((0, 1), repeat=len(rank))])
    return float(min(1, 2 * np.mean(sums <= seen + 1e-9)))


def wilcoxon():
    for n in (6, 7, 10, 25):
        values = some(n)
        test = stats.wilcoxon(values, method="exact")
        yield {"values": values, "statistic": float(test.statistic), "p": float(test.pvalue), "exact": True}
    for n in (8, 12, 14):
        values = some(n, ties=True)
        test = stats.wilcoxon(values, zero_method="wilcox", correction=True, method="asymptotic")
        yield {"values": values, "statistic": float(test.statistic), "p": every_sign(values), "exact": True}
    for n, ties in ((26, False), (40, False), (40, True), (200, True)):
        values = some(n, ties)
        test = stats.wilcoxon(values, zero_method="wilcox", correction=True, method="asymptotic")
        exact = sum(v != 0 for v in values) <= 25
        assert not exact
        yield {"values": values, "statistic": float(test.statistic), "p": float(test.pvalue), "exact": False}


def holm():
    for m in (1, 2, 5, 17):
        p = list(rng.uniform(0, 1, m) ** 3)
        yield {"p": p, "is": list(multipletests(p, method="holm")[1])}
    yield {"p": [0.04, 0.01, 0.01, 0.5], "is": list(multipletests([0.04, 0.01, 0.01, 0.5], method="holm")[1])}


def beyond(t, df, shift):
    """Returns P(|T'| > t). scipy's noncentral t is NaN for some extreme arguments (df = 1, shift = 16.8), so the integral
    over the measured deviation is used everywhere; it must agree with scipy wherever scipy has a result."""
    spread = lambda s: 2 * s * df * stats.chi2.pdf(df * s * s, df)
    found = lambda s: stats.norm.sf(t * s - shift) + stats.norm.sf(t * s + shift)
    reach = 1 + 14 / np.sqrt(2 * df)
    points = sorted({min(reach, max(0.0, p)) for p in (0.0, shift / t - 3 / t, shift / t, shift / t + 3 / t, 1.0, reach)})
    parts = [scipy.integrate.quad(lambda s: spread(s) * found(s), a, b, epsabs=1e-15, epsrel=1e-13, limit=500)[0]
             for a, b in zip(points, points[1:])]
    with np.errstate(all="ignore"):
        known = stats.nct.sf(t, df, shift) + stats.nct.cdf(-t, df, shift)
    assert np.isnan(known) or abs(known - sum(parts)) < 1e-9, (t, df, shift, known, sum(parts))
    return float(sum(parts))


def power():
    for n in (2, 3, 4, 5, 8, 12, 20, 50, 300):
        for effect in (0.0, 0.1, 0.5, 1.0, 3.0):
            known = float(TTestPower().power(effect, n, 0.05))
            ours = beyond(stats.t.isf(0.025, n - 1), n - 1, effect * np.sqrt(n))
            assert np.isnan(known) or abs(known - ours) < 1e-9
            yield {"n": n, "effect": effect, "is": ours}


def detectable():
    for n in (2, 3, 4, 5, 8, 12, 20, 50, 300):
        # statsmodels' solve_power computes the same, to fewer digits.
        f = lambda effect: beyond(stats.t.isf(0.025, n - 1), n - 1, effect * np.sqrt(n)) - 0.8
        yield {"n": n, "is": float(scipy.optimize.brentq(f, 1e-3, 30, xtol=1e-14, rtol=1e-14))}


def pairs():
    for effect in (0.1, 0.3, 0.5, 0.8, 1.0, 1.7, 3.0):
        n = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
        yield {"effect": effect, "is": int(np.ceil(n))}


def student():
    for df in (1, 2, 3, 4, 7, 10, 30, 200):
        yield {"df": df, "critical": float(stats.t.isf(0.025, df)), "p": [[t, float(2 * stats.t.sf(t, df))] for t in (0, 0.3, 1, 2.5, 9, 40)]}


def noncentral():
    for df in (1, 2, 3, 5, 9, 30, 120):
        for t in (2.0, 4.5, 12.7):
            for shift in (0.0, 0.7, 3.0, 9.0, 20.0):
                yield {"df": df, "t": t, "shift": shift, "is": beyond(t, df, shift)}


made = {
    "made_by": f"tests/vectors/stats.py with numpy {np.__version__}, scipy {scipy.__version__}, statsmodels {statsmodels.__version__}",
    **{f.__name__: list(f()) for f in (percentiles, ranks, intervals, paired, wilcoxon, holm, power, detectable, pairs, student, noncentral)},
}
path = pathlib.Path(__file__).with_name("stats.json")
lines = ["{", f' "made_by": {json.dumps(made.pop("made_by"))},']
for index, (name, cases) in enumerate(made.items()):
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    lines.append(f' "{name}": [\n{rows}\n ]' + ("," if index + 1 < len(made) else ""))
path.write_text("\n".join(lines) + "\n}\n")
