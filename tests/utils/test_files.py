"""What is written where a user says is written whole, and through no link."""

import os

import pandas as pd
import pytest

from skfairdp._utils import write_csv, write_text
from skfairdp.inspection import ParetoFrontierDisplay, SyntheticDataReport
from skfairdp.privacy import PrivacyLedger
from skfairdp.schema import Schema
from tests.inspection.test_frontier_display import make_frame

TABLE = pd.DataFrame({"age": [20, 30, 40], "sex": ["f", "m", "f"]})
WRITERS = {
    "schema.yaml": lambda path: Schema.from_public(TABLE).save(path),
    "schema.json": lambda path: Schema.from_public(TABLE).save(path),
    "ledger.html": lambda path: PrivacyLedger().to_html(path),
    "table.csv": lambda path: write_csv(TABLE, path),
    "frontier.html": lambda path: ParetoFrontierDisplay(make_frame()).to_html(path),
    "report.html": lambda path: SyntheticDataReport.from_data(TABLE, TABLE).to_html(path),
    "words.txt": lambda path: write_text(path, "words"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_link(name, tmp_path):
    mine, link = tmp_path / "mine.txt", tmp_path / name
    mine.write_text("mine")
    link.symlink_to(mine)
    with pytest.raises(ValueError, match="is a link to another file"):
        WRITERS[name](link)
    assert mine.read_text() == "mine"
    link.unlink()
    os.link(mine, link)  # nor into a file that has another name
    WRITERS[name](link)
    assert mine.read_text() == "mine" and link.stat().st_size > 4 and len(list(tmp_path.iterdir())) == 2


def test_a_file_stays_as_it_was_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "words.txt"
    path.write_text("old")
    path.chmod(0o600)

    def full(*names):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="no space"):
            write_text(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    write_text(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600
