"""Panels, from tables and as tables: every form reads back the same, and every fault is named with its place."""

import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import braided as bd
from braided.tables import Panel, open_rounds, read_table, write_table

SHARED = Path(__file__).parents[3] / "shared" / "data"
GOOD = "time,site,value\n2024-01-01,a,1\n2024-01-01,b,2\n2024-01-02,a,3\n2024-01-02,b,5\n"


def long_table(seed=0, steps=50, sites=4):
    """Hourly values of some sites, every tenth missing, in random order."""
    rng = np.random.default_rng(seed)
    hours = pd.date_range("2024-03-01", periods=steps, freq="h", unit="s")
    wide = pd.DataFrame(rng.normal(size=(steps, sites)), hours, [f"site {i}" for i in range(sites)])
    long = wide.rename_axis("time").reset_index().melt("time", var_name="site", value_name="value")
    long.loc[rng.random(len(long)) < 0.1, "value"] = np.nan
    return long.sample(frac=1.0, random_state=seed)


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_frame(frame, path):
    if path.suffix in (".parquet", ".pq"):
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


def assert_same(panel, other):
    assert panel.tasks == other.tasks
    assert panel.times.dtype == other.times.dtype
    np.testing.assert_array_equal(panel.times, other.times)
    np.testing.assert_array_equal(panel.values, other.values)


def refused(path, message, error=bd.InputError, **columns):
    with pytest.raises(error, match=message) as caught:
        read_table(path, **columns)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["my.table.csv", "my.table.csv.gz", "my.table.CSV", "my.table.parquet", "my.table.pq"])
def test_a_table_reads_back_as_pandas_has_it(tmp_path, name):
    long = long_table()
    path = write_frame(long, tmp_path / name)
    panel = read_table(str(path))
    wide = long.pivot(index="time", columns="site", values="value")
    assert (panel.name, panel.source, panel.synthetic) == (name, f"file {name}, 'value' by 'site' and 'time'", False)
    assert panel.tasks == tuple(wide.columns)
    assert panel.times.dtype == np.dtype("datetime64[s]")
    np.testing.assert_array_equal(panel.times, wide.index.to_numpy())
    np.testing.assert_array_equal(panel.values, wide.to_numpy())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_order_of_rows_and_columns_and_the_absence_of_missing_rows_change_nothing(tmp_path, suffix):
    long = long_table(1)
    panel = read_table(write_frame(long, tmp_path / f"one{suffix}"))
    other = long.dropna().sample(frac=1.0, random_state=9)[["value", "site", "time"]]
    assert np.isnan(panel.values).any()
    assert_same(read_table(write_frame(other, tmp_path / f"two{suffix}")), panel)


@given(
    values=arrays(float, st.tuples(st.integers(2, 6), st.integers(2, 5)), elements=st.floats(allow_infinity=False)),
    names=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1), unique=True),
    suffix=st.sampled_from([".csv", ".csv.gz", ".parquet"]),
    order=st.randoms(use_true_random=False),
)
def test_any_array_reads_back(tmp_path_factory, values, names, suffix, order):
    values[0], values[1] = 0.0, 1.0  # so that no series is constant
    names = [*names, *(f"task {i}" for i in range(5))][: values.shape[1]]
    rows = [(year, name, values[year, i]) for year in range(len(values)) for i, name in enumerate(names)]
    order.shuffle(rows)
    frame = pd.DataFrame(rows, columns=["year", "name", "load"]).astype({"year": int})
    panel = read_table(write_frame(frame, tmp_path_factory.mktemp("any") / f"table{suffix}"))
    assert panel.tasks == tuple(sorted(names))
    assert panel.times.tolist() == list(range(len(values)))
    np.testing.assert_array_equal(panel.values, values[:, [names.index(name) for name in panel.tasks]])


@pytest.mark.parametrize(
    ("file", "shape", "columns"),
    [
        ("irish_wind_12sites_daily", (6574, 12), ("timestamp", "site", "wind_speed")),
        ("la_haute_borne_4turbines_10min", (105_120, 4), ("timestamp", "site", "wind_speed")),
        ("us_state_incomes_annual", (81, 48), ("year", "state", "income")),
        ("wind_toolkit_10sites_hourly", (8752, 10), ("timestamp", "site", "wind_speed")),
    ],
)
def test_the_shared_tables_need_no_options(file, shape, columns):
    path = SHARED / f"{file}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here to read")
    panel = read_table(path)
    time, task, value = columns
    wide = pd.read_csv(path, dtype=str).pivot(index=time, columns=task, values=value)
    assert panel.name == path.name
    assert panel.values.shape == shape
    assert panel.tasks == tuple(wide.columns)
    np.testing.assert_array_equal(panel.values, wide.to_numpy(float))
    if time == "year":
        np.testing.assert_array_equal(panel.times, wide.index.astype(int))
    else:
        np.testing.assert_array_equal(panel.times, pd.to_datetime(wide.index, utc=True).tz_localize(None))


@pytest.mark.parametrize("absent", ["", " ", "NA", "NaN", "nan", "null", "n/a", "None", '""'])
def test_a_value_may_be_missing(tmp_path, absent):
    panel = read_table(write(tmp_path, f"{GOOD}2024-01-03,a,{absent}\n2024-01-03,b, +6e0 \n"))
    np.testing.assert_array_equal(panel.values, [[1, 2], [3, 5], [np.nan, 6]])


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.rstrip("\n"),
        "\n" + GOOD.replace("\n", "\n\n"),
        GOOD.replace(",a,", ',"a",'),
        GOOD.replace(",", " , "),
        GOOD.replace("time,site,value", "Date,STATION,VALUE"),
        GOOD.replace("time,site,value", "time,site,temperature"),
    ],
    ids=["crlf", "byte order mark", "no last line end", "empty lines", "quotes", "spaces", "capitals", "any value"],
)
def test_the_ways_to_write_a_csv(tmp_path, text):
    assert_same(read_table(write(tmp_path, text)), read_table(write(tmp_path, GOOD, "good.csv")))


def test_a_quoted_field_may_hold_commas_quotes_and_line_ends(tmp_path):
    path = write(tmp_path, GOOD.replace(",a,", ',"a ""big"", and\nlong",'))
    assert read_table(path).tasks == ('a "big", and\nlong', "b")
    refused(write(tmp_path, path.read_text() + "2024-01-03,b,x\n"), "value at line 8 of .* is 'x'")


def test_names_of_tasks_stay_text_and_are_sorted_as_such(tmp_path):
    text = "time,site,value\n1,10,1\n1,007,2\n1,NA,3\n2,10,2\n2,007,3\n2,NA,4\n"
    assert read_table(write(tmp_path, text)).tasks == ("007", "10", "NA")
    frame = pd.DataFrame({"time": [1, 1, 2, 2], "site": [2, 10, 2, 10], "value": [1, 2, 3, 4]})
    assert read_table(write_frame(frame, tmp_path / "numbers.parquet")).tasks == ("10", "2")


@pytest.mark.parametrize(
    ("first", "second", "times"),
    [
        ("1929", "1930", np.array([1929, 1930])),
        ("2024-01-01", "2024-01-02", np.array(["2024-01-01", "2024-01-02"], "datetime64[s]")),
        ("2024-01-01T06:30", "2024-01-01 06:31:05", np.array(["2024-01-01T06:30", "2024-01-01T06:31:05"], "M8[s]")),
        ("2024-01-01 00:00:00Z", "2024-01-01 00:00:00-01:00", np.array(["2024-01-01T00", "2024-01-01T01"], "M8[s]")),
        ("2024-01-01 00:30+0100", "2024-01-01 00:00Z", np.array(["2023-12-31T23:30", "2024-01-01T00:00"], "M8[s]")),
        ("2024-01-01 00:00:00.25", "2024-01-02", np.array(["2024-01-01T00:00:00.25", "2024-01-02"], "M8[us]")),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_times(tmp_path, first, second, times, suffix):
    frame = pd.DataFrame({"time": [first, first, second, second], "site": list("abab"), "value": [1, 2, 3, 4]})
    panel = read_table(write_frame(frame, tmp_path / f"table{suffix}"))
    assert panel.times.dtype == times.dtype
    np.testing.assert_array_equal(panel.times, times)


@pytest.mark.parametrize(
    ("column", "times"),
    [
        (pa.array([1, 1, 2, 2, 3, 3], pa.uint8()), np.array([1, 2, 3])),
        (pa.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), np.array([1, 2, 3])),
        (pa.array([0, 0, 1, 1, 2, 2], pa.date32()), np.array([0, 86_400, 172_800], "datetime64[s]")),
        (pa.array([1, 1, 2, 2, 3, 3], pa.timestamp("ms")), np.array([1000, 2000, 3000], "datetime64[us]")),
        (pa.array([1, 1, 2, 2, 3, 3], pa.timestamp("s", "Asia/Tokyo")), np.array([1, 2, 3], "datetime64[s]")),
    ],
    ids=["bytes", "floats", "dates", "milliseconds", "zone"],
)
@pytest.mark.parametrize("kind", ["int64", "float32", "string"])
def test_types_of_parquet(tmp_path, column, times, kind):
    sites = pa.array(list("ababab")).dictionary_encode()
    values = pa.array([2, None, 3, 4, 2**53 + 1, 6]).cast(kind, safe=False)
    parquet.write_table(pa.table({"time": column, "site": sites, "value": values}), tmp_path / "types.parquet")
    panel = read_table(tmp_path / "types.parquet")
    assert panel.times.dtype == times.dtype
    np.testing.assert_array_equal(panel.times, times)
    np.testing.assert_array_equal(panel.values, [[2.0, np.nan], [3.0, 4.0], [2.0**53, 6.0]])


def test_columns_can_be_named_and_others_are_left_alone(tmp_path):
    text = "lat,time,id,site,note,wind,gust\n" + "".join(
        f"{48 + i},{i // 2},{i},{'ab'[i % 2]},fine,{i * i},{i**3}\n" for i in range(6)
    )
    path = write(tmp_path, text)
    assert read_table(path, value="gust").values[2].tolist() == [64.0, 125.0]
    panel = read_table(path, time="lat", task="site", value="wind")
    assert panel.values.shape == (6, 2)
    refused(
        path,
        "may be the value column, 'wind', 'gust': call it value, or give its name .--value.*; or, if each of them is",
    )
    refused(path, "no column 'power'; its columns are 'lat', .*: give another name .--value", value="power")
    only_gust = write(tmp_path, text.replace("wind", "altitude"))
    assert read_table(only_gust).values[2].tolist() == [64.0, 125.0]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("time,where,value", "no stream column; its columns are 'time', 'where', 'value': call it site or .*task="),
        ("time,site,lat", "no value column; its columns are 'time', 'site', 'lat': call it value, or .*value="),
        ("time,Time,site", "2 columns that may be the time column, 'time', 'Time': call it"),
        ("time;site;value,b,c", "no stream column; its columns are 'time;site;value', 'b', 'c'"),
    ],
)
def test_a_column_that_is_not_there(tmp_path, header, message):
    refused(write(tmp_path, GOOD.replace("time,site,value", header)), message)


def test_columns_that_stand_twice(tmp_path):
    rows = "time,site,{}\n1,a,1,1\n1,b,2,2\n2,a,3,3\n2,b,5,5\n"
    refused(write(tmp_path, rows.format("value,value")), "2 columns that may be the value column")
    refused(write(tmp_path, rows.format("wind,wind")), "2 columns that may be the value column")
    refused(write(tmp_path, rows.format("wind,wind")), "2 columns that may be the column 'wind'", value="wind")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2024-01-03,a,calm", "value at line 6 of .* is 'calm': write a number, or NA where it is missing"),
        ("2024-01-03,a,inf", "value at line 6 of .* is 'inf': write a finite number, or NA"),
        ("2024-01-03,a,-1e999", "value at line 6 of .* is '-1e999': write a finite number, or NA"),
        ("03.01.2024,a,1", r"time at line 6 of .* is '03.01.2024': write all as 2024-01-31 18:30:00 \(ISO 8601\)"),
        ("2024-02-30,a,1", "time at line 6 of .* is '2024-02-30': write all as"),
        ("2024-01-03 00:00Z,a,1", "time at line 6 of .* is '2024-01-03 00:00Z': .* or all with a UTC offset"),
        ("2024,a,1", "time at line 6 of .* is '2024': .* or all as integers"),
        (",a,1", "time at line 6 of .* is empty: every row needs one"),
        ('2024-01-03," ",1', "site at line 6 of .* is empty: every row needs one"),
        ("2024-01-01,b,1", "time 2024-01-01T00:00:00 of site 'b' appears twice, at lines 3 and 6 of .*: keep one"),
        ("2024-01-03,a,1,5", "line 6 of .* has 4 fields, the header 3: quote a field that holds a comma"),
        ("2024-01-03", "line 6 of .* has 1 field, the header 3"),
        ('2024-01-03,"a,1', "line 6 of .* has 2 fields, the header 3: .* close every quote"),
        ("2024-01-03,c,1", "site 'c' of .* is constant, 1.0: there is nothing to learn; leave its rows out"),
        ("2024-01-03,c,NA", "site 'c' of .* has no value at all: there is nothing to learn; leave its rows out"),
    ],
)
def test_a_fault_in_a_row_is_named_with_its_line(tmp_path, row, message):
    refused(write(tmp_path, f"{GOOD}{row}\n2024-01-04,a,1\n2024-01-04,b,1\n"), message)
    moved = re.sub(r"lines? \d( and \d)?", lambda found: re.sub(r"\d", lambda d: str(int(d[0]) + 1), found[0]), message)
    refused(write(tmp_path, f"\r\n{GOOD}{row}\n".replace("\n", "\r\n").replace("\r\r", "\r")), moved)


@pytest.mark.parametrize("first", ["soon", "2024-01-01 00:00+01:00"])
def test_the_first_time_sets_the_kind(tmp_path, first):
    text = GOOD.replace("2024-01-01,a", f"{first},a")
    line = 2 if first == "soon" else 3
    refused(write(tmp_path, text), f"time at line {line} of .* is '{'soon' if line == 2 else '2024-01-01'}'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": pa.array([1.0, 2.0, np.inf, 4.0])}, "value at row 3 of .* is inf"),
        ({"value": pa.array(["1", "2", "3", "four"])}, "value at row 4 of .* is 'four'"),
        ({"value": pa.array([[1], [2], [3], [4]])}, r"value at row 1 of .* is \[1\]: write a number"),
        ({"time": pa.array([1.0, 1.0, 2.5, 2.5])}, "time at row 3 of .* is 2.5"),
        ({"time": pa.array([1, 1, None, 2])}, "time at row 3 of .* is empty"),
        ({"site": pa.array(["a", None, "a", "b"])}, "site at row 2 of .* is empty"),
        ({"site": pa.array(["a", "b", "a", "a"])}, "time 2 of site 'a' appears twice, at rows 3 and 4 of"),
        ({"site": pa.array(["a", "a", "a", "a"])}, "only one stream"),
    ],
)
def test_a_fault_in_parquet_is_named_with_its_row(tmp_path, change, message):
    columns = {"time": pa.array([1, 1, 2, 2]), "site": pa.array(list("abab")), "value": pa.array([1, 2, 3, 4])}
    parquet.write_table(pa.table(columns | change), tmp_path / "table.parquet")
    refused(tmp_path / "table.parquet", message)


def test_the_first_fault_is_found_in_a_long_table(tmp_path):
    lines = [f"{i // 3},{'abc'[i % 3]},{i % 7}" for i in range(6000)]
    for row in (5432, 5700):
        lines[row] = lines[row][:-1] + "?"
    refused(write(tmp_path, "\n".join(["time,site,value", *lines])), "value at line 5434 of .* is '?")


def test_one_task_is_not_enough(tmp_path):
    refused(
        write(tmp_path, GOOD.replace(",b,", ",a,")),
        "only one stream: column 'site' of .* says 'a' in every row; sharing needs at least two; add the rows",
    )
    refused(
        write(tmp_path, "year,site,value\n1,a,1\n2,a,2\n"),
        "^only one stream: column 'site' of .* says 'a' in every",
    )
    refused(write(tmp_path, "year,a\n1,1\n2,2\n"), "only one stream: 'a' is the only column of .*; .* another")


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.parquet"])
def test_a_file_without_content(tmp_path, name):
    path = write(tmp_path, b"", name)
    refused(path, "is empty: write a header and one row per sample")
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(b"\n \n"))
        refused(path, "is empty: write a header and one row per sample")
    write_frame(long_table()[:0], path)
    refused(path, "has a header and no rows: give one row per sample")


def test_a_header_without_a_line_end(tmp_path):
    refused(write(tmp_path, "time,site,value"), "has a header and no rows")
    refused(write(tmp_path, b"\xef\xbb\xbf"), "is empty: write a header and one row per sample")


def test_text_that_is_not_utf8(tmp_path):
    refused(
        write(tmp_path, GOOD.replace(",b,5", ",é,5").encode("latin-1")), "line 5 of .* is not UTF-8 text .*: save it"
    )
    refused(write(tmp_path, GOOD.encode("utf-16")), "line 1 of .* is not UTF-8 text")


def test_a_quote_that_never_ends(tmp_path):
    path = write(tmp_path, GOOD + '2024-01-03,a,"1\n' + "2024-01-03,b,1\n" * 100)
    refused(path, r"value at line 6 of .* is '1\\n2024-01-03,b,1.{0,70}: write a number")
    text = GOOD + '2024-01-03,"a,1\n' + "2024-01-03,b,1\n" * 200_000
    refused(write(tmp_path, text), "line 6 of .* has 2 fields, the header 3: .* close every quote")


def test_a_file_that_can_not_be_read(tmp_path):
    refused(tmp_path / "none.csv", "does not exist: check the path", bd.FileError)
    refused(tmp_path, "is a folder: give the path of one file", bd.FileError)
    refused(write(tmp_path, GOOD, "table.xlsx"), "its name must end in .csv, .csv.gz, .parquet, .pq", bd.FileError)
    refused(write(tmp_path, GOOD, "table.csv.gz"), "can't be read .*: it may be cut short or damaged", bd.FileError)


@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet"])
@pytest.mark.parametrize("kept", [0.01, 0.5, 0.99])
def test_a_file_cut_short(tmp_path, name, kept):
    path = write_frame(long_table(), tmp_path / name)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    refused(path, "can't be read .*: it may be cut short or damaged; copy or download it again", bd.FileError)


def test_a_wide_table_is_the_same_panel(tmp_path):
    long = long_table(2)
    panel = read_table(write_frame(long, tmp_path / "long.csv"))
    wide = long.pivot(index="time", columns="site", values="value").rename_axis(columns=None)
    shuffled = wide.reset_index().sample(frac=1.0, random_state=1)[["site 2", "time", "site 0", "site 3", "site 1"]]
    for name in ("wide.csv", "wide.parquet", "wide.csv.gz"):
        assert_same(read_table(write_frame(shuffled, tmp_path / name)), panel)
    unnamed = tmp_path / "unnamed.csv"
    wide.rename_axis(None).to_csv(unnamed)
    assert_same(read_table(unnamed), panel)
    source = "file unnamed.csv, a column per stream and ''"
    assert read_table(unnamed).source == source
    for frame in (
        wide,
        wide.rename_axis(None),
        shuffled,
        pl.from_pandas(shuffled),
        pa.Table.from_pandas(shuffled),
        long,
    ):
        assert_same(read_table(frame), panel)
    assert (read_table(long).name, read_table(long).source) == (
        "data frame",
        "data frame, 'value' by 'site' and 'time'",
    )


def test_a_wide_table_has_nothing_to_learn_in_a_column(tmp_path):
    refused(
        write(tmp_path, "time,a,b\n1,2,3\n2,2,4\n"),
        "column 'a' of .* is constant, 2.0: there is nothing to learn; leave it out",
    )
    refused(write(tmp_path, "time,a,b\n1,,3\n2,,4\n"), "column 'a' of .* has no value at all: .* leave it out")


@pytest.mark.parametrize(
    ("mark", "name"), [(";", "table.csv"), ("\t", "table.tsv"), ("\t", "table.csv"), (",", "a.tsv")]
)
def test_other_marks_between_columns(tmp_path, mark, name):
    text = GOOD.replace(",", mark)
    assert_same(read_table(write(tmp_path, text, name)), read_table(write(tmp_path, GOOD, "good.csv")))
    assert_same(
        read_table(write(tmp_path, gzip.compress(text.encode()), f"{name}.gz")),
        read_table(write(tmp_path, GOOD, "good.csv")),
    )
    refused(
        write(tmp_path, f'{text}2024-01-03{mark}a{mark}"5,5"\n', name),
        "value at line 6 of .* is '5,5': this has a decimal comma; write a point, 5.5",
    )


def test_tables_of_many_files_and_of_late_tasks(tmp_path, monkeypatch):
    whole = long_table(3).sort_values("time")
    paths = [write_frame(part, tmp_path / f"{i}.csv") for i, part in enumerate((whole[:70], whole[70:]))]
    panel = read_table(write_frame(whole, tmp_path / "whole.csv"))
    assert_same(read_table(paths), panel)
    assert read_table(paths).name == "0.csv and 1 more"
    late = pd.DataFrame({"time": [1, 1, 2, 2, 2], "site": list("bcbca"), "value": [1, 2, 3, 4, 5]})
    late = pd.concat([late, late.assign(time=late["time"] + 2, value=late["value"] + 1)])
    monkeypatch.setattr(
        "braided.tables.panel_io.open_rounds", lambda *given, **named: open_rounds(*given, **named, batch_rows=2)
    )
    panel = read_table(late)
    assert panel.tasks == ("a", "b", "c")
    np.testing.assert_array_equal(panel.values, [[np.nan, 1, 2], [5, 3, 4], [np.nan, 2, 3], [6, 4, 5]])


# Panels, and panels as files


@pytest.mark.parametrize("name", ["wind.csv", "wind.csv.gz", "wind.parquet", "wind.PQ"])
@pytest.mark.parametrize("times", ["seconds", "nanoseconds", "months", "years"])
def test_a_panel_written_as_a_table_reads_back_the_same(tmp_path, name, times):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-9, 9, (50, 3))
    values[rng.random((50, 3)) < 0.2] = np.nan
    values[:, 1] = rng.normal(size=50)  # a time at which all are missing would be left out
    stamps = {
        "seconds": np.datetime64("2012-01-01T00:00:00") + np.arange(50) * np.timedelta64(300, "s"),
        "nanoseconds": np.datetime64("2012-01-01T00:00:00.25", "ns") + np.arange(50) * np.timedelta64(5, "m"),
        "months": np.arange(50).astype("datetime64[M]"),
        "years": np.arange(1950, 2000),
    }[times]
    panel = Panel("wind", ("a,1", 'b"', "ü"), stamps, values, "made up")
    write_table(panel, tmp_path / name)
    back = read_table(tmp_path / name)
    assert back.tasks == panel.tasks
    np.testing.assert_array_equal(back.times, panel.times)
    np.testing.assert_array_equal(back.values, panel.values)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_is_no_table_is_not_written(tmp_path):
    panel = Panel("x", ("a", "b"), np.arange(3), np.arange(6.0).reshape(3, 2), "made up")
    path = tmp_path / "x.csv"
    with pytest.raises(
        bd.FileError, match=r"x.xlsx is not the name of a table: it must end in .csv, .csv.gz, .parquet, .pq"
    ):
        write_table(panel, tmp_path / "x.xlsx")
    with pytest.raises(bd.InputError, match="has no value at all: there is nothing to write"):
        write_table(Panel("x", ("a",), np.arange(3), np.full((3, 1), np.nan), "made up"), path)


def test_microseconds_are_written(tmp_path):
    times = np.array(["2024-01-01T00:00:00.25", "2024-01-01T00:00:00.75", "2024-01-01T00:00:01"], "datetime64[us]")
    panel = Panel("x", ("a", "b"), times, np.array([[1.0, 2], [3, 4], [5, 7]]), "made up")
    write_table(panel, tmp_path / "x.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv").times, times)


def test_complete_runs_end_at_gaps_and_missing_values():
    values = np.ones((12, 2))
    values[3, 1] = np.nan
    times = np.array([0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13])
    panel = Panel("holes", ("a", "b"), times, values, "made up")
    assert panel.complete_runs(1) == [(0, 3), (4, 7), (7, 12)]
    assert panel.complete_runs(4) == [(7, 12)]
    assert Panel("one", ("a",), np.arange(1), np.ones((1, 1)), "made up").complete_runs(1) == [(0, 1)]
    values[:] = 7.0
    assert panel.values[0, 0] == 1.0


def test_a_panel_whose_parts_do_not_fit_is_refused():
    with pytest.raises(bd.InputError, match=r"values has shape \(2, 1\): times and tasks say \(3, 1\)"):
        Panel("x", ("a",), np.arange(3), np.ones((2, 1)), "made up")
    with pytest.raises(bd.InputError, match=r"times\[2\] is 1, not after the one before"):
        Panel("x", ("a",), np.array([0, 1, 1]), np.ones((3, 1)), "made up")
