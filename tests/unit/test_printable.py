"""Names as people see them: nothing that steers a terminal, and nothing changed that can be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braided.printable import printable


@given(st.text())
def test_no_control_character_is_left_and_what_is_shown_is_shown_as_it_is(name):
    shown = printable(name)
    assert not [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000]
    assert printable(shown) == shown
    assert not name.isprintable() or shown == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mred\x07", r"a\x1b[31mred\x07"),
        ("two\r\nlines\tand\x00", r"two\r\nlines\tand\x00"),
        ("\ud800 alone", r"\ud800 alone"),
        ("\u202eleft", r"\u202eleft"),
        ("\x9b31m", r"\x9b31m"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner is part of the spelling
        ("no-break\xa0space", "no-break\xa0space"),
        (r"C:\new", r"C:\new"),
        (7, "7"),
    ],
)
def test_only_what_cannot_be_seen_is_escaped(name, shown):
    assert printable(name) == shown
