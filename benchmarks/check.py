"""Say of every stored result whether it still holds: it is current, its fits are the same, or it is stale.

python benchmarks/check.py

* *current*: no code that the result came from has changed since the commit that it names: neither the script that made
  it nor the functions, classes and constants of this folder and of the package that it names, and what these name in
  turn. Comments and docstrings are no code.
* *same fits*: such code of the package has changed, but every fit of the result's methods that
  ``tests/vectors/golden.json`` freezes is as it was. Frozen fits set their own epochs, so the defaults and the
  constants of then also have to stand as they stood. Accuracies and gaps are then likely those of today; but frozen
  fits have a few hundred rows, so a rule for large tables may have changed unseen. Of seconds they say nothing: results
  that are about seconds are never called this.
* *stale*: the rest, with the reason. Stale figures are not wrong, but nobody has measured them on the code of today.

Results made before commits were kept name none, and are stale. What is compared is the code that lies here, committed
or not. The last line counts each word.
"""

import ast
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

HERE = Path(__file__).parent
FROZEN = "tests/vectors/golden.json"
VERDICTS = ("current", "same fits", "stale")
#: First words of results, and of the frozen fits of the methods that they are about.
METHODS = {
    "amounts": ("FairDPSGDRegressor", "SyntheticData-amounts", "PrivateBarycenter"),
    "arena": ("FairPATE", "FairDPSGD", "PrivateThresholds", "Calibrator", "PFGuard-marginals"),
    "audit_dpsgd": ("FairDPSGD",),
    "audit_ratio": ("PATE", "FairDPSGD", "PFLD", "SFPATE", "PFGuard", "RandomizedResponse"),
    "audit": ("PATE", "FairPATE", "SFPATE"),
    "bounds": ("FairPATE", "FairDPSGD", "SFPATE", "PFLD", "SyntheticData", "Calibrator", "PrivateThresholds"),
    "case_study": ("FairDPSGD", "Schema-release"),
    "calibrator": ("Calibrator", "FairDPSGD", "PATE"),
    "color_mnist": ("FairPATE", "FairDPSGD", "IDP3"),
    "fair_dpsgd": ("FairDPSGD", "IDP3"),
    "frontiers": ("FairPATE", "PFGuard"),
    "glass_box": ("FairDPSGD",),
    "idp3": ("IDP3",),
    "interactions": ("SyntheticData", "PFGuard-marginals"),
    "low_epsilon": ("FairDPSGD", "FairPATE"),
    "no_public_rows": ("FairPATE", "FairDPSGD", "SyntheticData"),
    "parity_curve": ("FairDPSGD", "PrivateThresholds"),
    "notions": ("PFLD", "Lagrangian", "SFPATE", "RandomizedResponse"),
    "pate_papers": ("PATE", "FairPATE"),
    "pfguard": ("PFGuard", "FairClipping", "FairDPSGD"),
    "pfld": ("PFLD", "GroupRandomizer", "RandomizedResponse", "Lagrangian"),
    "sfpate": ("SFPATE", "PFLD", "RandomizedResponse", "Lagrangian"),
    "small_tables": ("PATE", "FairPATE", "IDP3", "FairDPSGD", "FairClipping", "PrivateThresholds", "PFLD", "SFPATE",
                     "RandomizedResponse", "SyntheticData"),
    "subjects": ("PATE", "FairDPSGD", "SyntheticData"),
    "utility": ("PATE", "FairPATE", "IDP3"),
}  # fmt: skip
#: What a result names that says whether a bound held, or was told to be broken.
OF_BOUNDS = ('"gap_bound', '"bound_', '"told"', '"holds', '"held', '"broken')
#: Last words of results that are about seconds.
SECONDS = ("_speed", "_time")


def main() -> None:
    said = []
    for path in sorted((HERE / "results").glob("*.json")):
        word, why = verdict(path.stem, json.loads(path.read_text(encoding="utf-8")))
        print(f"{path.name:36} {word}{why and ': '}{why}")
        said.append(word)
    print(", ".join(f"{said.count(word)} {word}" for word in reversed(VERDICTS)))


def verdict(name: str, record: dict[str, object]) -> tuple[str, str]:
    """One of the three words for a result, and why; the worst, where its points are from several commits."""
    words = str(record["command"]).split()
    script = next((word for word in words if word.endswith(".py")), None)
    revisions = str(record.get("revision") or "").split(", ")
    told = any(word in json.dumps(record) for word in OF_BOUNDS)
    return max((since(name, script, one, told=told) for one in revisions), key=lambda said: VERDICTS.index(said[0]))


def since(name: str, script: str | None, revision: str, *, told: bool = True) -> tuple[str, str]:
    """The word for points that a script measured at one commit, and why; ``told`` is whether they say of bounds."""
    if not revision:
        return "stale", "names no commit"
    if revision.endswith("+changes"):
        return "stale", f"measured with uncommitted changes on {revision.removesuffix('+changes')}"
    then, now = files_at(revision), files_here()
    if then is None:
        return "stale", f"commit {revision} is not in this repository"
    if script:
        found = reached(script, then) | reached(script, now)
        changed = {path for path, name in found if code(then.get(path), name) != code(now.get(path), name)}
    else:
        changed = {path for path in then.keys() | now.keys() if code(then.get(path)) != code(now.get(path))}
    package = {path for path in changed if path.startswith("skfairdp/")}
    scripts = sorted(changed - package)
    if not changed:
        return "current", ""
    fits, anew = frozen_fits(name, revision, told=told)
    others = other_settings(revision, package) if fits and not anew else []
    if fits and not (anew or others or scripts or name.endswith(SECONDS)):
        return "same fits", f"its {len(fits)} frozen fits are as they were at {revision}"
    reasons = [f"{len(package)} file{'s' * (len(package) > 1)} of skfairdp"] if package else []
    why = f"{' and '.join(reasons + scripts)} changed since {revision}"
    if anew:
        why += f"; {len(anew)} of {len(fits)} frozen fits: {few(anew)}"
    if others:
        why += f"; its {len(fits)} frozen fits did not, but settings did: {few(others)}"
    return "stale", why


#: Of a module: what stands between its definitions, which whoever imports it runs.
BETWEEN = ""


def code(text: str | None, name: str | None = None) -> str | None:
    """What Python makes of a file, or of one name in it, without comments, docstrings and layout; None without it."""
    parts = {} if text is None else _parts(text)
    if name is not None:
        return _dumped(text, name) if text is not None and name in parts else None
    return None if text is None else "\n".join(f"{one} {_dumped(text, one)}" for one in parts)


@cache
def _dumped(text: str, name: str) -> str:
    return "\n".join(ast.dump(node) for node in _parts(text)[name])


@cache
def _parts(text: str) -> dict[str, list[ast.stmt]]:
    """The definitions of a file by name, without docstrings and imports, and what stands between them."""
    tree, found = ast.parse(text), dict[str, list[ast.stmt]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_text(line)]
    for node in tree.body:
        names = [BETWEEN]
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not any(map(_registers, node.decorator_list)):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id if isinstance(one, ast.Name) else BETWEEN for one in targets]
        if not isinstance(node, ast.Import | ast.ImportFrom):
            for name in names:
                found.setdefault(name, []).append(node)
    return {BETWEEN: [], **found}


def _registers(decorator: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "register" for node in ast.walk(decorator))


def other_settings(revision: str, changed: set[str]) -> list[str]:
    """Settings in changed files of the package at a commit that are gone or have another value; what is new since
    changes no old fit, nor does a parameter that is gone and was no number: frozen fits see that.
    """
    found = []
    for files in (files_at(revision) or {}, files_here()):
        trees = {path: _tree(text) for path, text in files.items() if path.startswith("skfairdp/")}
        classes = {path: _classes(tree) for path, tree in trees.items()}
        anywhere = {name: node for path in sorted(classes) for name, node in classes[path].items()}
        of_each = (settings(trees[path], classes=anywhere | classes[path]) for path in changed if path in trees)
        found.append({setting for some in of_each for setting in some})
    names = {name for name, _ in found[1]}
    return sorted({name for name, value in found[0] - found[1] if name in names or re.search(r"value=\d", value)})


def settings(
    tree: ast.AST, inside: str = "", classes: Mapping[str, ast.ClassDef] = MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """Names and values of what decides a fit unless somebody says otherwise: defaults, and constants with numbers; of
    a class also those of the ``classes`` that it is made of."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            if node.name.lstrip("_").startswith("warn"):  # what is said of a fit is no part of it
                continue
            words = node.args
            positional = [*words.posonlyargs, *words.args]
            by_position = zip(reversed(positional), reversed(words.defaults), strict=False)  # the last have defaults
            by_name = zip(words.kwonlyargs, words.kw_defaults, strict=True)
            given = [*by_position, *by_name]
            yield from ((f"{inside}{node.name}.{word.arg}", ast.dump(value)) for word, value in given if value)
        elif isinstance(node, ast.ClassDef):
            if any(ast.unparse(base) == "Protocol" for base in node.bases):  # nobody calls its methods
                continue
            for one in _with_bases(node, classes):
                yield from settings(one, f"{inside}{node.name}.", classes)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _has_number(node.value):
            target = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
            # Which names a router hands on, and what may be asked for.
            if not target.startswith(("__metadata_request", "_parameter_constraints")):
                yield f"{inside}{target}", ast.dump(node.value)


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _with_bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    yield node
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _with_bases(classes[base.id], classes)


def reached(script: str, files: Mapping[str, str]) -> set[tuple[str, str]]:
    """Files and names in them: all of a script, what its names come from, and what these name."""
    found, open_ends = set[tuple[str, str]](), [(script, name) for name in _parts(files.get(script, ""))]
    while open_ends:
        path, name = open_ends.pop()
        if (path, name) in found or path not in files:
            continue
        found.add((path, name))
        if name != BETWEEN:
            open_ends.append((path, BETWEEN))
        for module, *names in _named(files[path], name):
            open_ends += _places(module, *names, files) if module else [(path, str(names[0]))]
    return found


#: A module, what is taken from it (itself where that is None), and an attribute of what is taken.
Named = tuple[str, str | None, str | None]


@cache
def _named(text: str, part: str) -> set[Named]:
    """What a part of a file names, of its own file with an empty module; and what it calls "room:Name"."""
    parts, imported, found = _parts(text), _imported(text), set[Named]()
    for top in parts.get(part, []):
        attributes = {id(node.value): node.attr for node in ast.walk(top) if isinstance(node, ast.Attribute)}
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and node.id in parts:
                found.add(("", node.id, None))
            elif isinstance(node, ast.Name) and node.id in imported:
                found.add((*imported[node.id], attributes.get(id(node))))
            elif isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+:[A-Z]\w+", str(node.value)):
                room, _, name = str(node.value).partition(":")
                found.add((f"skfairdp.{room}", name, None))
    return found


@cache
def _imported(text: str) -> dict[str, tuple[str, str | None]]:
    """Names that a file imports anywhere: the module of each, and its name there, None for the module itself. Those of
    the package itself stand in ``_NAMES``, and are loaded on use."""
    found = dict[str, tuple[str, str | None]]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            roots = {one.name.partition(".")[0] for one in node.names if not one.asname}
            found |= {root: (root, None) for root in roots}
            found |= {one.asname: (one.name, None) for one in node.names if one.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES":
            rooms = ast.literal_eval(node.value).items()
            found |= {name: (f"skfairdp.{room}", name) for room, names in rooms for name in names}
    return found


def _places(module: str, name: str | None, attribute: str | None, files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Where that is defined, through all rooms that pass it on; of a module all of it, if no attribute says what."""
    part = module.replace(".", "/")
    path = next((one for one in (f"{part}.py", f"{part}/__init__.py", f"{HERE.name}/{part}.py") if one in files), None)
    if path is None:
        return []
    if name is None and attribute is not None:
        return _places(module, attribute, None, files)
    parts, imported = _parts(files[path]), _imported(files[path])
    if name is None:
        passed_on = imported.values() if path.endswith("/__init__.py") else []
        return [(path, one) for one in parts] + [place for one in passed_on for place in _places(*one, None, files)]
    if name in parts:
        return [(path, name)]
    if name in imported:
        return _places(*imported[name], attribute, files)
    return _places(f"{module}.{name}", None, attribute, files)


def frozen_fits(name: str, revision: str, *, told: bool = True) -> tuple[list[str], list[str]]:
    """A result's methods' fits that were frozen at a commit, and which were written anew since; none where unknown."""
    methods = next((found for first, found in METHODS.items() if name.startswith(first)), None)
    then, now = git("show", f"{revision}:{FROZEN}"), text_of(FROZEN)
    if methods is None or then is None or now is None:
        return [], []
    old, new = json.loads(then)["fits"], json.loads(now)["fits"]
    kinds = tuple(f"{method}-" for method in methods)  # no FairDPSGDRegressor is a FairDPSGD
    mine = [fit for fit in old if fit in new and f"{fit}-".startswith(kinds)]  # frozen then and now
    return mine, [fit for fit in mine if differs(old[fit], new[fit], told=told)]


def text_of(path: str) -> str | None:
    """A file as it lies here; None where there is none."""
    file = HERE.parent / path
    return file.read_text(encoding="utf-8") if file.is_file() else None


@cache
def files_here() -> dict[str, str]:
    """The Python files of the package and of this folder, as they lie here."""
    root = HERE.parent
    paths = [*(root / "skfairdp").rglob("*.py"), *HERE.glob("*.py")]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def files_at(revision: str) -> dict[str, str] | None:
    """The same files at a commit; None where it is not in this repository."""
    words = ["git", "archive", "--format=tar", revision, "skfairdp", HERE.name]
    done = subprocess.run(words, cwd=HERE.parent, capture_output=True, check=False)
    if done.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [one for one in archive if one.isfile() and one.name.endswith(".py")]
        return {one.name: archive.extractfile(one).read().decode() for one in members}


def git(*words: str) -> str | None:
    """What git prints; None where it fails."""
    done = subprocess.run(["git", *words], cwd=HERE.parent, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _has_number(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Constant) and isinstance(node.value, int | float) for node in ast.walk(value))


def few(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{' ...' if len(names) > 3 else ''}"


def differs(old: dict[str, object], new: dict[str, object], *, told: bool = True) -> bool:
    """Whether a frozen fit's answers, guarantee or gap changed, or what is told of its bound; gaps of old ones are
    unknown, and a ledger's words no answer."""
    parts = ("gap", "gap_bound", "holds") if told else ("gap",)
    before, after = (dict(one.get("judged") or {}) for one in (old, new))
    gap_changed = "judged" in old and any(before.get(part) != after.get(part) for part in parts)
    return gap_changed or any(old.get(part) != new.get(part) for part in ("arrays", "privacy"))


if __name__ == "__main__":
    main()
