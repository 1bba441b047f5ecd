"""load_nvprof: small files of nvprof and of Nsight Systems, and files that are neither."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from multigrad.autograd import profiler
from multigrad.tools.profiler.nvprof import TraceError

STRINGS = {
    1: "multiply, seq=5",
    2: "MultiplyBackward, stashed seq=5",
    3: "_Z6kernelf",
    4: "sum, seq=6",
    5: "plain_kernel",
}


def nvprof(path, kernels=True, strings=STRINGS, markers=None, extra=()):
    """Ranges in nanoseconds: multiply 1000..9000 with sum 2000..5000 inside, MultiplyBackward
    10000..20000.
    """
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT)")
        db.executemany("INSERT INTO StringTable VALUES (?, ?)", strings.items())
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (_id_ INTEGER PRIMARY KEY, flags INT, "
            "timestamp INT, id INT, objectKind INT, name INT)"
        )
        for i, name, start, end in markers or (
            (11, 2, 10000, 20000),
            (7, 1, 1000, 9000),
            (8, 4, 2000, 5000),
        ):
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER (flags, timestamp, id, objectKind, "
                "name) VALUES (2, ?, ?, 2, ?)",
                (start, i, name),
            )
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER (flags, timestamp, id, objectKind, "
                "name) VALUES (4, ?, ?, 2, 0)",
                (end, i),
            )
        if kernels:
            db.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, cbid INT, "
                "start INT, end INT, correlationId INT)"
            )
            db.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INT, end INT, name "
                "INT, correlationId INT)"
            )
            launches = (
                (1, 211, 3000, 3500, 100),
                (2, 211, 6000, 6500, 101),
                (3, 13, 11000, 12000, 102),
                (4, 211, 30000, 31000, 103),
            )
            db.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", launches
            )
            db.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (?, ?, ?, ?)",
                (
                    (4000, 11000, 3, 100),
                    (12000, 14000, 5, 101),
                    (15000, 18000, 5, 102),
                    (32000, 33000, 5, 103),
                ),
            )
        for statement in extra:
            db.execute(statement)
    return path


def nsight(path, kernels=True, process=True):
    """Two threads of one process, and a kernel of another with the same correlation id."""
    one, two, other = (3 << 24) + 1, (3 << 24) + 2, (4 << 24) + 1
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", STRINGS.items())
        db.execute(
            "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER "
            "NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid "
            "INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)"
        )
        db.executemany(
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid) VALUES "
            "(?, ?, ?, ?, ?, ?)",
            (
                (10000, 20000, 59, None, 2, two),
                (1000, 9000, 59, "multiply, seq=5", None, one),
                (2000, 5000, 59, None, 4, one),
                (0, 30000, 60, "label", None, one),
                (500, None, 34, "a mark", None, one),
                (600, None, 59, "never ended", None, one),
            ),
        )
        if kernels:
            pid = ", globalPid INTEGER" if process else ""
            db.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, "
                "eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, "
                "returnValue INTEGER)"
            )
            db.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId "
                f"INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER{pid})"
            )
            db.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId) "
                "VALUES (?, ?, ?, ?)",
                ((3000, 3500, one, 100), (11000, 12000, two, 101), (3100, 3200, other, 100)),
            )
            rows = (
                (4000, 11000, 1, 100, 5, 5, 3 << 24),
                (15000, 18000, 0, 101, 5, 5, 3 << 24),
                (0, 999000, 0, 100, 5, 5, 4 << 24),
            )
            db.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                f"({', '.join('?' * (7 if process else 6))})",
                rows if process else [row[:6] for row in rows[:2]],
            )
    return path


def by_name(events):
    return {e.name.partition(",")[0]: e for e in events}


def test_nvprof(tmp_path):  # F232, F227
    events = profiler.load_nvprof(str(nvprof(tmp_path / "trace.prof")))
    assert isinstance(events, profiler.EventList)
    assert [e.name for e in events] == [STRINGS[1], STRINGS[4], STRINGS[2]]  # by their beginnings
    found = by_name(events)
    assert found["multiply"].cpu_time_total == 8.0  # nanoseconds in the file
    assert [tuple(k) for k in found["multiply"].kernels] == [
        ("kernel(float)", 0, 7.0),
        ("plain_kernel", 0, 2.0),
    ]
    assert [tuple(k) for k in found["sum"].kernels] == [("kernel(float)", 0, 7.0)]
    # however it was launched
    assert [tuple(k) for k in found["MultiplyBackward"].kernels] == [("plain_kernel", 0, 3.0)]
    assert (
        found["sum"].cpu_parent is found["multiply"]
        and found["multiply"].self_device_time_total == 2.0
    )


def test_numbers_and_arrows(tmp_path):  # F228, F229, F232
    events = profiler.load_nvprof(nvprof(tmp_path / "trace.prof"))
    found = by_name(events)
    assert (
        found["multiply"].sequence_nr,
        found["MultiplyBackward"].sequence_nr,
        found["sum"].sequence_nr,
    ) == (5, 5, 6)
    assert (found["multiply"].scope, found["MultiplyBackward"].scope) == (0, 1)
    events.export_chrome_trace(tmp_path / "trace.json")
    assert [e["ph"] for e in json.loads((tmp_path / "trace.json").read_text())].count("s") == 1


def test_the_table(tmp_path):  # F223, F232
    events = profiler.load_nvprof(nvprof(tmp_path / "trace.prof"))
    table = events.table(sort_by="cuda_time_total")
    for title in (
        "Self CUDA",
        "Self CUDA %",
        "CUDA total",
        "CUDA time avg",
        "# of Calls",
        "Node ID",
    ):
        assert title in table
    assert "Self CUDA time total: 12.000us" in table and "9.000us" in table
    assert len(events.key_averages()) == 3 and events.total_average().count == 3


def test_without_kernels(tmp_path):  # F232
    for make in (nvprof, nsight):
        events = profiler.load_nvprof(make(tmp_path / make.__name__, kernels=False))
        assert len(events) >= 3 and not any(e.kernels for e in events)


@pytest.mark.parametrize("process", [True, False])
def test_nsight_systems(tmp_path, process):  # F232
    events = profiler.load_nvprof(nsight(tmp_path / "trace.sqlite", process=process))
    assert [e.name for e in events] == ["label", STRINGS[1], STRINGS[4], STRINGS[2]]
    found = by_name(events)
    assert (
        [tuple(k) for k in found["sum"].kernels]
        == [("plain_kernel", 1, 7.0)]
        == [tuple(k) for k in found["multiply"].kernels]
    )
    assert [tuple(k) for k in found["MultiplyBackward"].kernels] == [("plain_kernel", 0, 3.0)]
    assert found["label"].kernels == found["sum"].kernels  # of this thread only
    assert (
        found["MultiplyBackward"].thread != found["multiply"].thread
        and found["multiply"].cpu_parent is found["label"]
    )


def test_parse(tmp_path):
    path = nvprof(tmp_path / "trace.prof", extra=('CREATE TABLE "it""s" (x)',))
    found = profiler.parse_nvprof_trace(path)
    assert type(found) is list and [e.node_id for e in found] == [0, 0, 0]


def test_no_file(tmp_path):  # F232
    with pytest.raises(FileNotFoundError, match="load_nvprof: there is no file"):
        profiler.load_nvprof(tmp_path / "nonesuch")
    assert not (tmp_path / "nonesuch").exists()  # SQLite would have made one


def foreign(path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE songs (title TEXT)")


def endless(path):
    """A trace with a view in the place of a table, whose rows have no end."""
    nvprof(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE StringTable")
        db.execute(
            "CREATE VIEW StringTable AS WITH RECURSIVE n(_id_) AS (SELECT 1 UNION ALL SELECT _id_ "
            "+ 1 FROM n) SELECT _id_, 'name' AS value FROM n"
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: path.write_text(
                "no database at all, but long enough for one to be looked at as a header"
            ),
            "cannot be read as SQLite",
        ),
        (foreign, "is SQLite, but no trace of nvprof or Nsight Systems"),
        (endless, "is SQLite, but no trace of nvprof or Nsight Systems"),
        (lambda path: nvprof(path, strings={1: "f"}), "is a damaged trace: it has no string"),
        (
            lambda path: nvprof(path, markers=((7, 1, 0, 1), (7, 1, 2, 3))),
            "is a damaged trace: duplicate key",
        ),
        (
            lambda path: nvprof(
                path, extra=("UPDATE CUPTI_ACTIVITY_KIND_MARKER SET timestamp = 'soon'",)
            ),
            "are no times",
        ),
        (
            lambda path: nvprof(
                path, extra=("UPDATE CUPTI_ACTIVITY_KIND_MARKER SET timestamp = 9e999",)
            ),
            "damaged trace.*infinity",
        ),
        (
            lambda path: nvprof(
                path, extra=("UPDATE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL SET end = NULL",)
            ),
            "are no times",
        ),
    ],
)
def test_what_is_no_trace(tmp_path, make, message):  # F232
    path = tmp_path / "trace.prof"
    make(path)
    with pytest.raises(ValueError, match=message) as caught:
        profiler.load_nvprof(path)
    assert type(caught.value) is TraceError and "trace.prof" in str(caught.value)
    # nothing of sqlite3 is shown
    assert caught.value.__context__ is None or caught.value.__suppress_context__
