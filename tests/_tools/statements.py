"""Privacy statements as a forger writes them, who knows how the digest is computed."""

from collections.abc import Mapping
from typing import Any

from tests._tools.inside import digest_of


def digested(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the digest of what it says now."""
    return dict(content) | {"digest": digest_of(content)}
