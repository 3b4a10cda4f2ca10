"""Files of the WIND Toolkit: every form reads exactly, sites and dates are those asked for, every fault is named."""

import gzip
import math
import sys

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import braided as bd
from braided.datasets.wind_toolkit import read_wind_toolkit, wind_toolkit_sites
from braided.datasets.wind_toolkit_files import HDF5File

MIAMI = (25.76, -80.19)
HEADER = "Year,Month,Day,Hour,Minute,wind speed at 80m (m/s),wind direction at 100m (deg),wind speed at 100m (m/s)"


def clock(start, rows, minutes=5):
    return np.datetime64(start, "s") + np.arange(rows) * np.timedelta64(minutes, "m")


def csv_lines(times, values, header=HEADER):
    stamps = [str(time).replace("T", "-").replace(":", "-").split("-")[:5] for time in times]
    middle = ",1.5,200," if header == HEADER else ","
    return [header, *(",".join(stamp) + f"{middle}{value}" for stamp, value in zip(stamps, values, strict=True))]


def head(site, zone=0, position=MIAMI):
    return f"SiteID,{site},Site Timezone,-5,Data Timezone,{zone},Longitude,{position[1]},Latitude,{position[0]}"


def write_csv(path, site, times, values, zone=0, position=MIAMI, lines=None):
    text = "\n".join([*([head(site, zone, position)] if lines is None else lines), *csv_lines(times, values)])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_srw(path, site, year, values, position=MIAMI):
    lines = [
        f"{site},city??,state??,USA,{year},{position[0]},{position[1]},elevation??,1,{len(values)}",
        'WIND Toolkit, "as downloaded',
        "Temperature,Pressure,Direction,Speed,Speed",
        "C,atm,degrees,m/s,m/s",
        "100,100,100,80,100",
        *(f"20,1,180,1.5,{value}" for value in values),
    ]
    path.write_text("\n".join(lines))
    return path


def write_hdf5(path, times, values, positions, scale=100, gids=None, name="windspeed_100m", marks="+00:00", **about):
    names = ["latitude", "longitude"] + ["gid"] * (gids is not None)
    meta = np.zeros(len(positions), [(name, np.int32 if name == "gid" else np.float32) for name in names])
    meta["latitude"], meta["longitude"] = np.transpose(positions)
    if gids is not None:
        meta["gid"] = gids
    with h5py.File(path, "w") as file:
        file["meta"] = meta
        file["time_index"] = np.array([str(time).replace("T", " ") + marks for time in times], "S")
        chunks = (min(7, len(times)), min(2, len(positions)))
        stored = file.create_dataset(name, data=np.asarray(values), chunks=chunks, compression="gzip")
        stored.attrs["scale_factor"] = scale
        stored.attrs.update(about)
    return path


def assert_panel(panel, tasks, times, values):
    assert panel.tasks == tuple(tasks)
    assert panel.times.dtype == np.dtype("datetime64[s]")
    np.testing.assert_array_equal(panel.times, times)
    np.testing.assert_array_equal(panel.values, values)


def refused(message, *arguments, error=bd.InputError, **options):
    with pytest.raises(error, match=message):
        read_wind_toolkit(*arguments, **options)


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.csv.gz"])
@pytest.mark.parametrize(
    "lines",
    [
        [head("0117")],
        ["SiteID,0117", "Longitude,-80.19", "Latitude,25.76", "Data Timezone,0"],
        ["Source,Location ID,Latitude,Longitude,Time Zone,Local Time Zone", "NREL,0117,25.76,-80.19,0,-5"],
    ],
    ids=["one line", "a line each", "names and values"],
)
def test_a_csv_reads_exactly(tmp_path, name, lines):
    times, values = clock("2012-02-28T23:00", 24), np.round(np.random.default_rng(0).weibull(2, 24) * 8, 3)
    path = write_csv(tmp_path / name, "", times, values, lines=lines)
    panel = read_wind_toolkit(str(path))
    assert_panel(panel, ["0117"], times, values[:, None])
    assert panel.name == "wind-toolkit"
    assert panel.source.startswith("NREL WIND Toolkit: wind speed (m/s) at 100 m, UTC, 1 sites; cite Draxl")
    assert wind_toolkit_sites(path) == {"0117": MIAMI}
    assert (read_wind_toolkit(path, height=80).values == 1.5).all()
    other = read_wind_toolkit(path, variable="wind direction")
    assert (other.values == 200).all()
    assert "wind direction (degrees)" in other.source


def test_times_become_utc_where_the_file_tells_the_time_zone(tmp_path):
    times, values = clock("2012-01-01", 3, 60), [1.0, 2.0, 3.0]
    for zone, hours in (("-5", 5), ("5.5", -5.5), ("UTC", 0)):
        path = write_csv(tmp_path / "a.csv", 1, times, values, zone=zone)
        shifted = times + np.timedelta64(round(60 * hours), "m")
        assert_panel(read_wind_toolkit(path), ["1"], shifted, np.transpose([values]))
    old = write_csv(tmp_path / "b.csv", "", times, values, lines=["SiteID,2", "Longitude,-80", "Latitude,25"])
    panel = read_wind_toolkit(old)
    assert_panel(panel, ["2"], times, np.transpose([values]))
    assert "time zone unknown" in panel.source
    refused(r"a.csv names its data's time zone, .*b.csv doesn't: add the line Data Timezone,0", [old, path])
    refused("gives the time zone 'EST': write hours", write_csv(tmp_path / "c.csv", 1, times, values, zone="EST"))


def test_missing_rows_and_values_become_nan_and_years_follow_each_other(tmp_path):
    write_csv(tmp_path / "b.csv", 7, clock("2012-01-01T00:10", 3), [5.0, "", 7.0])
    write_csv(tmp_path / "a.csv", 7, clock("2011-12-31T23:50", 2), [1.0, 2.0])
    write_csv(tmp_path / "c.csv", 8, clock("2012-01-01", 2), [3.0, "NaN"])
    (tmp_path / "readme.txt").write_text("not data")
    nan = np.nan
    expected = [[1, nan], [2, nan], [nan, 3], [nan, nan], [5, nan], [nan, nan], [7, nan]]
    assert_panel(read_wind_toolkit(tmp_path), ["7", "8"], clock("2011-12-31T23:50", 7), expected)


@pytest.mark.parametrize(("year", "days"), [(2012, 366), (2012, 365), (2011, 365)])
@pytest.mark.parametrize("minutes", [60, 5])
def test_rows_of_an_srw_file_have_the_right_times_with_and_without_29_february(tmp_path, year, days, minutes):
    whole = clock(f"{year}-01-01", (366 if year == 2012 else 365) * 1440 // minutes, minutes)
    leap = whole.astype("datetime64[D]") == np.datetime64("2012-02-29")
    rows = whole[~leap] if days == 365 else whole
    speeds = {time: round(place % 997 / 100, 2) for place, time in enumerate(rows)}
    path = write_srw(tmp_path / "a.srw", 875, year, speeds.values())
    expected = [speeds.get(time, np.nan) for time in whole]
    panel = read_wind_toolkit(path)
    assert_panel(panel, ["875"], whole, np.transpose([expected]))
    assert np.isnan(panel.values).sum() == (leap.sum() if days == 365 else 0)


def test_an_srw_file_without_an_id_is_called_by_its_name(tmp_path):
    path = write_srw(tmp_path / "lake.west.srw", "loc_id", 2012, range(8760), position=("lat??", "lon??"))
    assert read_wind_toolkit(path).tasks == ("lake",)
    refused("lake.west.srw doesn't say where its site is", path, near=MIAMI)


def test_hdf5_is_scaled_as_rex_does_it(tmp_path):
    rng = np.random.default_rng(1)
    times, positions = clock("2012-01-01", 20), [(25.5, -80.5), (26.0, -80.0), (26.5, -80.25)]
    stored = rng.integers(0, 2500, (20, 3), dtype=np.uint16)
    path = write_hdf5(tmp_path / "a.h5", times, stored, positions)
    assert_panel(read_wind_toolkit(path), "012", times, stored / 100)
    assert read_wind_toolkit(path).values[0, 0] == float(f"{stored[0, 0] / 100:.2f}")
    assert wind_toolkit_sites(path) == dict(zip("012", positions, strict=True))
    write_hdf5(path, times, stored, positions, scale=np.array([0.5]), add_offset=3.0, gids=[7, 5, 6], marks="")
    assert_panel(read_wind_toolkit(path), "756", times, stored * 0.5 + 3.0)
    stored[3, 1] = 65535
    write_hdf5(path, times, stored, positions, fill_value=np.uint16(65535), marks="-05:00")
    expected = np.where(stored == 65535, np.nan, stored / 100)
    assert_panel(read_wind_toolkit(path), "012", times + np.timedelta64(5, "h"), expected)


def test_of_hdf5_only_what_is_wanted_is_read(tmp_path):
    """A file that claims to hold 200,000 sites × a year of 5 minutes: 42 GB as it is stored."""
    sites, times, wanted = 200_000, clock("2012-01-01", 105_120), [100_000, 150_001, 199_999]
    meta = np.zeros(sites, [("latitude", "f4"), ("longitude", "f4")])
    meta["latitude"][wanted], meta["longitude"][wanted] = [25.5, 25.75, 26.25], -80.0
    path = tmp_path / "huge.hdf5"
    with h5py.File(path, "w") as file:
        file["meta"] = meta
        file["time_index"] = np.array([str(time).replace("T", " ") + "+00:00" for time in times], "S")
        data = file.create_dataset(
            "windspeed_100m", (len(times), sites), np.uint16, chunks=(2016, 100), fillvalue=65535
        )
        data.attrs["scale_factor"] = 100
        data[8928 : 8928 + 3, wanted] = np.arange(9).reshape(3, 3)
    options = {"near": MIAMI, "start": "2012-02-01", "end": "2012-02-01"}
    panel = read_wind_toolkit(path, sites=3, **options)
    assert panel.tasks == ("150001", "100000", "199999")
    assert panel.values.shape == (288, 3)
    np.testing.assert_array_equal(panel.values[:3], np.array([[1, 0, 2], [4, 3, 5], [7, 6, 8]]) / 100)
    assert np.isnan(panel.values[3:]).all()
    refused("there are 200000 sites: choose the nearest with near= and sites=", path)
    refused("20000 sites × 105120 steps take 17 GB of memory: choose fewer with", path, near=MIAMI, sites=20_000)


def test_all_forms_together(tmp_path):
    hours = clock("2012-01-01", 8784, 60)
    write_srw(tmp_path / "a.srw", 3, 2012, np.arange(8784) / 100, position=(26, -80))
    write_csv(tmp_path / "b.csv", 1, hours[:48] - np.timedelta64(5, "h"), np.arange(48), zone=-5, position=(27, -80))
    stored = np.arange(96).reshape(48, 2)
    write_hdf5(tmp_path / "c.h5", hours[:48], stored, [(25, -80), (26, -80)], gids=[2, 3])
    refused(r"site 3 has 0.01 at 2012-01-01T00:00:00 in .*c.h5, and 0 in a file before it", tmp_path)
    stored[:, 1] = np.arange(48)
    write_hdf5(tmp_path / "c.h5", hours[:48], stored, [(25, -80), (26, -80)], gids=[2, 3])
    panel = read_wind_toolkit(tmp_path, near=(24, -80), end="2012-01-02")
    expected = np.stack([stored[:, 0] / 100, np.arange(48) / 100, np.arange(48)], axis=1)
    assert_panel(panel, "231", hours[:48], expected)


def far(a, b):
    """Kilometres by the law of cosines, one pair at a time."""
    (p, q), (r, s) = (tuple(map(math.radians, place)) for place in (a, b))
    cosine = math.sin(p) * math.sin(r) + math.cos(p) * math.cos(r) * math.cos(q - s)
    return 6371.0088 * math.acos(max(-1.0, min(1.0, cosine)))


@given(seed=st.integers(0, 2**32), sites=st.none() | st.integers(1, 30), within=st.none() | st.floats(5, 20_000))
def test_sites_are_those_that_a_slow_search_finds(tmp_path_factory, seed, sites, within):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("sites")
    places = np.stack([rng.uniform(-80, 80, 30), rng.uniform(-180, 180, 30)], axis=1).astype(np.float32).astype(float)
    here = (float(rng.uniform(-80, 80)), float(rng.uniform(-180, 180)))
    for part, gids in enumerate(np.split(rng.permutation(30), [10])):
        stored = np.tile(gids, (2, 1))
        write_hdf5(folder / f"{part}.h5", clock("2012-01-01", 2), stored, places[gids], 1, gids)
    ranked = sorted(range(30), key=lambda site: far(here, places[site]))
    expected = [site for site in ranked if within is None or far(here, places[site]) <= within][:sites]
    if not expected:
        nearest = f"{far(here, places[ranked[0]]):.1f}"
        refused(
            f"no site lies within .* km of .*: the nearest, {ranked[0]}, is {nearest} km away",
            folder,
            near=here,
            within_km=within,
            sites=sites,
        )
        return
    panel = read_wind_toolkit(folder, near=here, sites=sites, within_km=within)
    assert panel.tasks == tuple(map(str, expected))
    assert (panel.values == expected).all()
    assert f"nearest to {here[0]:g}, {here[1]:g}" in panel.source


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        (None, None, 0, 287),
        ("2012-01-02", None, 144, 287),
        (None, "2012-01-01", 0, 143),
        ("2012-01-01", "2012-01-02", 0, 287),
        ("2012-01-01T23:50", "2012-01-02 00:10", 143, 145),
        ("2012-01-01T18:50-05:00", "2012-01-02 00:10:00+00:00", 143, 145),
        ("2012-01-01 00:01", "2012-01-01 00:29:59", 1, 2),
        ("1999-01-01", "9999-12-31", 0, 287),
    ],
)
@pytest.mark.parametrize("form", ["csv", "h5"])
def test_dates_are_included_whole(tmp_path, start, end, first, last, form):
    times, values = clock("2012-01-01", 288, 10), np.arange(288)
    if form == "csv":
        path = write_csv(tmp_path / "a.csv", 1, times, values)
    else:
        path = write_hdf5(tmp_path / "a.h5", times, values[:, None], [MIAMI], scale=1)
    panel = read_wind_toolkit(path, start=start, end=end)
    np.testing.assert_array_equal(panel.times, times[first : last + 1])
    np.testing.assert_array_equal(panel.values[:, 0], values[first : last + 1])


def test_wrong_choices_are_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", 1, clock("2012-01-01", 3), [1, 2, 3])
    refused("start is '2012-13-01': write a date such as 2012-01-31", path, start="2012-13-01")
    refused("end is 2012: write a date", path, end=2012)
    refused("start is '2012-02-01', end is '2012-01-01': the end must not", path, start="2012-02-01", end="2012-01-01")
    refused("the files hold 2012-01-01T00:00:00 to 2012-01-01T00:10:00: choose dates", path, start="2013-01-01")
    refused(r"a.csv has no wind speed at 120 m: there is 80, 100 m; give one of them", path, height=120)
    refused("a.csv has no wind direction at 80 m: there is 100 m", path, height=80, variable="wind direction")
    refused("height is 0: it must be above 0", path, height=0)
    refused("variable is 'power': choose one of 'wind speed', 'wind direction'", path, variable="power")
    refused(r"near is not given: sites and within_km need a place", path, sites=3)
    refused(r"near is not given: sites and within_km need a place", path, within_km=3)
    refused(r"near is \(95, 0\): give \(latitude, longitude\)", path, near=(95, 0))
    refused(r"near is \(25,\): give \(latitude, longitude\)", path, near=(25,))
    refused(r"near is 25: give \(latitude, longitude\)", path, near=25)
    refused(r"near is '25': it must be a number", path, near=("25", 3))
    refused("sites is 2: the files have 1; ask for at most that", path, near=MIAMI, sites=2)
    refused("within_km is -1: it must be 0 or more", path, near=MIAMI, within_km=-1)
    assert read_wind_toolkit([path, path], near=MIAMI, sites=2, within_km=0).tasks == ("1",)


def test_files_that_do_not_go_together_are_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", 1, clock("2012-01-01", 3), [1, 2, 3])
    hourly = write_csv(tmp_path / "b.csv", 2, clock("2012-01-01", 3, 60), [1, 2, 3])
    refused("a.csv has a row every 300 seconds, .*b.csv every 3600 seconds: give files of one step", [path, hourly])
    late = write_csv(tmp_path / "c.csv", 2, clock("2013-01-01T00:30", 3, 60), [1, 2, 3])
    message = "b.csv has a row at 2012-01-01T00:00:00, .*c.csv at 2013-01-01T00:30:00, and both one every 3600 seconds"
    refused(message, [hourly, late], end="2012-12-31")
    again = write_csv(tmp_path / "d.csv", 1, clock("2012-01-01T00:05", 2), [2, 4])
    refused("site 1 has 4 at 2012-01-01T00:10:00 in .*d.csv, and 3 in a file before it: give one", [path, again])
    assert read_wind_toolkit([path, again], end="2012-01-01T00:05").values[:, 0].tolist() == [1, 2]
    moved = write_csv(tmp_path / "e.csv", 1, clock("2012-01-02", 2), [2, 4], position=(30, -80))
    refused(
        r"site 1 is at \(25.76, -80.19\) in one file, at \(30.0, -80.0\) in .*e.csv: read the files separately",
        [path, moved],
    )
    with pytest.raises(bd.InputError, match="read the files separately"):
        wind_toolkit_sites([path, moved])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["time,site,value", "2012-01-01,a,1"],
            "is not a file of the WIND Toolkit: none of its first lines starts with Year",
        ),
        ([head(1), HEADER], "has a head and no rows: it may be cut short"),
        ([head(1), HEADER, "2012,1,1,0,0,1,2,3"], "has 1 rows: a series needs at least two"),
        ([head(1), HEADER, "2012,1,1,0,0,1,2,3", "2012,1,1,0"], "line 4: Expected 8 columns, got 4.*cut short"),
        ([head(1), HEADER, "2012,1,1,0,0,1,2,3", "2012,1,1,0,5,1,2,three"], "line 4: .*invalid value 'three'"),
        ([head(1), HEADER, "2012,1,1,0,0,1,2", "2012,1,1,0,5,1,2"], "has 7 fields in its first row, 8 columns"),
        (
            [head(1), HEADER, "2012,1,1,0,0,1,2,3", "2012,2,30,0,0,1,2,3"],
            "line 4 of .* has no time: .* 2012, 2, 30, 0, 0",
        ),
        ([head(1), HEADER, "2012,1,1,0,0,1,2,3", "2012,13,1,0,0,1,2,3"], "line 4 of .* has no time"),
        ([head(1), HEADER, "2012,1,1,24,0,1,2,3", "2012,1,2,0,0,1,2,3"], "line 3 of .* has no time"),
        ([head(1), HEADER, "2012,1,1,0,0,1,2,3", "2012,1,,0,0,1,2,3"], "line 4 of .* are 2012, 1, nan, 0, 0; download"),
        ([head(1), HEADER, *["2012,1,1,0,0,1,2,3"] * 2], "2012-01-01T00:00:00 appears twice in"),
        (
            [head(1), HEADER, *(f"2012,1,1,0,{i},1,2,3" for i in (0, 2, 5))],
            "a gap of 3 seconds|a gap of 180 seconds after",
        ),
        (
            [head(1), HEADER, *(f"2012,1,1,0,{i},1,2,-99" for i in (0, 5))],
            "wind speed -99 at .*: if that means .* missing",
        ),
        ([head(1), HEADER, *(f"2012,1,1,0,{i},1,2,inf" for i in (0, 5))], "the wind speed inf at 2012-01-01T00:00:00"),
        ([head(1), "Year,Month,Day,Hour,Minute,power (MW)", "2012,1,1,0,0,1"], "has no wind speed at 100 m: it has no"),
    ],
)
def test_a_faulty_csv_is_refused_with_the_place(tmp_path, lines, message):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    refused(message, path)


def test_hourly_files_need_no_minutes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "\ufeff" + "\r\n".join([head(1), "Year,Month,Day,Hour,windspeed_100m", "2012,1,1,0,3", "2012,1,1,1,4", ""])
    )
    assert_panel(read_wind_toolkit(path), "1", clock("2012-01-01", 2, 60), [[3], [4]])


def test_faulty_srw_files_are_refused(tmp_path):
    refused("has 8000 rows, and its year is 2012: every hour", write_srw(tmp_path / "a.srw", 1, 2012, range(8000)))
    refused("has 8784 rows, and its year is 2011: every hour", write_srw(tmp_path / "a.srw", 1, 2011, range(8784)))
    refused(r"has the year 'year\?\?' in line 1", write_srw(tmp_path / "a.srw", 1, "year??", range(8760)))
    (tmp_path / "a.srw").write_text("nothing\n" * 9)
    refused("a.srw is not a SAM wind file", tmp_path / "a.srw")


def test_faulty_hdf5_files_are_refused(tmp_path, monkeypatch):
    times, values = clock("2012-01-01", 3), np.ones((3, 2), int)
    path = tmp_path / "a.h5"
    refused("has shape \\(3, 2\\): time_index and meta say \\(3, 1\\)", write_hdf5(path, times, values, [MIAMI]))
    refused("time_index of .* does not hold times", write_hdf5(path, ["a", "b", "c"], values, [MIAMI] * 2))
    refused("00:05:00 comes after a later one", write_hdf5(path, times[::-1], values, [MIAMI] * 2))
    refused("no wind speed at 90 m: there is 100 m", write_hdf5(path, times, values, [MIAMI] * 2), height=90)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused("a.h5 can't be read .*: it may be cut short", path, error=bd.FileError)
    with h5py.File(path, "w") as file:
        file["other"] = values
    refused("has no meta and no time_index: it is not a file of the WIND Toolkit as NREL's rex", path)
    with h5py.File(path, "w") as file:
        file["meta"], file["time_index"] = np.zeros(2, [("latitude", float)]), np.zeros(3)
    refused("has no meta/longitude", path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused(r"a.h5 needs h5py to be read: pip install 'braided\[hdf5\]'", path)


def test_paths_that_are_none_are_refused(tmp_path):
    refused("paths is empty", [])
    refused("nowhere does not exist: check the path", tmp_path / "nowhere", error=bd.FileError)
    refused("has no file of the WIND Toolkit: their names end in .csv", tmp_path, error=bd.FileError)
    (tmp_path / "a.txt").write_text("x")
    refused("a.txt is not a file of the WIND Toolkit", tmp_path / "a.txt", error=bd.FileError)
    path = write_csv(tmp_path / "a.csv.gz", 1, clock("2012-01-01", 999), range(999))
    path.write_bytes(path.read_bytes()[:-9])
    refused("a.csv.gz can't be read .*: it may be cut short or damaged; copy or download", path, error=bd.FileError)


def test_a_graph_of_the_nearest_comes_from_the_positions(tmp_path):
    path = write_hdf5(tmp_path / "a.h5", clock("2012-01-01", 2), np.ones((2, 3)), [(25, -80), (25.1, -80), (27, -80)])
    assert list(bd.TaskGraph.nearest(wind_toolkit_sites(path), k=1).neighbours("0")) == ["1"]


def test_only_heads_are_read_of_sites_that_are_not_wanted(tmp_path, monkeypatch):
    write_csv(tmp_path / "a.csv", 1, clock("2012-01-01", 2), [1, 2])
    write_hdf5(tmp_path / "b.h5", clock("2012-01-01", 2), np.ones((2, 1)), [(40, -80)], gids=[2])
    monkeypatch.setattr(HDF5File, "read", None)
    assert read_wind_toolkit(tmp_path, near=MIAMI, sites=1).tasks == ("1",)


def test_a_hole_in_a_second_file_does_not_erase_the_first(tmp_path):
    def write(name, speeds):
        head = "SiteID,1,Site Timezone,-5,Data Timezone,0,Longitude,-80.2,Latitude,26"
        rows = [f"2012,1,1,0,{5 * step},{speed}" for step, speed in enumerate(speeds)]
        text = [head, "Year,Month,Day,Hour,Minute,wind speed at 100m (m/s)", *rows]
        (tmp_path / name).write_text("\n".join(text))

    write("a.csv", [7.1, 7.2, 7.3])
    write("b.csv", [7.1, "", 7.3])
    assert read_wind_toolkit(tmp_path).values.ravel().tolist() == [7.1, 7.2, 7.3]
