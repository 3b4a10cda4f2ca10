"""Lines of text: what a bad one says, and which line settles how the others are read."""

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.tables.lines import LINE_BYTES, MAX_CANDIDATES, Lines, read_lines
from tests.runs.bad_lines import bad_lines

HEADER, ROW = "time,site,wind", '{"time": 1, "site": "a", "wind": 5.5}'


def parsed(lines, texts, first=1):
    return [lines.parse(text, number) for number, text in enumerate(texts, first)]


# Reading -----------------------------------------------------------------------------------------------------------


class Endless:
    """A file of one line of 100 MB, and a short one, that is made while it is read."""

    def __init__(self):
        self.parts = iter([100 * 2**20, 0])
        self.left = next(self.parts)

    def readline(self, size):
        if not self.left:
            return b"short\n" if next(self.parts, None) is not None else b""
        taken = min(size, self.left)
        self.left -= taken
        return (taken - 1) * b"x" + (b"x" if self.left else b"\n")


def test_a_line_of_100_mb_is_one_bad_line_and_is_never_held_whole():
    tracemalloc.start()
    (one, error), (two, line) = read_lines(Endless())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (one, two, line) == (1, 2, b"short\n")
    assert str(error).startswith("line 1 has 104,857,600 bytes: send at most 1,048,576")
    assert peak < 5 * LINE_BYTES


@given(st.lists(st.binary(max_size=30), max_size=9), st.integers(1, 9))
def test_reading_in_small_parts_cuts_at_newlines_and_drops_what_is_too_long(pieces, longest):
    text = b"\n".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("braided.tables.lines.LINE_BYTES", longest)
        found = list(read_lines(io.BytesIO(text)))
    whole = io.BytesIO(text).readlines()
    assert [number for number, _ in found] == list(range(1, len(whole) + 1))
    for (_, line), expected in zip(found, whole, strict=True):
        assert (line == expected) if len(expected) <= longest else isinstance(line, bd.InputError)


def test_an_input_that_breaks_is_told_in_words():
    class Broken(io.BytesIO):
        def readline(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(bd.FileError, match=r"standard input can't be read \(Input/output error\)"):
        list(read_lines(Broken()))


# Bad lines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "csv"])
def test_every_bad_line_is_named_in_a_short_message_without_control_characters(form):
    lines = Lines()
    good = [ROW.replace("1,", '"2012-01-01",', 1)] if form == "json" else [HEADER, "2012-01-01,a,5.5"]
    parsed(lines, good)
    always, _ = bad_lines(form)
    assert len(always) >= 40
    usable = {"a date in 2044"}
    for kind, line in always.items():
        if kind in usable:
            continue
        with pytest.raises(bd.InputError) as refused:
            lines.parse(line, 77)
        message = str(refused.value)
        assert "line 77" in message
        assert len(message) < 600
        assert message.isprintable()


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["time", "site", "wind"]), inner),
    max_leaves=8,
)
garbage = (
    st.binary()
    | st.text()
    | nested.map(json.dumps)
    | st.fixed_dictionaries({"time": nested, "site": nested, "wind": nested}).map(json.dumps)
)


@pytest.mark.parametrize("good", [[ROW], [HEADER, "1,a,5.5"]], ids=["json", "csv"])
@given(
    before=st.lists(garbage.filter(lambda line: b"{" not in repr(line).encode()), max_size=4), after=st.lists(garbage)
)
def test_garbage_raises_input_errors_only_and_good_lines_are_read_the_same(good, before, after):
    lines = Lines(time="time", task="site", value="wind")
    for number, line in enumerate([*before, *good, *after]):
        try:
            lines.parse(line, number)
        except bd.InputError:
            assert line not in good
    again = lines.parse(good[-1].replace("1", "2", 1), 99)
    assert (again.time, again.values) == (2, {"a": 5.5})


def test_a_huge_integer_or_half_a_character_in_a_field_that_is_not_used_does_no_harm():
    lines = Lines(value="wind")
    row = lines.parse(rf'{{"trace": {30 * "7"}, "note": "\ud800", "time": 1, "site": "a", "wind": 5.5}}', 1)
    assert row.values == {"a": 5.5}


def test_a_wide_line_without_any_known_stream_is_not_passed_over_in_silence():
    lines = Lines()
    parsed(lines, ['{"time": 1, "north": 5.5, "south": 4.0}'])
    with pytest.raises(bd.InputError, match="line 2 has none of the streams 'north', 'south', it has 'time', 'east'"):
        lines.parse('{"time": 2, "east": 4.5}', 2)


# The form ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(
    "before",
    [["Starting"], ["Starting, please wait, really"], ["a,b", "c;d", "{", "[1, 2]"]],
    ids=["word", "csv", "more"],
)
def test_log_messages_before_the_first_row_are_bad_lines_and_no_more(form, before):
    lines = Lines()
    raised = 0
    for number, text in enumerate(before, 1):
        try:
            lines.parse(text, number)
        except bd.InputError:
            raised += 1
    rows = parsed(lines, [ROW] if form == "json" else [HEADER, "1,a,5.5"], len(before) + 1)
    assert (rows[-1].values, lines.form) == ({"a": 5.5}, form)
    assert raised + len(lines.rejected) == len(before)
    assert all("line " in str(error) for error in lines.rejected)


@pytest.mark.parametrize("bad", ["1,a,calm", "yesterday,a,5.5", "1,a", "n/a,n/a,n/a", "n/a,b,4", ",,", '1,"a,5', "{}"])
@pytest.mark.parametrize("header", [HEADER, "when,site,wind", ",north,south"])
def test_a_bad_first_row_does_not_lose_the_header(header, bad):
    lines = Lines()
    assert lines.parse(header, 1) is None
    try:
        lines.parse(bad, 2)
    except bd.InputError:
        lines.rejected.append(None)
    row = lines.parse("2024-01-01,7,5.5", 3)
    assert row.values == ({"7": 5.5} if "site" in header else {"north": 7.0, "south": 5.5})
    assert len(lines.rejected) == 1  # the bad row, now or later; never the header


def test_the_header_outlives_any_number_of_bad_rows_and_bad_rows_any_header():
    bad = [f"none,{n},calm" for n in range(3 * MAX_CANDIDATES)]
    for header, before in ((HEADER, bad), ("when;north;south", bad)):
        lines = Lines()
        parsed(lines, [*before, header])
        assert len(lines._candidates) <= MAX_CANDIDATES
        row = lines.parse("2024-01-01,a,5" if header is HEADER else "2024-01-01;4;5", 999)
        assert row is not None
        assert len(lines.rejected) == len(before)
    lines = Lines()
    parsed(lines, [HEADER, *bad])
    assert lines.parse("2024-01-01,a,5", 999).values == {"a": 5.0}


def test_a_header_that_comes_again_is_passed_over():
    lines = Lines()
    rows = parsed(lines, [HEADER, HEADER, "1,a,5", " time , site,wind ", "2,a,6"])
    assert [row and row.time for row in rows] == [None, None, 1, None, 2]
    assert lines.rejected == []


def test_a_header_with_a_name_twice_is_read_by_the_rules_of_tables():
    lines = Lines()
    lines.parse("time,site,wind,wind", 1)
    with pytest.raises(bd.InputError, match="line 2 has 2 columns that may be the value column"):
        lines.parse("2024-01-01,a,1,2", 2)
    lines = Lines()
    parsed(lines, ["time,site,wind,,", "1,a,5,,"])
    assert lines.form == "csv"


def test_a_row_that_is_refused_settles_nothing():
    def refuse(row):
        raise bd.InputError("no")

    lines = Lines()
    with pytest.raises(bd.InputError, match="no"):
        lines.parse(ROW, 1, refuse)
    assert (lines.form, lines.columns) == (None, None)
    assert lines.parse('{"date": "2024-01-01", "site": "a", "gust": 4}', 2).is_dated


@pytest.mark.parametrize("quote", [str, int])
def test_the_first_time_decides_whether_eight_digits_are_a_date(quote):
    def line(time):
        return json.dumps({"time": quote(time), "site": "a", "wind": 5.5})

    lines = Lines()
    rows = parsed(lines, [line("20240131"), line("20240201")])
    assert [row.is_dated for row in rows] == [True, True]
    assert rows[1].time - rows[0].time == 86_400_000_000
    with pytest.raises(bd.InputError, match=r"time at line 3 is .*: the first times are dates such as 20240131"):
        lines.parse(line("20240132"), 3)
    numbers = Lines()
    assert [row.time for row in parsed(numbers, [line("20240132"), line("20240201")])] == [20240132, 20240201]
