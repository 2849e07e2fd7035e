"""The tensor expression examples run as scripts and print the numbers that are known for them."""

import pytest
from example_scripts import printed_by

ADD = """
[[16 16 16 16]
 [16 16 16 16]
 [16 16 16 16]
 [16 16 16 16]]
"""
BROADCAST_ADD = """
[[ 4  4  4  4]
 [ 8  8  8  8]
 [12 12 12 12]
 [16 16 16 16]]
"""
CONV2D = """
[[[[ 474  510  546  582  618  654]
   [ 762  798  834  870  906  942]
   [1050 1086 1122 1158 1194 1230]
   [1338 1374 1410 1446 1482 1518]
   [1626 1662 1698 1734 1770 1806]
   [1914 1950 1986 2022 2058 2094]]

  [[1203 1320 1437 1554 1671 1788]
   [2139 2256 2373 2490 2607 2724]
   [3075 3192 3309 3426 3543 3660]
   [4011 4128 4245 4362 4479 4596]
   [4947 5064 5181 5298 5415 5532]
   [5883 6000 6117 6234 6351 6468]]]]
"""


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("te_add.py", ADD),
        ("te_broadcast_add.py", BROADCAST_ADD),
        ("te_conv2d.py", CONV2D),
        ("te_bmm_relu.py", "the transformed program is the target\n"),
        ("run_mm_relu.py", "speed-up"),
    ],
)
def test_example(
    script: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed in printed_by(script, capsys, monkeypatch)
