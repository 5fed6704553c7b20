"""The frontier of a private table alone: its releases are all that shows, and they cost what is stated."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skfairdp.inspection._html import frontier_page
from skfairdp.model_selection import frontier_of_table
from skfairdp.model_selection._own_table import _split
from skfairdp.privacy import CommonValues, GaussianDpEvent, GaussianMechanism, RareDisclosure, compose, epsilon_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.replay import Recording
from tests._tools.sources import recording_noise
from tests.schema.test_schema import Hostile

pytestmark = pytest.mark.filterwarnings("ignore")


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    age = rng.integers(18, 66, n) + 15 * (sex == "m")
    return pd.DataFrame({"age": age, "job": rng.choice(["clerk", "nurse"], n), "sex": sex,
                         "rich": np.where(age > 50, "yes", "no")})  # fmt: skip


TABLE = people()
SCHEMA = Schema(
    {"age": Number(18, 80, step=1), "job": Category(["clerk", "nurse"]), "sex": Category(["f", "m"]),
     "rich": Category(["no", "yes"])}, label="rich", groups="sex",
)  # fmt: skip


#: A record to learn from and one to measure on.
LEARNED, HELD = (int(part.index[0]) for part in _split(TABLE, 0.25, 0))


def swept(table, **given):
    options = {"label": "rich", "groups": "sex", "epsilons": [3.0, 9.0], "gaps": [0.1, None], **given}
    return frontier_of_table(table, **options)


class Made:
    def __init__(self, ledger=None):
        self.ledger = ledger

    def __repr__(self):
        return "Made()"


def fit(schema):
    def fitted(made, rows):
        found = swept(rows, schema=schema, epsilons=[9.0])
        made.schema_, made.privacy_, made.frame_ = found.schema, found.privacy, found.frame
        return made

    return fitted


def probe(made):
    return {str(name): made.frame_[name].to_numpy() for name in made.frame_}


NASTY = {
    "extreme": {"age": 1e308, "job": "astronaut", "sex": "x", "rich": "maybe"},
    "hostile": {name: Hostile() for name in TABLE},
    "missing": dict.fromkeys(TABLE),
    "another": {"age": 79, "job": "nurse", "sex": "m", "rich": "no"},
}


def with_record(cells, at):
    rows = TABLE.astype(object)
    for j, name in enumerate(TABLE):
        column = rows[name].to_numpy(copy=True)
        column[at] = cells[name]
        rows.isetitem(j, pd.Series(column, dtype=object))
    return rows


@pytest.fixture(scope="module", params=[None, SCHEMA], ids=["released schema", "given schema"])
def recording(request):
    return Recording(Made, fit(request.param), TABLE, probe)


@pytest.mark.parametrize("what", NASTY)
def test_neighbours_look_the_same_wherever_the_record_lies(recording, what):
    for at in (LEARNED, HELD):
        assert not recording.on(with_record(NASTY[what], at)).differences()


def test_what_is_stated_covers_what_was_released_to_each_part():
    """Schema and generators on one part, tables of predictions on the other: the worse of the two is stated."""
    with recording_noise() as record:
        found = swept(TABLE)
    figures = [r for r in record.releases if isinstance(r.mechanism, GaussianMechanism) and np.ndim(r.private[0]) == 3
               and np.shape(r.private[0]) == (2, 2, 2) and r.private[0].sum() == 300]  # fmt: skip
    assert len(figures) == len(found.frame) == 4
    learned = [r for r in record.releases if not any(r is one for one in figures)]
    for part in (learned, figures):
        squared = sum((r.sensitivity / r.sigma) ** 2 for r in part)
        rare = [RareDisclosure(r.mechanism.failure) for r in part if isinstance(r.mechanism, CommonValues)]
        made = compose(GaussianDpEvent(squared**-0.5), *rare)
        assert epsilon_of(made, 1e-5) <= found.privacy.epsilon * (1 + 1e-9)
    assert found.frame.attrs["epsilon_total"] == found.privacy.epsilon
    assert (found.frame["epsilon"] <= [3.0, 3.0, 9.0, 9.0]).all()


def test_no_row_teaches_and_measures():
    seen = []
    with recording_noise(answer=lambda release: seen.append(release) or release.output):
        swept(TABLE, schema=SCHEMA, gaps=[None])
    sizes = {int(np.sum(r.private[0])) for r in seen if np.ndim(r.private[0]) == 3}
    assert 300 in sizes and len(TABLE) not in sizes


def test_the_seed_fixes_the_split_and_not_the_noise():
    one, other = swept(TABLE, schema=SCHEMA), swept(TABLE, schema=SCHEMA)
    assert one.privacy.event == other.privacy.event
    assert not one.frame["accuracy"].equals(other.frame["accuracy"])


def test_the_code_on_the_page_makes_the_model_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = swept(TABLE, schema=SCHEMA, epsilons=[9.0])
    found.schema.save("schema.yaml")
    page = json.loads(re.search(r'id="data">(.*?)</script>', frontier_page(found.frame), re.S)[1])
    for point in page["panels"][0]["points"]:
        names = {"table": TABLE, "new_table": TABLE.drop(columns=["rich", "sex"])}
        exec(point["code"], names)
        assert names["model"].predict(names["new_table"]).shape == (len(TABLE),)


def test_a_gap_comes_with_a_bound_that_knows_the_noise():
    frame = swept(TABLE, schema=SCHEMA, epsilons=[1.0, 9.0], gaps=[None]).frame
    assert (frame["gap_bound"] > frame["disparity"]).all() and (frame["gap_bound"] <= 1.0).all()
