"""Plain words: what is measured of a page, and which pages pass a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("markdown", reason="needs the docs extra")

from benchmarks.plain_words import LIMITS, PlainPage, measured, passed

PAGE = """# A title of five words

Success rose to 85.2 %, e.g. in houses [80, 90]. It [did](there.md) so with `--steps 40 --seed 3`.

```bash
nobody 1 2 3 [1, 2]
```

| a | b |
|---|---|
| 12 [10, 14] | to the letter |

- One point of 3
<!-- board:start -->
many words made
<!-- board:end -->
<!--
{{ settings() }}
-->

many words more
<!--/-->
"""


def test_prose_is_measured_without_code_and_tables():
    page = measured("a.md", PAGE)
    assert page.intervals == 1
    assert page.sentence == pytest.approx((10 + 5 + 4) / 3)
    assert page.jargon == ("to the letter",)
    assert page.words == len(PAGE.split("<!--", maxsplit=1)[0].split())


@pytest.mark.parametrize(
    ("limit", "changed"),
    [
        ("words of README", {"words": 801}),
        ("words a sentence", {"sentence": LIMITS["words a sentence"] + 1}),
        ("intervals outside tables", {"intervals": 11}),
        ("words of our own", {"jargon": ("nobody",) * 9}),
    ],
)
def test_a_page_that_passes_a_limit_is_named(limit, changed):
    plain = PlainPage("README.md", words=700, sentence=12.0, intervals=0, jargon=())
    assert not passed([plain])
    (said,) = passed([replace(plain, **changed)])
    assert said.startswith(f"{limit}, at most")
    assert "README.md" in said


def test_pages_are_counted_together():
    long = PlainPage("docs/a.md", words=15_000, sentence=12.0, intervals=0, jargon=())
    assert passed([replace(long, words=1), long, long]) == ["words in all, at most 22,000: docs 30,000"]
