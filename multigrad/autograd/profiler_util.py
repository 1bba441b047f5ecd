"""The names of torch.autograd.profiler_util. The events are in multigrad.tools.profiler."""

from ..tools.profiler.event import FormattedTimesMixin, FunctionEvent, Interval, Kernel
from ..tools.profiler.events import EventList, FunctionEventAvg, StringTable

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "StringTable",
]
