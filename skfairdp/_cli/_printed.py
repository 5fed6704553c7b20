"""What is printed of a frontier: the models that no other one beats, what they cost, and what is to be noted."""

import math
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: What helps in Python, and is nothing that the command line takes.
_IN_PYTHON_ALONE = {
    ", or give public rows": "",
    ", give public rows of that group": "",
    r", or of the release: known=\{.*?\}\.": ", or of a --schema.",
    r": known=\{.*?\}([;.])": r": write a file (skfairdp schema TABLE --out FILE) and give it as --schema FILE\1",
    r"\b([Rr]aise) '?epsilon'?": r"\1 --epsilon",
}
_TECHNICAL = (DeprecationWarning, FutureWarning, RuntimeWarning)  # of other libraries, for their programmers


def print_frontier(table: "pd.DataFrame") -> None:
    """Print the models that no other one beats, and what the whole table costs."""
    from skfairdp.inspection import epsilon_meaning, epsilon_text

    same = ["epsilon", "disparity", "accuracy", "coverage"]
    distinct = table.sort_values(["epsilon", "disparity", "idp3", "gamma"]).drop_duplicates(same)
    shown = distinct[distinct["non_dominated"]]
    attrs = table.attrs
    delta = f"{attrs['delta']:g}".replace("e-0", "e-")
    print(
        f"\n{len(table)} models with {len(distinct)} different outcomes; the {len(shown)} below are not beaten by "
        f"another one in ε, gap, accuracy and coverage.\nε is certified and protects one {attrs['protects']} "
        f"({attrs['neighboring_relation']}), δ = {delta}.\n"
    )
    several = table["estimator"].nunique() > 1
    print(f"{'ε':>7} {'γ':>6} {'IDP3':>6} {'gap':>7} {'accuracy':>9} {'coverage':>9}{'  method' if several else ''}")
    for row in shown.to_dict("records"):
        gamma = "none" if math.isnan(row["gamma"]) else f"{row['gamma']:g}"
        refuses = "no" if not row["idp3"] else "alone" if math.isnan(row["student_gamma"]) else "top"
        print(
            f"{epsilon_text(row['epsilon']):>7} {gamma:>6} {refuses:>6} "
            f"{_gap_text(row['disparity']):>7} {row['accuracy']:>9.2%} {row['coverage']:>9.1%}"
            + (f"  {row['estimator']}" if several else "")
        )
    for one in attrs.get("references", []):
        print(f"{'':>22} {one['disparity']:>7.3f} {one['accuracy']:>9.2%}  to compare with: {one['name']}")
    if shown["idp3"].any():
        print("\nIDP3 top: on top of a student held to γ. IDP3 alone: over a free student, so it refuses more.")
    print(
        f"\nPublishing the whole table ({_releases(attrs['n_fits'])}) costs "
        f"ε = {epsilon_text(attrs['epsilon_total'])} at δ = {delta}.\n"
        f"{epsilon_meaning(attrs['epsilon_total'], attrs['delta'], attrs['protects'])}\n"
        + (
            f"Gap, accuracy and coverage: {attrs['n_test']:,} test rows, which no ε covers."
            if "n_test" in attrs
            else "Gap, accuracy and coverage: noisy tables of rows that no model has seen, covered by the same ε."
        )
    )
    _print_noise(table)


def _print_noise(table: "pd.DataFrame") -> None:
    """Print how far the figures of a table are to be trusted, where they are noisy."""
    if "accuracy_error" in table:
        print(
            f"Each accuracy is right to within {table['accuracy_error'].max():.1%} (95 %), noise and sampling "
            "together: models that lie closer are not told apart."
        )
    if table["disparity"].isna().any():
        print("A gap of '?' is not known: the noise hides all groups but one. More rows or a larger ε show it.")


def _releases(number: int) -> str:
    return "1 release, every γ from it" if number == 1 else f"{number} releases, every γ from them"


def _gap_text(gap: float) -> str:
    return "?" if math.isnan(gap) else f"{gap:.3f}"


def print_notes(table: "pd.DataFrame", caught: Sequence[warnings.WarningMessage]) -> None:
    """Print each warning once, and hand it to the page."""
    ours = [warning for warning in caught if warning.category.__module__ in ("builtins", "skfairdp.exceptions")]
    spoken = [str(warning.message) for warning in ours if not issubclass(warning.category, _TECHNICAL)]
    for words, instead in _IN_PYTHON_ALONE.items():
        spoken = [re.sub(words, instead, said) for said in spoken]
    table.attrs["notes"] = list(dict.fromkeys(spoken))
    for message in table.attrs["notes"]:
        print(f"Note: {message}")
