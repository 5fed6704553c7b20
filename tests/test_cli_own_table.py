"""The command line on a user's own file: what it writes, what it says, and that every mistake is one line."""

import contextlib
import errno
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skfairdp
import skfairdp.__main__ as cli
from skfairdp._cli import read_table
from skfairdp.privacy import PrivacyLedger, verify_file
from skfairdp.schema import Boolean, Category, Date, Number, Schema
from tests._tools.inside import check_columns, replaced
from tests._tools.sources import recording_noise


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n)
    age = rng.integers(18, 66, n) + 15 * (sex == "Male")
    job = rng.choice(["clerk", "nurse", "?"], n, p=[0.5, 0.4, 0.1])
    rich = age + rng.normal(0, 5, n) > 50
    return pd.DataFrame({"age": age, "job": job, "name": [f"p{i}" for i in range(n)], "sex": sex,
                         "income": np.where(rich, "high", "low")})  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "people.csv"
    people(3_000).to_csv(path, index=False)
    return path


def in_a_shell(*arguments):
    command = [sys.executable, "-m", "skfairdp", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def run(*arguments):
    """The same in this process: a new one takes seconds to import all that is used."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        code = cli.main(list(map(str, arguments)))
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


ROLES = ("--label", "income", "--group", "sex")


def test_a_table_alone_gives_a_frontier_a_schema_and_a_statement_that_verifies(table, tmp_path):
    done = run("frontier", table, *ROLES, "--epsilon", 1, 4, "--methods", "synthetic", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["frontier.csv", "frontier.html", "frontier.png", "ledger.jsonl", "privacy.json", "schema.yaml"]
    frame = pd.read_csv(tmp_path / "out" / "frontier.csv")
    assert len(frame) == 6 and (frame.groupby(frame["epsilon"] < 1.01)["epsilon"].max() <= [4.0, 1.0]).all()
    assert frame["accuracy"].max() > 0.8 and frame["disparity"].max() > 0.15
    held = frame[(frame["gamma"] == 0.02) & (frame["epsilon"] > 1.01)]
    assert held["disparity"].item() < frame["disparity"].max() / 2
    schema = Schema.load(tmp_path / "out" / "schema.yaml")
    assert schema.classes == ("high", "low") and "name" not in schema.columns
    assert "leaves out ['name']" in done.stdout and "majority class" in done.stdout
    assert "that noise hides, if there are any, counted here as {'income': " in done.stdout and "'sex': " in done.stdout
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert 3.9 < statement["epsilon"] < 4.6 and statement["delta"] == 1e-5
    assert len(statement["ledger"]["entries"]) == 2 and all(part["on_ledger"] for part in statement["parts"])
    assert f"costs ε = {np.ceil(statement['epsilon'] * 100) / 100:g}" in done.stdout
    assert all(check.holds for check in verify_file(tmp_path / "out" / "privacy.json"))
    checked = run("verify", tmp_path / "out" / "privacy.json")
    assert checked.returncode == 0 and "claims hold" in checked.stdout
    page = (tmp_path / "out" / "frontier.html").read_text()
    assert "noisy tables of rows that no model has seen" in page and "p17" not in page


def figure(pattern, text):
    return float(re.search(pattern, text)[1])


def test_the_price_is_said_first_and_an_account_is_kept_over_several_runs(table, tmp_path, monkeypatch):
    """Of two runs, the second with the schema that the first one paid for: on one account nothing counts twice."""
    asked = ("frontier", table, *ROLES, "--epsilon", 1, "--methods", "synthetic", "--out", tmp_path / "out")
    done = run(*asked, "--budget", 1.2)
    assert done.returncode == 0, done.stderr
    most = figure(r"This will spend ε = ([\d.]+) at δ = 1e-5", done.stdout)
    first = json.loads((tmp_path / "out" / "privacy.json").read_text())["epsilon"]
    assert done.stdout.index("This will spend") < done.stdout.index("models with") and first <= most <= 1.02 * first
    assert figure(r"ledger.jsonl: ε = ([\d.]+) at", done.stdout) == pytest.approx(first, abs=1e-3)
    kept = tmp_path / "schema.yaml"
    kept.write_bytes((tmp_path / "out" / "schema.yaml").read_bytes())
    again = run(*asked, "--schema", kept)  # 1 and .98 are more than 1.2
    assert (
        again.returncode == 2 and "over its ceiling of 1.2" in again.stderr and "Nothing was released" in again.stderr
    )
    assert f"ε = {first:.4g}, a ceiling of 1.2" in again.stdout
    assert (tmp_path / "out" / "schema.yaml").read_bytes() == kept.read_bytes()
    other = run(*asked[:-1], tmp_path / "other", "--schema", kept, "--ledger", tmp_path / "account")
    assert other.returncode == 0, other.stderr
    statement = json.loads((tmp_path / "other" / "privacy.json").read_text())
    assert 0.98 <= statement["epsilon"] <= 1.0 and Schema.load(tmp_path / "other" / "schema.yaml") == Schema.load(kept)
    assert "RareDisclosure" in json.dumps(statement["event"])  # of the schema
    on_account = figure(r"account: ε = ([\d.]+) at", other.stdout)
    assert on_account == pytest.approx(statement["epsilon"], abs=1e-3)
    assert (
        run("verify", tmp_path / "account").returncode
        == 0
        == run("verify", tmp_path / "other" / "privacy.json").returncode
    )


def test_a_schema_found_in_part_is_kept_and_the_next_run_goes_on_with_it(tmp_path):
    people(3000).assign(income=np.arange(3000) % 700).to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "out"
    done = run("frontier", tmp_path / "people.csv", *ROLES, "--epsilon", 2, "--methods", "synthetic", "--out", out)
    assert done.returncode == 2 and f"{out / 'schema.yaml'} holds the columns that were found" in done.stderr
    said = (out / "schema.yaml").read_text()
    assert "released:" in said and "values: null" in said
    (out / "schema.yaml").write_text(said.replace("values: null", "values: [0, 1]\n    others: 0"))
    done = run("frontier", tmp_path / "people.csv", "--schema", out / "schema.yaml", "--epsilon", 2, "--methods",
               "synthetic", "--out", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "that noise hides" not in done.stdout  # nothing is found here
    statement = json.loads((out / "privacy.json").read_text())
    assert 1.9 < statement["epsilon"] <= 2.0 and "RareDisclosure" in json.dumps(statement["event"])
    assert figure(r"ledger.jsonl: ε = ([\d.]+) at", done.stdout) == pytest.approx(statement["epsilon"], abs=1e-3)


@pytest.mark.parametrize("file", ["frontier.csv", "privacy.json", "schema.yaml", "ledger.jsonl"])
def test_nothing_is_written_through_a_link(table, tmp_path, file):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / file).symlink_to(tmp_path / "mine.txt")
    done = run("frontier", table, *ROLES, "--out", tmp_path / "out")
    assert done.returncode == 2 and "is a link" in done.stderr and (tmp_path / "mine.txt").read_text() == "mine"
    done = run("schema", table, "--out", tmp_path / "out" / "schema.yaml")
    if file == "schema.yaml":
        assert done.returncode == 2 and (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("file", ["frontier.csv", "schema.yaml"])
def test_no_result_takes_the_place_of_a_file_that_is_read(table, tmp_path, file):
    """Neither of the table, nor of a schema that was written by hand: both were lost, where they had such a name."""
    given = {"frontier.csv": table.read_text(), "schema.yaml": "columns:\n  age: {kind: number, low: null, high: 90}\n"}
    (tmp_path / file).write_text(given[file])
    read = [tmp_path / file] if file == "frontier.csv" else [table, "--schema", tmp_path / file]
    done = run("frontier", *read, *ROLES, "--epsilon", 1, "--methods", "synthetic", "--out", tmp_path)
    assert done.returncode == 2 and "it is what this command reads. Rename it" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [file] and (tmp_path / file).read_text() == given[file]


def test_a_link_that_comes_while_fits_run_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with replaced(tmp_path) as new:
        (new / "page.html").write_text("page")
        (tmp_path / "page.html").symlink_to(tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine" and (tmp_path / "page.html").read_text() == "page"


@pytest.mark.parametrize(
    ("content", "budget", "says"),
    [("hello", [], "is not the account of an earlier run"), (None, ["--budget", "2"], "has a ceiling of 3 already")],
)
def test_a_file_that_is_no_account_and_another_ceiling_are_refused(table, tmp_path, content, budget, says):
    if content is None:
        PrivacyLedger(3.0, path=tmp_path / "account")
    else:
        (tmp_path / "account").write_text(content)
    done = run("frontier", table, *ROLES, "--out", tmp_path / "out", "--ledger", tmp_path / "account", *budget)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.slow
def test_every_method_is_compared_and_what_all_of_it_costs_is_said(tmp_path):
    people(1600).to_csv(tmp_path / "people.csv", index=False)
    done = run("frontier", tmp_path / "people.csv", *ROLES, "--epsilon", 3, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "out" / "frontier.csv")
    assert set(frame["estimator"]) == {"SyntheticDataClassifier", "FairPATEClassifier", "FairDPSGDClassifier"}
    assert (frame["epsilon"] <= 3.0).all() and "SyntheticDataClassifier" in done.stdout
    assert "IDP3 top" not in done.stdout  # no row of it
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert 3 < statement["epsilon"] < 9 and "(3 releases, every γ from them) costs ε" in done.stdout
    page = (tmp_path / "out" / "frontier.html").read_text()
    shown = f"{np.ceil(statement['epsilon'] * 100) / 100:g}"
    assert f"Publishing every model on this page costs ε = {shown}" in page
    assert run("verify", tmp_path / "out" / "privacy.json").returncode == 0


@pytest.mark.slow
def test_with_a_schema_nothing_is_paid_for_it(table, tmp_path):
    template = run("schema", table, *ROLES)
    assert (
        template.returncode == 0 and "low: null" in template.stdout and template.stdout.startswith("# What is public")
    )
    filled = {
        "columns": {
            "age": {"kind": "number", "low": 18, "high": 80, "step": 1},
            "job": {"kind": "category", "values": ["clerk", "nurse"], "missing": True},
            "sex": {"kind": "category", "values": ["Female", "Male"]},
            "income": {"kind": "category", "values": ["high", "low"]},
        },
        "label": "income",
        "groups": ["sex"],
    }
    (tmp_path / "schema.json").write_text(json.dumps(filled))
    done = run("frontier", table, "--schema", tmp_path / "schema.json", "--epsilon", 2, "--methods", "synthetic",
               "--out", tmp_path / "out")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "out" / "schema.yaml").exists()
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert 1.99 < statement["epsilon"] <= 2.0 + 1e-9
    assert "RareDisclosure" not in json.dumps(statement["event"])


def test_the_template_is_a_schema_to_fill_in_and_is_never_replaced(table, tmp_path):
    out = tmp_path / "schema.yaml"
    first = run("schema", table, *ROLES, "--out", out)
    assert first.returncode == 0 and f"skfairdp frontier TABLE --schema {out}" in first.stdout
    with pytest.raises(ValueError, match="not filled in yet"):
        Schema.load(out)
    again = run("schema", table, "--out", out)
    assert again.returncode == 2 and "may be filled in already" in again.stderr


def test_whole_numbers_of_a_column_with_blanks_are_read_as_in_python(tmp_path):
    table = pd.DataFrame({"smoker": [1, None, 0], "code": [0, 1, None], "day": [19780405, None, 20010101]})
    table.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema(
        {
            "smoker": Boolean(missing=True),
            "code": Category([0, 1], missing=True),
            "day": Date("1970-01-01", "2020-01-01", format="%Y%m%d", missing=True),
        }
    )
    for of_texts in (schema.misfits(read_table(str(tmp_path / "t.csv"), types=False)), schema.misfits(table)):
        assert not of_texts.drop("day").any()


def test_messages_of_the_command_line_name_its_own_options(tmp_path):
    people(400).assign(sex=["", *["m", "f"] * 199, "f"]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "s.yaml").write_text(
        "columns:\n  age: {kind: number, low: 17, high: 90}\n  sex: {kind: category, values: [f, m]}\n"
        "  income: {kind: category, values: [low, high]}\nlabel: income\ngroups: [sex]\n"
    )
    done = run("frontier", tmp_path / "t.csv", "--schema", tmp_path / "s.yaml", "--epsilon", 1, "--out", tmp_path / "o")
    assert done.returncode == 2 and "skfairdp schema check TABLE --schema FILE counts them" in done.stderr
    assert "'missing: true'" in done.stderr and "Category(" not in done.stderr
    people(3).to_csv(tmp_path / "few.csv", index=False)
    done = run("frontier", tmp_path / "few.csv", *ROLES, "--epsilon", 1, "--out", tmp_path / "o")
    assert done.returncode == 2 and "['income', 'sex']" in done.stderr and "inf" not in done.stderr


@pytest.mark.parametrize("twice", [("--subject", "sex"), ("--label", "sex")])
def test_roles_of_a_template_are_different_columns(table, twice):
    done = run("schema", table, "--group", "sex", *twice)
    assert done.returncode == 2 and "name 'sex' twice" in done.stderr


@pytest.mark.parametrize("file", ["privacy.json", "frontier.csv", "schema.yaml"])
def test_no_result_takes_the_place_of_the_account_that_is_charged(table, tmp_path, file):
    out = tmp_path / "out"
    done = run("frontier", table, *ROLES, "--epsilon", 1, "--out", out, "--ledger", out / file)
    assert done.returncode == 2 and f"cannot replace {out / file}" in done.stderr and not (out / file).exists()


def test_a_schema_that_somebody_wrote_is_not_replaced_by_a_released_one(table, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "schema.yaml").write_text("columns:\n  age: {kind: number, low: 17, high: 90}\n")
    done = run("frontier", table, *ROLES, "--epsilon", 1, "--out", tmp_path / "out")
    assert done.returncode == 2 and "somebody wrote it" in done.stderr and not (tmp_path / "out/ledger.jsonl").exists()


def test_columns_of_several_levels_are_read_by_their_names(tmp_path):
    pd.DataFrame({("a", "x"): [1, 2], ("b", "y"): [3, 4]}).to_parquet(tmp_path / "t.parquet")
    assert list(read_table(str(tmp_path / "t.parquet"), types=False).columns) == ["('a', 'x')", "('b', 'y')"]


def test_a_schema_is_checked_against_the_table_before_anything_is_spent(tmp_path):
    (tmp_path / "t.csv").write_text('age,pay,sex\n39,"$1,200",f\n200,800,m\n,n/a,x\n')
    (tmp_path / "schema.yaml").write_text(
        "columns:\n  age: {kind: number, low: 17, high: 90}\n  pay: {kind: number, low: 0, high: 9000, missing: true}\n"
        "  sex: {kind: category, values: [f, m]}\ngroups: [sex]\n"
    )
    done = run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "schema.yaml")
    assert done.returncode == 1 and "do not publish them" in done.stdout
    found = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines()[2:5]}
    assert found == {"age": ["1", "0", "1"], "pay": ["1", "1", "0"], "sex": ["0", "0", "1"]}
    assert "4 cells of ['age', 'pay', 'sex'] are not" in done.stdout and "Number(low=17" in done.stdout
    (tmp_path / "t.csv").write_text("age,pay,sex\n39,1200,f\n50,,m\n")
    done = run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "schema.yaml")
    assert done.returncode == 0 and "Every cell fits the schema" in done.stdout
    (tmp_path / "t.csv").write_text("sex,code\nf,0\nd,7\n")  # what counts as another value is told, whatever that is
    (tmp_path / "schema.yaml").write_text(
        "columns:\n  sex: {kind: category, values: [f, m], others: m}\n"
        "  code: {kind: category, values: [0, 1], others: 0}\n"
    )
    done = run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "schema.yaml")
    assert done.returncode == 0 and "Of these, as 'others': {'sex': 1, 'code': 1}" in done.stdout
    (tmp_path / "schema.yaml").write_text("columns:\n  age: {kind: number, low: null, high: 90}\n")
    done = run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "schema.yaml")
    assert done.returncode == 2 and "something is null in ['age']" in done.stderr
    (tmp_path / "schema.yaml").write_text("columns:\n  age: {kind: number, low: 0, high: 90, stp: 1}\n")
    done = run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "schema.yaml")
    assert done.returncode == 2 and "a number takes low, high, step" in done.stderr and "Got stp" in done.stderr
    assert "takes one TABLE, and got 2" in run("schema", "a", "b").stderr


def test_what_a_file_leaves_null_is_found_and_what_it_leaves_out_is_not_used(table, tmp_path):
    said = {
        "columns": {
            "age": {"kind": "number", "low": None, "high": None, "step": None, "missing": True},
            "sex": {"kind": "category", "values": ["Female", "Male", "Other"]},
            "income": {"kind": "category", "values": ["high", "low"]},
        },
        "label": "income",
        "groups": ["sex"],
    }
    (tmp_path / "some.json").write_text(json.dumps(said))
    done = run("frontier", table, "--schema", tmp_path / "some.json", "--epsilon", 6, "--methods", "synthetic",
               "--out", tmp_path / "out")  # fmt: skip
    assert done.returncode == 0, done.stderr
    schema = Schema.load(tmp_path / "out" / "schema.yaml")
    assert schema.group_values == ("Female", "Male", "Other") and list(schema.columns) == ["age", "sex", "income"]
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert 5.9 < statement["epsilon"] <= 6.0 + 1e-9 and "RareDisclosure" not in json.dumps(statement["event"])


def test_one_class_that_is_found_is_an_error_that_says_what_to_write_where(tmp_path):
    people(300).to_csv(tmp_path / "few.csv", index=False)
    done = run("frontier", tmp_path / "few.csv", *ROLES, "--epsilon", 0.1, "--out", tmp_path / "out")
    assert done.returncode == 2 and "cannot be found" in done.stderr and "Nothing was spent" in done.stderr
    assert "give it as --schema FILE" in done.stderr and done.stderr.strip().count("\n") == 0
    people(6000).assign(income="high").to_csv(tmp_path / "alike.csv", index=False)
    with recording_noise(entropy=0):  # of forty runs one takes noise for another label
        done = run("frontier", tmp_path / "alike.csv", *ROLES, "--epsilon", 2, "--out", tmp_path / "out")
    assert done.returncode == 2 and "has one value only of label or groups" in done.stderr
    kept = tmp_path / "out" / "schema.yaml"
    assert f"The schema is released and saved: edit {kept}" in done.stderr
    assert Schema.load(kept).classes == ("high",)
    assert "give it as --schema FILE" in done.stderr and done.stderr.strip().count("\n") == 0


def test_no_private_cell_ends_a_command_that_reads_parquet_or_is_quoted(tmp_path, capsys):
    """A day after the last one of Python's calendar, and bytes that are no text."""
    days = pa.array([18264, 2**31 - 1], pa.int32()).view(pa.date32())
    texts = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff"))
    kinds = []
    for n_rows in (1, 2):
        pq.write_table(pa.table({"hired": days, "job": texts}).slice(0, n_rows), tmp_path / "t.parquet")
        assert cli.main(["schema", str(tmp_path / "t.parquet")]) == 0
        kinds.append(capsys.readouterr().out)
    assert kinds[0] == kinds[1] and "kind: date" in kinds[0] and "kind: category" in kinds[0]


def test_parquet_is_read_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    people(50).to_parquet(tmp_path / "people.parquet")
    assert list(read_table(str(tmp_path / "people.parquet"), types=False)) == list(people(50))
    people(50).set_index("age").to_parquet(tmp_path / "people.parquet")  # found: it was lost without a word
    assert list(read_table(str(tmp_path / "people.parquet"), types=False)) == ["age", *people(50).drop(columns="age")]
    people(50)[10:].to_parquet(tmp_path / "people.parquet")  # places of rows are no column
    assert list(read_table(str(tmp_path / "people.parquet"), types=False)) == list(people(50))
    with gzip.open(tmp_path / "people.csv.gz", "wt") as file:
        people(50).to_csv(file, index=False)
    assert read_table(str(tmp_path / "people.csv.gz"), types=False).dtypes.eq(object).sum() in (0, 5)


def test_names_of_columns_are_read_without_the_spaces_around_them_and_without_a_byte_order_mark(tmp_path):
    (tmp_path / "spaced.csv").write_bytes(b'\xef\xbb\xbfage , "sex" , my income \n30,f,yes\n')
    assert list(read_table(str(tmp_path / "spaced.csv"), types=False)) == ["age", "sex", "my income"]


def test_names_that_occur_twice_are_numbered_as_in_pandas_and_told(tmp_path, capsys):
    """ProPublica's file of COMPAS scores has two such names; a label that occurs twice is refused."""
    text = "age,decile_score,priors,decile_score, priors ,age.1,age\n30,1,2,1,2,7,30\n"
    (tmp_path / "compas.csv").write_text(text)
    found = read_table(str(tmp_path / "compas.csv"), types=False)
    assert [*found] == ["age", "decile_score", "priors", "decile_score.1", "priors.1", "age.1", "age.2"]
    check_columns(found, ["priors"], "compas.csv", roles=["priors.1"])
    assert "names columns twice: 'age', 'decile_score', 'priors'" in capsys.readouterr().err


def test_a_word_like_NA_is_a_value_where_the_schema_lists_it_and_a_gap_elsewhere(tmp_path):
    text = "region,age, origin ,income\nNA,NA,NA,low\nEU,30, NA,high\n,41,None,low\n"
    (tmp_path / "places.csv").write_text(text)
    listed = {"region": ("NA", "EU"), "origin": ("None", "CH")}
    found = read_table(str(tmp_path / "places.csv"), types=False, listed=listed)
    assert found["region"].fillna("?").tolist() == ["NA", "EU", "?"]
    assert found["origin"].fillna("?").tolist() == ["?", "?", "None"]
    assert found["age"].isna().tolist() == [True, False, False] and found["age"].tolist()[1:] == ["30", "41"]
    assert read_table(str(tmp_path / "places.csv"), types=False)["region"].isna().tolist() == [True, False, True]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zip", "t.csv.bz2", "t.csv.xz"])
def test_a_cell_may_be_long_and_a_file_compressed_where_cells_are_counted(name, tmp_path):
    table = pd.DataFrame({"a, of two": ["x" * 200_000, "y,\nz"], "b": ["1", None]})
    table.to_csv(tmp_path / name, index=False, encoding="utf-8-sig")
    pd.testing.assert_frame_equal(read_table(str(tmp_path / name), types=False), table, check_dtype=False)


def test_results_that_are_paid_for_are_kept_in_a_folder_that_was_removed_meanwhile(tmp_path):
    folder = tmp_path / "out"
    with replaced(folder) as new:
        (new / "frontier.csv").write_text("a\n1\n")
    assert (folder / "frontier.csv").read_text() == "a\n1\n"


@pytest.mark.slow
def test_the_frontier_compares_a_group_that_is_called_NA(tmp_path):
    table = people(3000)
    table["sex"] = np.where(table["sex"] == "Male", "EU", "NA")
    table.drop(columns="name").to_csv(tmp_path / "places.csv", index=False)
    columns = {
        "age": {"kind": "number", "low": 18, "high": 80, "step": 1},
        "sex": {"kind": "category", "values": ["EU", "NA"]},
        "income": {"kind": "category", "values": ["high", "low"]},
    }
    (tmp_path / "schema.json").write_text(json.dumps({"columns": columns, "label": "income", "groups": ["sex"]}))
    done = run("frontier", tmp_path / "places.csv", "--schema", tmp_path / "schema.json", "--epsilon", 8,
               "--methods", "synthetic", "--out", tmp_path / "out")  # fmt: skip
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "out" / "frontier.csv")
    assert (frame["groups_seen"] == 2).all() and frame["disparity"].notna().all()


def broken(folder):
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (folder / "shifted.csv").write_text("age,sex,income\n30,f,yes,\n41,m,no,\n")
    (folder / "short.csv").write_text('age,sex,income\n30,"f\nm",\n\n41,no\n42\n')
    (folder / "doubled.csv").write_text("age,income,sex, income \n30,1,f,1\n")
    (folder / "nameless.csv").write_text("30,1,f,1\n31,0,m,0\n")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    (folder / "semicolons.csv").write_text("age;sex;income\n30,5;f;yes\n41;m;no\n")
    (folder / "tabs.csv").write_text("age\tsex\tincome\n30\tf\tyes\n")
    (folder / "windows.csv").write_bytes("age,sex,income\n30,f,Zürich\n".encode("cp1252"))
    (folder / "wide.csv").write_bytes("age,sex,income\n30,f,1\n".encode("utf-16"))
    (folder / "unmarked.csv").write_bytes("age,sex,income\n30,f,1\n".encode("utf-16-le"))
    (folder / "backwards.csv").write_bytes("age,sex,income\n30,f,1\n".encode("utf-16-be"))
    (folder / "names.csv").write_text("age,sex,income\n")
    (folder / "one.csv").write_text("age,sex,income\n30,f,1\n")
    (folder / "plain.csv.gz").write_text("hello, no gzip")
    (folder / "plain.parquet").write_text("hello, no parquet")
    (folder / "other.xlsx").write_text("x")
    (folder / "fine.csv").write_text("a,b\n1,2\n")
    (folder / "folder.csv").mkdir()
    (folder / "no.yaml").write_text("columns: [")
    return folder


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.csv", *ROLES], "cannot read absent.csv: No such file"),
        (["empty.csv", *ROLES], "cannot read empty.csv: No columns"),
        (["ragged.csv", *ROLES], "cannot read ragged.csv: "),
        (["shifted.csv", *ROLES], "cannot read shifted.csv: its rows have more cells than its first line has names"),
        (
            ["short.csv", *ROLES],
            "cannot read short.csv: 2 of its rows have fewer cells than its first line has names, the first in line 5",
        ),
        (["binary.csv", *ROLES], "cannot read binary.csv: "),
        (
            ["semicolons.csv", *ROLES],
            "cannot read semicolons.csv: its cells are separated by ';'. Write it with commas",
        ),
        (["tabs.csv", *ROLES], r"in Python: pandas.read_csv('tabs.csv', sep='\t', dtype=str).to_csv("),
        (
            ["windows.csv", *ROLES],
            "it is not UTF-8 text. Save it as such, or where it comes from Windows: iconv -f CP1252",
        ),
        (["wide.csv", *ROLES], "cannot read wide.csv: it is UTF-16 text. Write it as UTF-8: iconv -f UTF-16 -t UTF-8"),
        (
            ["unmarked.csv", *ROLES],
            "cannot read unmarked.csv: it is UTF-16LE text. Write it as UTF-8: iconv -f UTF-16LE",
        ),
        (["backwards.csv", *ROLES], "cannot read backwards.csv: it is UTF-16BE text."),
        (["names.csv", *ROLES], "names.csv has no rows below the names of its columns"),
        (["one.csv", *ROLES], "one.csv: frontier_of_table needs rows to learn from and rows to measure on"),
        (["plain.csv.gz", *ROLES], "cannot read plain.csv.gz: Not a gzipped file"),
        (["plain.parquet", *ROLES], "cannot read plain.parquet: "),
        (["absent.parquet", *ROLES], "cannot read absent.parquet: No such file"),
        (["other.xlsx", *ROLES], "other.xlsx must be a .csv, .tsv or .parquet file"),
        (["folder.csv", *ROLES], "cannot read folder.csv: Is a directory"),
        (["fine.csv", *ROLES], "fine.csv has no column 'income', 'sex'; it has 'a', 'b'"),
        (["nameless.csv", *ROLES], "nameless.csv has no column 'income', 'sex', and its first line holds cells"),
        (["doubled.csv", *ROLES], "doubled.csv names a column twice: 'income'. Give each column another name"),
        (["fine.csv"], "give --label, the column to predict"),
        (["fine.csv", "--label", "a", "--group", "b"], "fine.csv: "),
        (["fine.csv", "--schema", "absent.yaml"], "cannot read --schema absent.yaml: No such file"),
        (["fine.csv", "--schema", "no.yaml"], "--schema no.yaml: "),
    ],
    ids=lambda value: value[0] + "".join(value[1:2]) if isinstance(value, list) else "",
)
def test_every_mistake_in_a_file_is_one_line_with_its_name(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(broken(tmp_path))
    assert cli.main(["frontier", *arguments, "--out", "out"]) == 2
    err = [line for line in capsys.readouterr().err.split("\n") if line and not line.startswith("\r")]
    assert len(err) == 1 and err[0].startswith("skfairdp: ") and says in err[0]


def test_a_file_without_names_is_refused_by_a_check_without_its_cells(tmp_path, capsys):
    schema = Schema({"age": Number(17, 90), "sex": Category(["f", "m"])}, label="sex")
    schema.save(tmp_path / "schema.yaml")
    (tmp_path / "bare.csv").write_text("79,m\n31,f\n")
    assert cli.main(["schema", "check", str(tmp_path / "bare.csv"), "--schema", str(tmp_path / "schema.yaml")]) == 2
    err = capsys.readouterr().err
    assert "its first line holds cells" in err and "79" not in err


def test_rows_that_a_stray_quote_makes_one_of_are_told(tmp_path, capsys):
    cells = ["age,sex,income", *[f"{20 + i},{'fm'[i % 2]},{i % 2}" for i in range(30)]]
    cells[5], cells[9] = '24,"f,0', '28,f",0'
    (tmp_path / "table.csv").write_text("\n".join(cells))
    assert cli.main(["schema", str(tmp_path / "table.csv"), "--label", "income", "--group", "sex"]) == 0
    err = capsys.readouterr().err
    assert err.count("Note: ") == 1 and "rows of several lines, the first from line 6 on, 1 in all" in err


def test_without_arguments_there_is_help_and_a_version_where_it_is_asked_for():
    shown = in_a_shell()
    assert shown.returncode == 0 and not shown.stderr
    for command in ("demo", "verify", "frontier", "schema", "--version"):
        assert command in shown.stdout
    version = in_a_shell("--version")
    assert (version.returncode, version.stdout) == (0, f"skfairdp {skfairdp.__version__}\n")


def test_an_interrupt_that_ends_an_import_in_another_error_is_one_line_too(tmp_path, capsys):
    class Importing(cli.Sweep):
        @property
        def n_synthetic(self):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                raise ImportError("half a library") from None

    assert cli.main(["demo", "--data", "synthetic", "--out", str(tmp_path)], sweep=Importing()) == 130
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1 and "interrupted" in err and "half a library" not in out + err


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("after", "sent"), [(0.2, signal.SIGINT), (2.0, signal.SIGINT), (2.0, signal.SIGTERM)]
)  # libraries are being imported, or fits run
def test_an_interrupt_is_one_line(table, tmp_path, after, sent):
    process = subprocess.Popen(
        [sys.executable, "-m", "skfairdp", "frontier", table, *ROLES, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "3,000 rows" in process.stdout.readline()
    time.sleep(after)
    process.send_signal(sent)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + sent
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip() and not line.startswith("frontier:")]
    assert lines == ["skfairdp: interrupted; what had been released until then is spent."]


@pytest.mark.parametrize("last", ["schema.yaml", "frontier.csv"])
def test_a_disk_that_is_full_loses_no_schema_that_is_paid_for(table, tmp_path, monkeypatch, last):
    def full(source, target, move=os.replace):
        if str(target).endswith(last):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        move(source, target)

    monkeypatch.setattr(os, "replace", full)
    done = run("frontier", table, *ROLES, "--epsilon", 4, "--methods", "synthetic", "--out", tmp_path / "out")
    assert done.returncode == 2 and "is spent" in done.stderr.splitlines()[-1]
    if last == "schema.yaml":
        (tmp_path / "kept.json").write_text(done.stderr.splitlines()[-2])
    kept = Schema.load(tmp_path / ("kept.json" if last == "schema.yaml" else "out/schema.yaml"))
    assert kept.classes == ("high", "low") and 0 < kept.privacy_.epsilon < 4


def test_a_gzip_that_is_none_is_named_in_the_demo_as_well(tmp_path, monkeypatch, capsys):
    (tmp_path / "adult.csv.gz").write_text("hello")
    monkeypatch.setenv("SKFAIRDP_DATA", str(tmp_path))
    assert cli.main(["demo", "--data", "adult", "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert str(tmp_path / "adult.csv.gz") in err and err.count("\n") == 1


def test_the_template_takes_days_for_dates_and_other_texts_for_categories(tmp_path):
    text = "egg,seen,code,sex\n2007-11-11,2007-11-11 10:30,2007-11,f\n,2008-02-03 09:15,2007-12,m\n"
    (tmp_path / "birds.csv").write_text(text)
    assert run("schema", tmp_path / "birds.csv", "--out", tmp_path / "schema.json").returncode == 0
    columns = json.loads((tmp_path / "schema.json").read_text())["columns"]
    assert [columns[name]["kind"] for name in ("egg", "seen", "code", "sex")] == [
        "date",
        "date",
        "category",
        "category",
    ]


def test_the_template_takes_codes_with_leading_zeros_for_names_and_says_where_a_point_may_part_thousands(tmp_path):
    text = "place,age,income,sex,rent,weight\n" + "007,7,low,f,950,1.25\n100,8,high,m,1.200,1.5\n" * 3
    (tmp_path / "people.csv").write_text(text)
    done = run("schema", tmp_path / "people.csv", *ROLES, "--out", tmp_path / "schema.json")
    assert done.returncode == 0, done.stderr
    columns = json.loads((tmp_path / "schema.json").read_text())["columns"]
    assert (columns["place"]["kind"], columns["age"]["kind"]) == ("category", "number")
    assert columns["rent"]["guess"] == {"kind": "number", "or": {"decimal": ",", "thousands": "."}}
    assert columns["weight"]["kind"] == "number" and "guess" not in columns["weight"]
    (tmp_path / "words.csv").write_text("income,sex\nlow,f\nhigh,m\n")  # no number at all
    assert run("schema", tmp_path / "words.csv", *ROLES).returncode == 0


@pytest.mark.slow
def test_what_is_noted_is_said_in_words_of_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    table = people(4000).assign(case_id=np.arange(4000), code=[f"c{j}" for j in rng.permutation(4000)])
    table.to_csv(tmp_path / "people.csv", index=False)
    done = run("frontier", tmp_path / "people.csv", *ROLES, "--epsilon", 1, "--methods", "synthetic", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "leaves out ['name', 'code']" in done.stdout and "describes ['case_id'] as whole numbers" in done.stdout
    assert "known=" not in done.stdout and "X_public" not in done.stdout and "--schema FILE" in done.stdout


def test_the_command_line_protects_subjects_and_goes_on_with_the_schema_that_names_them(tmp_path):
    rng = np.random.default_rng(0)
    visits = people(4_000).assign(patient_id=rng.permutation(np.repeat(np.arange(2_000), 2)))
    visits.to_csv(tmp_path / "visits.csv", index=False)
    out = tmp_path / "first"
    asked = ("--epsilon", 2, "--methods", "synthetic", "--budget", 9)
    first = run("frontier", tmp_path / "visits.csv", *ROLES, "--subject", "patient_id", *asked, "--out", out)
    assert first.returncode == 0, first.stderr
    assert "2,000 different patient_id" in first.stdout and "4,000" not in first.stdout  # how many rows is private
    assert "protects one subject" in first.stdout and "patient_id" not in Schema.load(out / "schema.yaml").columns
    statement = json.loads((out / "privacy.json").read_text())
    assert statement["unit"] == "one subject: all rows of one patient_id, however many"
    assert all(check.holds for file in ("privacy.json", "ledger.jsonl") for check in verify_file(out / file))
    second = run("frontier", tmp_path / "visits.csv", "--schema", out / "schema.yaml", *asked, "--out", tmp_path / "2")
    assert second.returncode == 0, second.stderr
    assert json.loads((tmp_path / "2" / "privacy.json").read_text())["rows_of"] == "patient_id"
    wrong = run("frontier", tmp_path / "visits.csv", *ROLES, "--subject", "person", *asked, "--out", tmp_path / "3")
    assert wrong.returncode == 2 and "has no column 'person'" in wrong.stderr
    template = run("schema", tmp_path / "visits.csv", *ROLES, "--subject", "patient_id").stdout
    assert "subject: patient_id" in template and "  patient_id:" not in template
