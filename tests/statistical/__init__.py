"""Theorem tests: sensitivities, noise, accounting and audits of what the estimators release."""
