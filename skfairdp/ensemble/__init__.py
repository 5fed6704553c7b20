"""Kinds of teachers for the ``teacher`` parameter: many of them are trained as one array program."""

from skfairdp._teachers import LogisticTeachers, MLPTeachers, ModuleTeachers

__all__ = ["LogisticTeachers", "MLPTeachers", "ModuleTeachers"]
