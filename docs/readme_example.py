"""Run the first example of the README as it stands: ``python docs/readme_example.py FOLDER``.

It reads ``adult.csv`` from the folder; where there is none, the raw file of UCI Adult is written there if it is found
(``SKFAIRDP_DATA``), else a table that is made on the spot. The statement of the model is kept beside it.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    print(f"The README's first example, on {write_table(Path('adult.csv'))}:\n")
    names = run()
    statement = names["model"].privacy_statement()
    Path("statement.json").write_text(statement.to_json(), encoding="utf-8")
    Path("statement.html").write_text(statement.to_html(), encoding="utf-8")
    print(f"Wrote {folder}/statement.json and statement.html.")


def run() -> dict[str, Any]:
    """Execute the first block of code; it reads ``adult.csv`` from the present folder."""
    names: dict[str, Any] = {}
    exec(code(0), names)
    return names


def code(index: int) -> str:
    """A block of code of the README."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)[index]


def write_table(path: Path) -> str:
    """Make sure that there is a raw table, and say which."""
    from skfairdp.datasets import data_file

    if path.exists():
        return str(path)
    found = data_file("adult")
    if found is None:
        made_table().to_csv(path, index=False)
        return "a table made on the spot"
    raw = pd.read_csv(found, dtype=str)
    raw.drop(columns="split", errors="ignore").rename(columns={"class": "income"}).to_csv(path, index=False)
    return "UCI Adult as it comes"


def made_table(n_rows: int = 6000) -> pd.DataFrame:
    """Texts, a gap marked by a question mark, the group as a column."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["Female", "Male"], n_rows)
    age = rng.integers(17, 91, n_rows)
    work = rng.choice(["Private", "State-gov", "?"], n_rows, p=[0.7, 0.2, 0.1])
    hours = rng.integers(10, 80, n_rows)
    score = 0.05 * (age - 40) + 0.06 * (hours - 40) + 0.8 * (sex == "Male") + rng.logistic(size=n_rows)
    income = np.where(score > 1, ">50K", "<=50K")
    return pd.DataFrame({"age": age, "workclass": work, "hours": hours, "sex": sex, "income": income})


if __name__ == "__main__":
    main()
