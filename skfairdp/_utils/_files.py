"""Files that the package writes where its user says."""

import os
import tempfile
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file whole, or not at all: what stood there stays until then, and nothing is written through a link."""
    target = Path(path)
    if target.is_symlink():
        raise ValueError(
            f"{target} is a link to another file, which would be overwritten. Remove the link, or name another file."
        )
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = Path(folder, "new")
        file.write_text(text, encoding="utf-8", newline="")
        if target.is_file():
            file.chmod(target.stat().st_mode)
        os.replace(file, target)
    return target
