"""The five published tables: their columns, their size, and where a faithful copy is."""

from skfairdp.datasets._files import Source


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BANK_FEATURES = _names(
    "age job marital education default balance housing loan contact day month duration campaign pdays previous poutcome"
)
_CREDIT_FEATURES = _names(
    "LIMIT_BAL SEX EDUCATION MARRIAGE AGE PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6 "
    "BILL_AMT1 BILL_AMT2 BILL_AMT3 BILL_AMT4 BILL_AMT5 BILL_AMT6 "
    "PAY_AMT1 PAY_AMT2 PAY_AMT3 PAY_AMT4 PAY_AMT5 PAY_AMT6"
)
# The median of the published table: a constant of the benchmark, so that the label of a row never depends on
# the other rows that happen to be in the user's sample.
PARKINSONS_MEDIAN = 27.576

ADULT = Source(
    name="adult",
    columns=_names(
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
        "capital-gain capital-loss hours-per-week native-country class"
    ),
    target="class",
    rows=48_842,
    positives=11_687,
    positive=">50K",
    homepage="https://doi.org/10.24432/C5XW20",
    openml_id=1590,
)
BANK = Source(
    name="bank",
    columns=(*_BANK_FEATURES, "y"),
    target="y",
    rows=45_211,
    positives=5_289,
    positive="yes",
    homepage="https://doi.org/10.24432/C5K306",
    openml_id=1461,
    openml_columns=_BANK_FEATURES,
    openml_target_values=(("1", "no"), ("2", "yes")),
)
COMPAS = Source(
    name="compas",
    stem="compas-scores-two-years",
    columns=_names(
        "sex age race juv_fel_count juv_misd_count juv_other_count priors_count days_b_screening_arrest "
        "c_charge_degree is_recid score_text two_year_recid"
    ),
    target="two_year_recid",
    rows=7_214,
    positives=3_251,
    positive=1,
    homepage="https://github.com/propublica/compas-analysis",
)
CREDIT = Source(
    name="credit",
    columns=(*_CREDIT_FEATURES, "default"),
    target="default",
    rows=30_000,
    positives=6_636,
    positive=1,
    homepage="https://doi.org/10.24432/C55S3H",
    openml_id=42477,
    openml_columns=_CREDIT_FEATURES,
    openml_target_values=(("0", 0), ("1", 1)),
)
PARKINSONS = Source(
    name="parkinsons",
    columns=_names(
        "subject# age sex test_time motor_UPDRS total_UPDRS Jitter(%) Jitter(Abs) Jitter:RAP Jitter:PPQ5 "
        "Jitter:DDP Shimmer Shimmer(dB) Shimmer:APQ3 Shimmer:APQ5 Shimmer:APQ11 Shimmer:DDA NHR HNR RPDE "
        "DFA PPE"
    ),
    target="high_UPDRS",
    rows=5_875,
    positives=2_934,
    positive=True,
    homepage="https://doi.org/10.24432/C5ZS3N",
    label=lambda frame: frame["total_UPDRS"] > PARKINSONS_MEDIAN,
)
