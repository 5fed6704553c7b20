"""Sphinx configuration: guide and architecture in Markdown, reference from the docstrings, gallery from ../examples."""

import html
import inspect
import os
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - the gallery looks its names up

import skfairdp

HERE = Path(__file__).parent
_MATHML = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", _MATHML[1:-1])

project = "skfairdp"
author = "The skfairdp developers"
copyright = "The skfairdp developers"
version = release = skfairdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "**/*.ipynb"]
nitpicky = True
html_math_renderer = "mathml"  # browsers draw it themselves: the pages need neither scripts nor a network
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions, which no cache can keep

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the numpydoc sections
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"skfairdp {version}"
html_theme_options = {"navigation_with_keys": True, "show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
html_context = {"default_mode": "auto"}  # the reader's system decides; without it the theme complains in the console
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_js_files = ["copy.js"]
templates_path = ["_templates"]

# The examples fall back to data made on the spot; real data would make the build depend on the machine.
os.environ.pop("SKFAIRDP_DATA", None)
# Small networks gain nothing from threads that wait for one another, least of all on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
#: The gallery follows the table in its own head: by task, the quick start first.
BY_TASK = re.findall(r":doc:`(plot_\w+)`", (HERE.parent / "examples" / "README.txt").read_text(encoding="utf-8"))


class ByTask:
    """Sort key of the gallery. An example that the table lacks ends the build."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, filename: str) -> int:
        return BY_TASK.index(filename.removesuffix(".py"))


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "within_subsection_order": ByTask,
    "reference_url": {"skfairdp": None},
    "doc_module": ("skfairdp",),
    "backreferences_dir": "reference/examples",
}


TASKS = tomllib.loads((HERE / "reference.toml").read_text(encoding="utf-8"))["task"]


def write_reference() -> None:
    """One page for each task of ``reference.toml``: what people look for, not everything that can be imported."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    pages = []
    for task in TASKS:
        title, text = task["title"], task.get("text", "")
        pages.append(re.sub(r"\W+", "_", title.lower()))
        listed = "\n".join(f"   skfairdp.{name}" for name in task["names"])
        page = (
            f"{title}\n{'=' * len(title)}\n\n{text}\n\n"
            f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{listed}\n"
        )
        _write(folder / f"{pages[-1]}.rst", page)
    listed = "\n".join(f"   {page}" for page in pages)
    intro = "By task, from the docstrings. The estimators can be imported from ``skfairdp`` itself."
    _write(folder / "index.rst", f"Reference\n=========\n\n{intro}\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n")


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
        path.write_text(text, encoding="utf-8")


def keep_together(app: object, docname: str, source: list[str]) -> None:
    """A figure and its error stay on one line of a narrow cell."""
    source[0] = re.sub(r"(?<=\d) ± (?=[\d.])", "\u00a0±\u00a0", source[0])


def skip_inherited(app: object, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out what torch and scikit-learn document themselves."""
    function = inspect.unwrap(obj.fget if isinstance(obj, property) else obj)
    module = getattr(function, "__module__", None)
    return True if module is not None and not module.startswith("skfairdp") else None


def escape(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Bars and trailing underscores are mathematics and scikit-learn's habit here, never markup."""
    for j, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        name, colon, rest = line.partition(" : ")
        if re.fullmatch(r"[\w, ]+_", name):  # an attribute and its type
            lines[j] = name + colon + _escaped(rest)
        else:
            lines[j] = _escaped(line)


def guide_pages() -> dict[str, str]:
    """The page of the guide that names a public name most often; near its title a name counts five times."""
    listed = re.findall(r"(?m)^(\w+)$", (HERE / "guide" / "index.md").read_text(encoding="utf-8"))
    counts: dict[str, dict[str, int]] = {}
    for page in listed:
        text = (HERE / "guide" / f"{page}.md").read_text(encoding="utf-8")
        for words, times in ((text, 1), (text[:600], 4)):  # its title and what it begins with
            for name in re.findall(r"\w+", words):
                counts.setdefault(name, {}).setdefault(page, 0)
                counts[name][page] += times
    names = [name.rpartition(".")[2] for task in TASKS for name in task["names"]]
    return {name: max(counts[name], key=lambda page: counts[name][page]) for name in names if name in counts}


def true_signature(
    app: object, what: str, name: str, obj: Any, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """The parameters of a class, where Sphinx finds the ``*args`` of what refuses arguments without a name."""
    if what != "class" or "*args" not in (signature or ""):
        return None
    found = inspect.signature(obj)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty)), returned


def lead_on(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """End a page of the reference with its page of the guide, and the examples that use the name."""
    short = name.rpartition(".")[2]
    if what in ("class", "function") and any(name == f"skfairdp.{one}" for task in TASKS for one in task["names"]):
        if short in GUIDE:
            lines += ["", f"**User guide:** :doc:`/guide/{GUIDE[short]}`"]
        if what == "class":
            lines += ["", f".. minigallery:: {name}", "   :add-heading: Gallery", ""]


def _escaped(text: str) -> str:
    parts = re.split(r"(``.*?``|`[^`]+`)", text)
    parts[::2] = [re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)", r"\\_", part.replace("|", r"\|")) for part in parts[::2]]
    return "".join(parts)


def inline_math(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line as MathML."""
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def displayed_math(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own as MathML."""
    formula = _mathml(node, as_block=True)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def _mathml(node: Any, *, as_block: bool) -> str:
    try:
        written = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:  # sphinx would go on without the formula
        raise ValueError(f"No MathML for {node.astext()!r}: {error}") from error
    # XML knows the names of five characters only.
    written = re.sub(r"&(?!amp;|lt;|gt;|quot;|apos;)\w+;", lambda name: html.unescape(name[0]), written)
    formula = ElementTree.fromstring(written)
    for part in list(formula.iter(f"{_MATHML}munderover")):
        base, index, over = part
        if over.tag == f"{_MATHML}mo" and over.text in set("~^ˆˉ¯˜"):  # an index of an accented letter, not a sum's
            part.tag = f"{_MATHML}msub"
            accented = ElementTree.Element(f"{_MATHML}mover", {"accent": "true"})
            accented.extend([base, over])
            part[:] = [accented, index]
    return ElementTree.tostring(formula, encoding="unicode")


def link_by_any_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Lead from any name of an object of ours to where it is documented.

    A class can be imported from two places and is documented at one. What is public and not in the reference is left
    as text. A name that leads nowhere stays a broken reference, and ends the build.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("skfairdp.")
    found = _named(target)
    if found is None:
        return None
    for task in TASKS:
        for name in task["names"]:
            if _named(name) is found:
                domain, full = env.get_domain("py"), f"skfairdp.{name}"
                return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, contnode)
    return contnode


def _named(name: str) -> Any:
    """What a dotted name stands for, in the package or in one of its rooms."""
    for room in ("", *(f"{room}." for room in skfairdp._ROOMS)):
        found: Any = skfairdp
        for part in f"{room}{name}".split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    return None


def setup(app: Any) -> None:
    """Connect the first two before numpydoc reads a docstring."""
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("autodoc-process-docstring", lead_on, priority=900)
    app.connect("autodoc-process-signature", true_signature)
    app.connect("missing-reference", link_by_any_name)
    app.connect("source-read", keep_together)


GUIDE = guide_pages()
write_reference()  # now, since Sphinx looks for pages as soon as it has read this file
