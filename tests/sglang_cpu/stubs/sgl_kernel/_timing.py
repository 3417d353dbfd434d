"""A host-clock event, so that the engine's own device timer runs on the CPU."""

import time


class HostEvent:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self.recorded_at = None

    def record(self, stream=None):
        self.recorded_at = time.perf_counter()

    def query(self):
        return True

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.recorded_at - self.recorded_at) * 1e3
