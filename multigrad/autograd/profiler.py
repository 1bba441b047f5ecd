"""The names of torch.autograd.profiler. The profiler is multigrad.tools.profiler."""

from ..tools.profiler.event import FunctionEvent
from ..tools.profiler.events import EventList, FunctionEventAvg
from ..tools.profiler.nvprof import EnforceUnique, load_nvprof, parse_nvprof_trace
from ..tools.profiler.nvtx import emit_nvtx
from ..tools.profiler.profile import profile, record_function
from ..tools.profiler.recorder import MEMORY_EVENT_NAME

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]

assert MEMORY_EVENT_NAME
