"""The profiler, as torch.autograd.profiler: calls, their times and their memory.

    with multigrad.autograd.profiler.profile() as prof:
        for _ in range(100):
            y = (x**2).sum()
            y.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

An event is one call: of an operation under its name in the table ("multiply"), of a node of a pass
("MultiplyBackward", "AccumulateGrad"), of a Function ("MyFunction"), or of a labelled block. The
profiler is free while it is off, see observe.py.
"""

from __future__ import annotations

import platform
import secrets
import warnings
from collections.abc import Callable
from typing import Any, Literal

from ... import observe
from ...core.each_call import each_call
from ...tracebacks import entry
from . import trace
from .events import EventList, FunctionEventAvg
from .recorder import Recorder, TimeRecorder, events_of, times_devices


class profile:
    """Context manager that records every operation and every node of a backward pass.

    enabled         False: nothing is recorded, and all results are empty
    use_cuda        former spelling of use_device="cuda"
    use_device      measure device time as well: "cuda", or the name of a backend with device clocks
                    ("jax", "cupy"). If the library has no device events (JAX), the profiler waits
                    for each operation
    record_shapes   record the shapes of arguments, to group by
    with_flops      estimate floating point operations from shapes; flops.py has the formulas
    profile_memory  follow the memory of arrays by their sizes, from creation until they are freed
    with_stack      record the lines of the program that led to each operation
    with_modules, use_kineto, acc_events, activity_filters, experimental_config,
    custom_trace_id_callback, post_processing_timeout_s
                    as in PyTorch, as far as they apply: there is one collector of events, and there
                    are no modules
    use_cpu         False needs use_kineto=True and a device, as in PyTorch; the events still belong
                    to calls on the host

    The profiler records the thread and the asyncio task that enter it, tasks started inside, and
    threads that run in a copy of its context (`contextvars.copy_context().run`). Times are host
    times; libraries such as JAX may compute later. Nested profilers each record the calls inside
    them.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        if custom_trace_id_callback is not None and not callable(custom_trace_id_callback):
            raise TypeError(
                "profile: custom_trace_id_callback must be a function, not "
                f"{type(custom_trace_id_callback).__name__}"
            )
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.use_cuda = use_cuda
        self.use_device = use_device
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.trace_id = ""
        self._recorder: Recorder | None = None
        self._events: EventList | None = None
        if not enabled:
            return
        for name, value in (
            ("experimental_config", experimental_config),
            ("activity_filters", activity_filters),
        ):
            if value is not None:
                raise ValueError(
                    f"profile: {name} is for the collector of events Kineto, which is not there"
                )
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = "
                "'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            self.use_device = "cuda"
        device = self.use_device
        if device is not None and not times_devices(device):
            text = f"The {device} is not a valid device option."
            if device == "cuda":
                text = "CUDA is not available, disabling CUDA profiling"
            warnings.warn(text, stacklevel=2)
            self.use_cuda, self.use_device = False, None
        if not use_cpu and self.use_device is None:
            raise AssertionError("No activities specified for the profiler")

    @entry
    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.trace_id = (self.custom_trace_id_callback or _random_id)()
        self.entered = True
        options = (
            self.record_shapes,
            self.with_flops,
            self.profile_memory,
            self.with_stack,
            self.use_device,
        )
        self._recorder = (Recorder if any(options) else TimeRecorder)(*options)
        observe.enter(self._recorder)
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        if self.enabled:
            if self._recorder is None or self._recorder.end_time is not None:
                raise RuntimeError("the profiler is not running: each is entered and left once")
            observe.leave(self._recorder)
            self._recorder.close()
            self._events = None
        return False

    @property
    def function_events(self) -> EventList:
        """Every event, in order of start. The list is built at the first access."""
        recorder = self._recorder
        if recorder is None or recorder.end_time is None:  # disabled, or still running
            nothing = EventList([])
            nothing._tree_built = True
            return nothing
        if self._events is None:
            self._events = events_of(recorder, self.post_processing_timeout_s)
        return self._events

    def _shown(self, text: Callable[[EventList], str]) -> str:
        ended = self._recorder is not None and self._recorder.end_time is not None
        if self.enabled and not ended:
            return "<unfinished multigrad.autograd.profile>"
        return text(self.function_events)

    def __repr__(self) -> str:
        return self._shown(repr)

    def __str__(self) -> str:
        return self._shown(str)

    @entry
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Format all events as a table, see EventList.table; key_averages().table() is shorter."""
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    @entry
    def export_chrome_trace(
        self, path: Any, metadata: dict[str, Any] | None = None, use_python_export: bool = False
    ) -> None:
        """Write all events for chrome://tracing and https://ui.perfetto.dev.

        Arrows lead from operations to their nodes. `metadata` is added to the head of the file. If
        it is not JSON-serializable, TypeError is raised and nothing is written.
        """
        head = {
            "schemaVersion": 1,
            "deviceProperties": [],
            "trace_id": self.trace_id,
            "library_name": platform.node(),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 0 if self._recorder is None else self._recorder.began,
            "traceName": str(path),
            **(metadata or {}),
        }
        trace.write(path, trace.trace_events(self.function_events), head)

    @entry
    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write the stack of each event with its time, in the format of flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    @entry
    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return the averages by name; see EventList.key_averages."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Host time spent in events, in microseconds: the sum of all self times."""
        return self.function_events.self_cpu_time_total

    def memory_timeline(self) -> list[tuple[float, int, int]]:
        """Return the memory after each change, if profile_memory is set.

        Each entry is (microseconds since the start, bytes on the host, bytes on devices).
        """
        return [] if self._recorder is None else self._recorder.memory_timeline()


def _random_id() -> str:
    return secrets.token_hex(16).upper()


class record_function:
    """Label a block of code: a context manager, or a decorator of a function or coroutine function.

    If a generator function is decorated, each of its steps is a block. A `with` statement around a
    `yield` is one block. Code that runs between the steps belongs to this block, unless it opened a
    label itself. If several generators take turns, it belongs to the label that was opened last.

    name  the label
    args  a text to show beside the label

    Without a running profiler, the label has no effect.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"record_function takes the name of a block, a str, not {type(name).__name__}"
            )
        if not (args is None or isinstance(args, str)):
            raise TypeError(
                f"record_function: args must be a str or None, not {type(args).__name__}"
            )
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self._opened: list[Any] = []

    def __enter__(self) -> record_function:
        opened = observe.open_label(self.name, self.args)
        try:
            self._opened.append(opened)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            if opened is not None:
                observe.close_label(opened)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        opened = self._opened[-1]
        if opened is not None and not self.run_callbacks_on_exit:
            observe.leave_label(opened)
            return
        if opened is not None:
            observe.close_label(opened)
        self._opened.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return each_call(function, lambda: record_function(self.name, self.args))

    def _call_end_callbacks_on_future(self, future: Any) -> Any:
        """Make the label last until `future` (of concurrent.futures or asyncio) is done."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        opened = self._opened[-1]
        if opened is not None:
            future.add_done_callback(lambda _: observe.close_label(opened, restore=False))
        return future
