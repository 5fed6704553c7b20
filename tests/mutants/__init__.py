"""Known ways to get differential privacy wrong, planted one at a time; the suite has to notice each of them.

``pytest tests/mutants -v`` is the table: every line names the trap, the mistake and the test that fails on it.
"""
