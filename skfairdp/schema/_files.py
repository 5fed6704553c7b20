"""Schemas in files: JSON and YAML, in which unquoted words are texts and no name stands twice."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: What YAML 1.1 reads otherwise: ``no`` and ``off`` as False, ``012`` as 10, ``12:30`` as 750. A label is a word.
_PLAIN = {
    "tag:yaml.org,2002:bool": re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    "tag:yaml.org,2002:int": re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}


def content_of(path: Path) -> Any:
    """What a file holds."""
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return _yaml(path).load(text, _loader(_yaml(path)))
    except Exception as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        raise ValueError(f"{path} cannot be read as {path.suffix.lstrip('.') or 'YAML'}: {error}") from None


def text_of(content: Any, path: Path) -> str:
    """What to write into a file of this name."""
    if path.suffix == ".json":
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    yaml = _yaml(path)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True)
    if yaml.load(text, _loader(yaml)) != content:  # some spaces and ends of lines are lost but for their numbers
        text = yaml.dump(content, Dumper=dumper, sort_keys=False)
    return text


def _yaml(path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        raise ValueError(f"A Schema is kept in a file that ends with .json, .yaml or .yml. Got {path.name!r} instead.")
    import yaml

    return yaml


def _loader(yaml: Any) -> Any:
    """A loader of plain values that reads numbers and truths as YAML 1.2 does; in C, where there is one, it is fast."""

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers = {
            first: [(tag, _PLAIN.get(tag, pattern)) for tag, pattern in kinds]
            for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _once([(self.construct_object(key, deep=True), None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    return Loader


def _once(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise ValueError(f"it says {twice[0]!r} twice")
    return dict(pairs)
