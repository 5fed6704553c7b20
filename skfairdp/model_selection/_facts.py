"""What a search takes as public: its own list, as every private estimator has one."""

from typing import Any

from skfairdp._utils import PublicData
from skfairdp.model_selection._candidate import Candidate
from skfairdp.model_selection._scores import PublicScores
from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import NeighboringRelation, PublicFact, PublicReads
from skfairdp.schema import note_columns


def search_facts(data: SearchData) -> tuple[PublicFact, ...]:
    """Facts of all fits and of the scores."""
    reads, candidate, rows = PublicReads(), data.candidate, data.rows
    inner = candidate.private_part(candidate.estimator)
    shape = getattr(rows.X, "shape", (0, 0))
    names = getattr(rows.X, "columns", None)
    schema = candidate.domain("schema")
    if schema is None:
        reads.note("columns of X", "read", shape[1] if names is None and len(shape) > 1 else names, "public")
    else:
        note_columns(reads, schema)
    declared = candidate.declared_rows
    if declared is not None:
        reads.note("declared number of rows", "given", declared, "nothing follows the true number")
    else:
        reads.note("number of private rows", "read", rows.n_rows, "public, as neighbours have equally many")
    if rows.y is None:
        reads.note(
            "rows of X", "read", None, "in chunks: in every fit, by their places or their keys, which are public"
        )
        if data.splits:
            reads.note("folds", "computed", len(data.splits), "by hashes of the public keys or places of rows")
    _note_domains(reads, candidate, inner, data.relation)
    public = rows.public.get("X_public")
    if public is not None:
        public = public.X if isinstance(public, PublicData) else public
        reads.note("public rows", "given", len(public), "handed on to every fit")
    elif isinstance(getattr(inner, "public_data", None), PublicData):
        reads.note("public rows", "given", len(inner.public_data.X), "by 'public_data', in every fit")
    if isinstance(data.scores, PublicScores):
        reads.note("public rows to score on", "given", len(data.scores.rows.y), "with labels")
    if data.total_epsilon is not None:
        reads.note("total epsilon", "given", data.total_epsilon, "of fits, scores and refit together")
        reads.note("epsilon of each fit", "computed", candidate.parameter("epsilon"), "the refit of the winner's too")
        if not isinstance(data.scores, PublicScores):
            reads.note("epsilon of each table of scores", "computed", data.scores.table.epsilon)
    reads.note("candidates of the grid", "given", len(data.grid), "public, and the order of trying them")
    reads.note("constructor parameters", "given", None, "public, and the budget among them")
    return tuple(reads)


def _note_domains(reads: PublicReads, candidate: Candidate, inner: Any, relation: NeighboringRelation) -> None:
    """Classes and groups: given, or read from rows, and what that means."""
    of_attribute = relation is NeighboringRelation.REPLACE_ATTRIBUTE
    if of_attribute:
        reads.note("features and labels", "read", None, "used without noise: the guarantee is for the group only")
    schema = candidate.domain("schema")
    if schema is not None:
        reads.note("classes", "given", schema.classes, by=schema.classes)
        reads.note("names of the groups", "given", schema.group_values, by=schema.group_values)
        return
    for name, parameter in (("classes", "classes"), ("names of the groups", "groups")):
        if parameter not in inner.get_params(deep=False):
            continue
        given = candidate.domain(parameter)
        if given is not None:
            reads.note(name, "given", given, by=given)
        elif of_attribute and parameter == "classes":
            reads.note(name, "read", None, "from y, which is public here")
        else:
            reads.note(name, "read", None, "from the rows: outside the guarantee where those are private")
