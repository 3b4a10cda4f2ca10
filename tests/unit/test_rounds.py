"""Tables in batches: the chunks are those of a slow and obvious reader, however the rows are written and read."""

import csv
import gzip
import io
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.tables import open_rounds

GOOD = "time,site,value\n2024-01-01,a,1\n2024-01-01,b,2\n2024-01-02,a,3\n2024-01-02,b,5\n"


def slow_cells(texts, delimiter, form):
    """{time: {task: numbers}} of years, and the tasks in the order in which time brings them."""
    cells = {}
    for text in texts:
        header, *records = (
            record for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if record
        )
        for record in records:
            row = dict(zip(header, record, strict=True))
            at = cells.setdefault(int(row.pop("year")), {})
            if form == "wide":
                at.update({task: [number(cell)] for task, cell in row.items()})
            else:
                at[row["site"]] = [number(row[name]) for name in ("value", "gust")]
    return dict(sorted(cells.items()))


def number(text):
    return float("nan") if text in ("", "NA") else float(text)


def fast_cells(chunks):
    """The same of chunks, which are checked for what they promise."""
    cells = {}
    for chunk in chunks:
        assert chunk.values.shape == (len(chunk.times), len(chunk.tasks)) == chunk.extras.shape[:2]
        assert len(set(chunk.tasks)) == len(chunk.tasks)
        numbers = np.concatenate([chunk.values[:, :, None], chunk.extras], axis=2)
        for time, row in zip(chunk.times.tolist(), numbers, strict=True):
            assert not cells or time > max(cells)
            cells[time] = dict(zip(chunk.tasks, row.tolist(), strict=True))
    for before, after in pairwise(chunks):
        assert after.tasks[: len(before.tasks)] == before.tasks
        assert list(after.tasks[len(before.tasks) :]) == sorted(after.tasks[len(before.tasks) :])
    assert list(chunks[0].tasks) == sorted(chunks[0].tasks)
    return cells


def assert_same_cells(fast, slow):
    assert list(fast) == list(slow)
    tasks = {task for row in slow.values() for task in row}
    assert set(list(fast.values())[-1]) == tasks
    for time, row in fast.items():
        width = len(next(iter(row.values())))
        for task in tasks:
            nothing = [float("nan")] * width
            np.testing.assert_array_equal(row.get(task, nothing), slow[time].get(task, nothing))


def assert_same_chunks(chunks, others):
    for chunk, other in zip(chunks, others, strict=True):
        assert chunk.tasks == other.tasks
        for one, two in zip((chunk.times, *chunk[2:]), (other.times, *other[2:]), strict=True):
            np.testing.assert_array_equal(one, two)
            assert one.dtype == two.dtype


def write(folder, text, name="table.csv"):
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refused(source, message, error=bd.InputError, **options):
    with pytest.raises(error, match=message):
        list(open_rounds(source, **options).chunks())


names_of_tasks = st.lists(
    st.text('ab",;\n é7', min_size=1).map(str.strip).filter(lambda name: name and not re.fullmatch(r"\d+", name)),
    min_size=2,
    max_size=4,
    unique=True,
)


@st.composite
def tables(draw):
    """Rows of a long or wide table of years in a random order: (form, header, rows)."""
    tasks = draw(names_of_tasks)
    years = draw(st.lists(st.integers(-5, 30), min_size=2, max_size=8, unique=True))
    cell = st.sampled_from(["1.5", "-2", "3e2", "", "NA", "0.25"])
    if draw(st.booleans()):
        header = ["year", *tasks]
        rows = [[str(year), *(draw(cell) for _ in tasks)] for year in years]
        for place in range(1, len(header)):
            rows[0][place] = "1"  # so that no column is empty
        return "wide", header, draw(st.permutations(rows))
    where = [(year, task) for year in years for task in tasks]
    kept = draw(st.lists(st.sampled_from(where), min_size=1, unique=True))
    return (
        "long",
        ["note", "year", "site", "gust", "value"],
        [
            [draw(st.sampled_from(["", 'say "no"', "x\ny", "a,b;c"])), str(year), task, draw(cell), draw(cell)]
            for year, task in kept
        ],
    )


@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t"),
    line_end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    suffix=st.sampled_from([".csv", ".csv.gz", ".tsv", ".parquet"]),
    n_files=st.integers(1, 3),
    batch_rows=st.sampled_from([1, 3, 7, 500_000]),
    data=st.data(),
)
def test_chunks_are_those_of_a_slow_reader(
    tmp_path_factory, table, delimiter, line_end, suffix, n_files, batch_rows, data
):
    form, header, rows = table
    folder = tmp_path_factory.mktemp("any")
    texts, paths = [], []
    for part in range(min(n_files, len(rows))):
        text = io.StringIO()
        quoting = csv.QUOTE_ALL if form == "wide" else csv.QUOTE_MINIMAL  # names with commas between tabs mislead
        writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
        writer.writerows([header, *rows[part :: min(n_files, len(rows))]])
        texts.append(text.getvalue())
        paths.append(folder / f"part{part}{suffix}")
        if suffix == ".parquet":
            columns = zip(*rows[part :: min(n_files, len(rows))], strict=True)
            parquet.write_table(
                pa.table(dict(zip(header, map(list, columns), strict=True))), paths[-1], row_group_size=5
            )
        else:
            write(folder, texts[-1], paths[-1].name)
    options = {} if form == "wide" else {"task": "site", "value": "value", "features": ["gust"]}
    several = [
        list(open_rounds(paths, batch_rows=batch_rows, block_bytes=size, **options).chunks())
        for size in (50, data.draw(st.integers(1, 300)), 1 << 22)
    ]
    slow = slow_cells(texts, delimiter, form)
    assert_same_cells(fast_cells(several[0]), slow)
    for other in several[1:]:
        assert_same_chunks(other, several[0])
    first = several[0][0]
    if form == "long":  # a task is in a chunk from its first row on
        assert set(first.tasks) == {task for time in first.times.tolist() for task in slow[time]}


@given(
    seed=st.integers(0, 2**32 - 1),
    reach=st.integers(0, 40),
    sort_rows=st.integers(0, 40),
    batch_rows=st.sampled_from([1, 5, 16, 100]),
    suffix=st.sampled_from([".csv", ".parquet"]),
)
def test_rows_out_of_order_are_sorted_within_the_window_and_refused_beyond(
    tmp_path_factory, seed, reach, sort_rows, batch_rows, suffix
):
    rng = np.random.default_rng(seed)
    years, sites = (part.ravel() for part in np.meshgrid(np.arange(40), ["a", "b", "c"], indexing="ij"))
    order = np.argsort(np.arange(120) + rng.uniform(0, reach, 120), kind="stable")
    frame = pd.DataFrame({"year": years, "site": sites, "value": np.arange(120.0)}).iloc[order]
    path = tmp_path_factory.mktemp("window") / f"table{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    times = frame["year"].to_numpy()
    ahead = max(int((times[:row] > times[row]).sum()) for row in range(120))
    for window in (ahead, sort_rows):
        try:
            chunks = list(open_rounds(path, batch_rows=batch_rows, sort_rows=window).chunks())
        except bd.InputError:
            assert window < ahead
            message = r"year \d+ at (line|row) \d+ of .* comes after the rounds up to"
            refused(path, message, batch_rows=batch_rows, sort_rows=window)
        else:
            np.testing.assert_array_equal(np.concatenate([chunk.times for chunk in chunks]), np.arange(40))
            values = np.concatenate([chunk.values for chunk in chunks])
            np.testing.assert_array_equal(values, np.arange(120.0).reshape(40, 3))


def test_a_row_of_a_round_that_is_gone_is_refused_even_if_it_is_of_another_task(tmp_path):
    text = "year,site,value\n" + "".join(f"{year},{site},{year}\n" for year in range(9) for site in "ab") + "4,c,1\n"
    path = write(tmp_path, text)
    refused(path, r"year 4 at line 20 .* now 3 \(--sort-rows, or sort_rows= in Python\)", batch_rows=2, sort_rows=3)
    assert fast_cells(list(open_rounds(path).chunks()))[4]["c"] == [1.0]


def test_sorted_rows_need_no_window(tmp_path):
    path = write(tmp_path, "year,site,value\n" + "".join(f"{i // 5},{'abcde'[i % 5]},{i}\n" for i in range(100)))
    chunks = list(open_rounds(path, batch_rows=7, sort_rows=0).chunks())
    assert {len(chunk.times) for chunk in chunks} == {1, 2}
    np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in chunks]).ravel(), np.arange(100))


def test_late_tasks_are_appended(tmp_path):
    text = "year,site,value\n1,m,1\n1,z,2\n2,b,3\n2,a,4\n3,c,5\n3,m,6\n"
    chunks = list(open_rounds(write(tmp_path, text), batch_rows=2).chunks())
    assert [chunk.tasks for chunk in chunks] == [("m", "z"), ("m", "z", "a", "b"), ("m", "z", "a", "b", "c")]
    np.testing.assert_array_equal(chunks[2].values, [[6, np.nan, np.nan, np.nan, 5]])
    assert next(open_rounds(write(tmp_path, text)).chunks()).tasks == ("a", "b", "c", "m", "z")


def test_many_tasks_that_never_meet_make_no_huge_chunk(tmp_path):
    path = write(tmp_path, "year,site,value\n" + "".join(f"{i},site {i % 50},1\n" for i in range(1000)))
    chunks = list(open_rounds(path, batch_rows=500).chunks())
    assert max(chunk.values.size for chunk in chunks) <= 1000
    assert sum(len(chunk.times) for chunk in chunks) == 1000


def test_a_row_of_a_wide_table_counts_for_its_samples(tmp_path):
    header = ",".join(f"site {i}" for i in range(10))
    path = write(tmp_path, f"year,{header}\n" + "".join(f"{i}{',1' * 10}\n" for i in range(50)))
    assert [len(chunk.times) for chunk in open_rounds(path, batch_rows=100).chunks()] == [10] * 5
    text = path.read_text() + "42" + ",2" * 10
    refused(write(tmp_path, text), "year 42 at line 52 of .* comes after", batch_rows=10, sort_rows=50)
    refused(write(tmp_path, text), "year 42 appears twice, at lines 44 and 52 of .*: keep one, or name the column")


def test_progress_and_a_second_iteration(tmp_path):
    rows = "".join(f"{i},{'ab'[j]},{np.sin(i):.12f}\n" for i in range(5000) for j in range(2))
    frame = pd.read_csv(io.StringIO(f"year,site,value\n{rows}"))
    frame.to_parquet(tmp_path / "table.parquet")
    text = f"year,site,value\n{rows}"
    sources = [write(tmp_path, text), write(tmp_path, text, "table.csv.gz"), tmp_path / "table.parquet", frame]
    for source in sources:
        rounds = open_rounds(source, batch_rows=1000, sort_rows=1000, block_bytes=1000)
        assert rounds.progress == 0.0
        seen = []
        for _ in rounds.chunks():
            seen.append(rounds.progress)
        assert seen == sorted(seen)
        assert 0.05 < seen[0] < 0.6
        whole = open_rounds(source, batch_rows=1000)  # all is read before a chunk is given, so the share is exact
        np.testing.assert_allclose([whole.progress for _ in whole.chunks()], np.arange(1, 11) / 10)
        assert seen[-1] == 1.0
        assert_same_chunks(list(rounds.chunks()), list(rounds.chunks()))
        rounds.chunks()
        assert rounds.progress == 0.0


def test_several_files_are_one_table(tmp_path):
    one = write(tmp_path, GOOD, "one.csv")
    two = write(tmp_path, "site;value;time\nb;7;2024-01-03\nc;8;2024-01-03\n", "two.csv")
    rounds = open_rounds([one, str(two)])
    assert rounds.name == "one.csv and 1 more"
    (chunk,) = rounds.chunks()
    np.testing.assert_array_equal(chunk.values, [[1, 2, np.nan], [3, 5, np.nan], [np.nan, 7, 8]])
    assert chunk.times.dtype == np.dtype("datetime64[us]")
    twice = write(tmp_path, "time,site,value\n2024-01-02,b,6\n", "twice.csv")
    refused([one, twice], "site 'b' appears twice, at line 5 of .*one.csv and line 2 of .*twice.csv: keep one")
    other = write(tmp_path, "time,site,power\n2024-01-02,b,6\n", "other.csv")
    refused([one, other], "other.csv and .*one.csv differ in the columns 'power', 'value': files that are read as one")
    refused([], "no file: give the path of at least one")
    refused([one, 5], "a int is not a path: give the paths of files, or one data frame")
    empty = write(tmp_path, "time,site,value\n", "empty.csv")
    refused([one, empty], "empty.csv has a header and no rows")


@pytest.mark.parametrize(
    ("first", "second"),
    [("2024-01-03", "2024-01-03 00:00Z"), ("2024-01-03 00:00Z", "2024-01-03"), ("2024", "2024-01-03")],
)
@pytest.mark.parametrize("files", [1, 2])
def test_times_are_of_one_kind_in_all_batches_and_files(tmp_path, first, second, files):
    header = "time,site,value\n"
    texts = [f"{header}{first},a,1\n", f"{second},b,2\n"]
    message = f"time at line {{}} of .* is '{second}': write all as 2024-01-31"
    if files == 1:
        refused(write(tmp_path, "".join(texts)), message.format(3), block_bytes=20, batch_rows=1)
    else:
        paths = [write(tmp_path, texts[0], "one.csv"), write(tmp_path, header + texts[1], "two.csv")]
        refused(paths, message.format(2))


DAYS = pd.date_range("2023-12-25", periods=40)


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y-%m"])
@pytest.mark.parametrize("name", ["time", "unknown"])
@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("block_bytes", [20, 10**6])
def test_dates_of_eight_digits_and_months_are_the_dates_they_say(tmp_path, form, name, as_file, block_bytes):
    days = DAYS if form == "%Y%m%d" else pd.date_range("2023-01", periods=40, freq="MS")
    texts = days.strftime(form)
    frame = pd.DataFrame({name: texts if "-" in texts[0] else texts.astype(int), "a": 1.0, "b": np.arange(40.0)})
    source = write(tmp_path, frame.to_csv(index=False)) if as_file else frame
    chunks = list(open_rounds(source, block_bytes=block_bytes, batch_rows=7).chunks())
    np.testing.assert_array_equal(np.concatenate([chunk.times for chunk in chunks]), days.to_numpy())


@pytest.mark.parametrize("place", [0, 39, 2000])
@pytest.mark.parametrize("block_bytes", [20, 10**6])
def test_among_dates_of_eight_digits_another_number_is_refused(tmp_path, place, block_bytes):
    days = pd.date_range("2000-01-01", periods=3000).strftime("%Y%m%d").tolist()
    days[place] = days[place][:6] + "99"
    path = write(tmp_path, "time,a,b\n" + "".join(f"{day},1,2\n" for day in days))
    message = f"time at line {place + 2} of .* is '{days[place]}': the first times are"
    refused(path, message, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [20, 10**6])
def test_integers_that_count_up_are_no_dates(tmp_path, block_bytes):
    path = write(tmp_path, "time,a,b\n" + "".join(f"{20000101 + row},1,2\n" for row in range(150)))
    (chunk,) = open_rounds(path, block_bytes=block_bytes).chunks()
    assert chunk.times.tolist() == list(range(20000101, 20000251))


def test_times_of_one_kind_in_files_of_several_types(tmp_path):
    text = write(tmp_path, "time,site,value\n2024-01-03,a,1\n")
    naive, aware = tmp_path / "naive.parquet", tmp_path / "aware.parquet"
    frame = pd.DataFrame({"time": pd.to_datetime(["2024-01-04"]), "site": ["a"], "value": [2.0]})
    frame.to_parquet(naive)
    frame.assign(time=frame["time"].dt.tz_localize("Asia/Tokyo")).to_parquet(aware)
    (chunk,) = open_rounds([text, naive]).chunks()
    assert chunk.times.tolist() == np.array(["2024-01-03", "2024-01-04"], "datetime64[us]").tolist()
    (chunk,) = open_rounds(aware).chunks()
    assert chunk.times.tolist() == np.array(["2024-01-03T15:00"], "datetime64[us]").tolist()
    refused([text, aware], "time at row 1 of .*aware.parquet is datetime.*: write all as")
    refused([aware, naive], "time at row 1 of .*naive.parquet is datetime.*: write all as")


def test_features(tmp_path):
    path = write(tmp_path, "time,site,value,gust,note,load\n1,a,1,9,x,2\n1,b,2,,y,3\n2,b,4,7,z,4\n")
    rounds = open_rounds(path, features=["load", "gust"])
    assert rounds.columns.features == ("load", "gust")
    assert rounds.columns.describe() == (
        "long table: time 'time', stream 'site', value 'value', features 'load', 'gust' (guessed)"
    )
    (chunk,) = rounds.chunks()
    np.testing.assert_array_equal(chunk.extras, [[[2, 9], [3, np.nan]], [[np.nan, np.nan], [4, 7]]])
    assert next(open_rounds(path, features="gust").chunks()).extras.shape == (2, 2, 1)
    assert next(open_rounds(path).chunks()).extras.shape == (2, 2, 0)
    refused(path, "--features .* has 'lode', which is no column: there are", features=["lode"])
    refused(path, "--features .* has 'value', the time, stream or value itself", value="value", features=["value"])
    refused(path, "note at line 2 of .* is 'x': write a number", features=["note"])
    wide = write(tmp_path, "time,a,b,c\n1,2,3,4\n", "wide.csv")
    refused(
        wide,
        "--features .* names columns of a long table, 'c', and .* is wide, a column per stream: name",
        features=["c"],
    )


@pytest.mark.parametrize("block_bytes", [50, 1 << 22])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7,a,calm,", "value at line 42 of .* is 'calm': write a number"),
        ("7,a,-inf,", "value at line 42 of .* is '-inf': write a finite number"),
        ('7,a,"5,500",', "value at line 42 of .* is '5,500': this may be 5500 or, with a decimal comma, 5.500: write"),
        ('7,a,"5,5",', "value at line 42 of .* is '5,5': this has a decimal comma; write a point, 5.5"),
        ("soon,a,1,", "time at line 42 of .* is 'soon': write all as"),
        ("7,,1,", "site at line 42 of .* is empty: every row needs one"),
        ("7,a,1", "line 42 of .* has 3 fields, the header 4: quote a field that holds a comma"),
        ('7,a,1,"note', "line 42 of .* starts a record that never ends .*: close every quote"),
        ("7,é,1,", "line 42 of .* is not UTF-8 text"),
        ("7,a,1,\r8,a,1,", r"line 42 of .* has a lone \\r: end all lines in \\n or in \\r\\n"),
    ],
)
def test_a_fault_in_any_block_is_named_with_its_line(tmp_path, block_bytes, line, message):
    rows = "".join(f'{i},a,{i},"one\n\n""two"", 5"\n' for i in range(13))
    path = tmp_path / "table.csv"
    path.write_bytes(f"\ntime,site,value,note\n{rows}{line}\n9999,b,1,\n".encode("latin-1"))
    refused(path, message, block_bytes=block_bytes, batch_rows=5)


def test_blocks_of_nothing_but_line_ends(tmp_path):
    path = write(tmp_path, "\r\n" * 99 + GOOD.replace("\n", "\n" * 50) + "2024-01-03,a,x\n" + "\n" * 99)
    refused(path, "value at line 350 of .* is 'x'", block_bytes=10)


def test_a_quote_in_the_middle_of_a_field_is_text(tmp_path):
    rows = [f'{i},a,{i},5" pipe,"one\ntwo, ""three"""' for i in range(7)]
    path = write(tmp_path, "\n".join(["time,site,value,size,note", *rows]))
    for block_bytes in (10, 1000):
        chunks = list(open_rounds(path, block_bytes=block_bytes, batch_rows=2).chunks())
        assert np.concatenate([chunk.values for chunk in chunks]).ravel().tolist() == list(range(7))


def test_a_record_without_end_fills_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("braided.tables.csv_file.RECORD_BYTES", 10_000)
    path = write(tmp_path, GOOD + '2024-01-03,a,1,"note\n' + "2024-01-03,b,1\n" * 5000)
    refused(path, "line 6 of .* starts a record that never ends .*: close every quote", block_bytes=100)


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_gzip_cut_short_gives_its_first_chunks(tmp_path, kept):
    rng = np.random.default_rng(0)
    rows = "".join(f"{i},{site},{rng.random()}\n" for i in range(5000) for site in "ab")
    path = write(tmp_path, f"time,site,value\n{rows}", "table.csv.gz")
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    chunks = open_rounds(path, batch_rows=500, sort_rows=0, block_bytes=1000).chunks()
    assert len(next(chunks).times) > 100
    with pytest.raises(bd.FileError, match=r"can't be read .*: it may be cut short or damaged"):
        list(chunks)


WIDE = pd.DataFrame(
    {"north": [1.0, np.nan, 3.0], "south": [4.0, 5.0, 6.0]}, pd.date_range("2024-01-01", periods=3, freq="D")
)
LONG = WIDE.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y")


@pytest.mark.parametrize(
    "frame",
    [
        WIDE,
        WIDE.rename_axis("when"),
        WIDE.rename_axis("time").reset_index(),
        WIDE.sample(frac=1.0, random_state=3),
        LONG,
        LONG.sample(frac=1.0, random_state=0),
        LONG.set_index(["ds", "unique_id"]),
        LONG.astype({"unique_id": "category"}),
        pl.from_pandas(LONG),
        pl.from_pandas(LONG).with_columns(pl.col("unique_id").cast(pl.Categorical)),
        pl.from_pandas(WIDE.rename_axis("Time").reset_index()),
        pa.Table.from_pandas(LONG),
        pa.table(LONG).to_reader(),
        {"date": ["2024-01-01", "2024-01-02", "2024-01-03"], "north": [1, None, 3], "south": ["4", "5", "6"]},
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_data_frames(frame):
    named = {"time": "when"} if getattr(getattr(frame, "index", None), "name", None) == "when" else {}
    rounds = open_rounds(frame, batch_rows=4, **named)
    assert rounds.name == "data frame"
    chunks = list(rounds.chunks())
    assert chunks[-1].tasks == ("north", "south")
    assert chunks[0].times.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(np.concatenate([chunk.times for chunk in chunks]), WIDE.index.to_numpy())
    np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in chunks]), WIDE.to_numpy())


def test_what_is_no_data_frame():
    for data in (5, pd.Series([1]), np.zeros((2, 2)), pd.DataFrame({"time": [1, "a"], "value": [1, 2]})):
        refused(
            data, f"a {type(data).__name__} is not a table that can be read .*: give a path, a list of paths, or a data"
        )
    refused(LONG.assign(y=np.inf), "y at row 1 of the data frame is inf: write a finite number")
    refused(LONG[:0], "the data frame has a header and no rows")
    assert open_rounds(LONG.rename(columns={"ds": "hour"})).columns.time == "hour"  # the only one with dates
    numbered = LONG.assign(ds=range(len(LONG))).rename(columns={"ds": "hour"})
    refused(numbered, "the data frame has no time column; its columns are 'hour'")


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (GOOD, "long table: time 'time', stream 'site', value 'value' (guessed)"),
        ("DS,Unique_ID,Y,x\n1,a,2,3\n", "long table: time 'DS', stream 'Unique_ID', value 'Y' (guessed)"),
        ("date,item_id,target,price\n1,a,2,3\n", "long table: time 'date', stream 'item_id', value 'target' (guessed)"),
        ("date,location,load,temp\n1,a,2,3\n", "long table: time 'date', stream 'location', value 'load' (guessed)"),
        ("Date,north,south,remark\n1,2,3,x\n", "wide table: time 'Date', a column for each of 2 streams (guessed)"),
        (",time,site,value\n0,1,a,2\n", "long table: time 'time', stream 'site', value 'value' (guessed)"),
        (",time,a,b\n0,1,3,4\n", "wide table: time 'time', a column for each of 2 streams (guessed)"),
        (",a,b\n2024-01-01,3,4\n", "wide table: time '', a column for each of 2 streams (guessed)"),
        (",a,b\n1929,3,4\n", "wide table: time '', a column for each of 2 streams (guessed)"),
        (",site,value\n2024-01-01,a,4\n", "long table: time '', stream 'site', value 'value' (guessed)"),
        (
            "time,a,b,c\n1,NA,,2\n2,calm,1,2\n3,4,x,2\n",
            "wide table: time 'time', a column for each of 3 streams (guessed)",
        ),
    ],
)
def test_columns_are_guessed(tmp_path, text, described):
    assert open_rounds(write(tmp_path, text)).columns.describe() == described


def test_columns_that_are_named(tmp_path):
    path = write(tmp_path, "time,site,state,value,load\n1,a,x,2,3\n1,b,x,4,5\n")
    columns = open_rounds(path, time="time", task="state", value="load").columns
    assert columns[:6] == ("time", "state", "load", (), "long", False)
    assert columns.describe() == "long table: time 'time', stream 'state', value 'load'"
    assert open_rounds(path, task="load").columns.value == "value"
    assert open_rounds(path, task="value").columns.value == "load"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (",hour,site,value\n0,1,a,1\n", {}, "no time column; its columns are '', 'hour', .*--time"),
        ("t,a,b\n0,,1\n1,2,3\n", {}, "no time column; its columns are 't', 'a', 'b'"),
        (",hour,site,b\n0,1,x,4\n", {}, "no time column; its columns are '', 'hour', .*--time"),
        (
            "time,where,north\n1,x,2\n",
            {},
            "no stream column; its columns are 'time', 'where', 'north': call it site or .*--stream, or task=",
        ),
        ("time,north\n1,calm\n", {}, "no stream column"),
        ("time,lat,lon,wind\n1,2,3,4\n", {}, "no stream column"),
        (
            "time,a,b\n1,2,3\n",
            {"value": "a"},
            r"no stream column, and --value .* names one column, 'a': name",
        ),
        ("time,a,a,b\n1,2,3,4\n", {}, "2 columns that may be the column 'a'"),
        ("time,a,b\n1,calm,3\n2,4,5\n", {}, "a at line 2 of .* is 'calm'"),
        ("time;a;b\n1;5,5;3\n", {}, "a at line 2 of .* is '5,5': this has a decimal comma; write a point, 5.5"),
        ("time;a;b\n1;5;3;4\n", {}, "line 2 of .* has 4 fields, the header 3: quote a field that holds a semicolon"),
        ("time,a,b\r1,2,3\r2,3,4\r", {}, r"line 1 of .* has a lone \\r"),
        ("time,a,b\n1,2,3\n", {"batch_rows": 0}, "batch_rows is 0: it must be 1 or more"),
        ("time,a,b\n1,2,3\n", {"sort_rows": -1}, "sort_rows is -1: it must be 0 or more"),
        ("time," + ",".join(f"c{i}" for i in range(99)) + "\n", {"time": "t"}, "header and no rows"),
        (
            "t," + ",".join(f"c{i}" for i in range(99)) + "\n1" + ",1" * 99,
            {},
            "no time column; its columns are 't', 'c0', .* 'c38' and 60 more: call it timestamp",
        ),
    ],
)
def test_columns_that_can_not_be_told(tmp_path, text, options, message):
    refused(write(tmp_path, text), message, **options)


def test_a_column_of_values_that_is_called_like_streams_is_one_more_stream(tmp_path):
    rows = "\n".join(f"2024-01-{day:02},{day},{day / 2},{7 * day % 11}" for day in range(1, 29))
    assert open_rounds(write(tmp_path, f"day,AK,ID,WY\n{rows}")).columns.tasks == ("AK", "ID", "WY")
    long = "\n".join(f"2024-01-{day:02},{day},{who}" for who in (1, 2) for day in range(1, 29))
    assert open_rounds(write(tmp_path, f"day,AK,ID\n{long}")).columns.task == "ID"


@pytest.mark.parametrize("options", [{}, {"value": "sales"}])
def test_a_time_and_a_value_are_one_stream(tmp_path, options):
    rounds = open_rounds(write(tmp_path, "day,sales\n2024-01-01,5\n2024-01-02,7\n"), **options)
    assert rounds.columns.describe() == "wide table: time 'day', one stream, 'sales' (guessed)"
    (chunk,) = rounds.chunks()
    assert chunk.tasks == ("sales",)
    assert chunk.values.tolist() == [[5.0], [7.0]]


def test_tasks_in_parquet_need_not_be_text(tmp_path):
    for sites in (
        pa.array([7, 8]),
        pa.array(["a", " b "], pa.large_string()),
        pa.array(["a", "b"]).dictionary_encode(),
    ):
        table = pa.table({"time": [1, 1], "site": sites, "value": [1, 2]})
        parquet.write_table(table, tmp_path / "table.parquet")
        assert next(open_rounds(tmp_path / "table.parquet").chunks()).tasks in (("7", "8"), ("a", "b"))
    lists = pa.table({"time": [1, 1], "site": [["a"], ["b"]], "value": [1, 2]})
    refused(lists, r"site at row 1 of the data frame is \['a'\]: write a name")
    stamps = pa.table({"time": pa.array([1, 2], pa.timestamp("s")).dictionary_encode(), "a": [1, 2], "b": [3, 4]})
    assert next(open_rounds(stamps).chunks()).times.tolist() == np.array([1, 2], "datetime64[s]").tolist()
