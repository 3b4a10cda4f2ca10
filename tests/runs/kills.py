"""Runs that are killed after each of their saves, and what must come of them."""

import contextlib

import braided as bd


class Killed(BaseException):
    """Nothing handles it, as a kill."""


def insist_same_bytes_after_kills(run, folder, monkeypatch):
    """Kill a run after each of its saves, the very last included, and insist that it ends with the same bytes.

    `run` takes the folder of its files, among them the file `model`, and returns what `braided.runs.run` does.
    """
    whole = run(folder / "whole")
    survived = 0
    while True:
        here, saves = folder / f"{survived}", []

        def save(model, path, saves=saves, survived=survived):
            bd.save(model, path)
            saves.append(path)
            if len(saves) > survived:
                raise Killed

        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr("braided.runs.table.save", save)
            run(here)
            break
        again = run(here)
        assert again.how in ("continued", "finished")  # the last save is that of a run that is finished
        assert again.forecasts.read_bytes() == whole.forecasts.read_bytes()
        assert (here / "model").read_bytes() == (folder / "whole" / "model").read_bytes()
        survived += 1
    assert survived >= 3
