"""te.ops under default schedules: what `weft.build` makes of operators that nobody scheduled."""

import pytest
from operator_cases import Case, check
from scheduled_operators import CASES


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_default_schedules(case: Case) -> None:
    check([case], default_schedule=True)
