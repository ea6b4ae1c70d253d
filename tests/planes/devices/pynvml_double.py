"""The binding of NVML as far as it is used, on the same state as the library in C."""

# ruff: noqa: N802, N815 - the binding calls them so

import types

NOT_SUPPORTED, NOT_FOUND, TIMEOUT, LOST, UNINITIALIZED, INVALID = 3, 6, 10, 15, 1, 2
GIB = 1 << 30


class NVMLError(Exception):
    """What the binding raises."""

    def __init__(self, value):
        super().__init__(f"error {value}")
        self.value = value


class Double:
    """Answers as `fake` says; the names are those of the binding."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028

    def __init__(self, fake):
        self.fake, self.sessions = fake, 0

    def _whole(self):
        if self.fake.broken or not self.sessions:
            raise NVMLError(self.fake.broken or UNINITIALIZED)

    def _gpu(self, handle):
        self._whole()
        if handle is None:
            raise NVMLError(INVALID)
        gpu = self.fake.gpu[handle]
        if gpu.lost:
            raise NVMLError(LOST)
        return gpu

    def nvmlInit(self):
        if self.fake.broken:
            raise NVMLError(self.fake.broken)
        self.sessions += 1

    def nvmlShutdown(self):
        self._whole()
        self.sessions -= 1

    def nvmlSystemGetDriverVersion(self):
        self._whole()
        return b"550.54.15"

    def nvmlDeviceGetCount(self):
        self._whole()
        return self.fake.gpus

    def nvmlDeviceGetHandleByIndex(self, index):
        self._gpu(index)
        return index

    def nvmlDeviceGetUUID(self, handle):
        self._gpu(handle)
        return f"GPU-{handle}"

    def nvmlDeviceGetMinorNumber(self, handle):
        self._gpu(handle)
        return handle

    def nvmlDeviceGetName(self, handle):
        self._gpu(handle)
        return "NVIDIA A100-SXM4-80GB"

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        used = self._gpu(handle).used
        if version and self.fake.unused:
            raise NVMLError(self.fake.unused)
        return types.SimpleNamespace(total=80 * GIB, used=used if version else used + GIB // 2)

    def nvmlDeviceGetPciInfo(self, handle):
        self._gpu(handle)
        return types.SimpleNamespace(busId=f"00000000:{0x3B + handle:02X}:00.0".encode())

    def nvmlDeviceGetMigMode(self, handle):
        gpu = self._gpu(handle)
        if gpu.silent:
            raise NVMLError(NOT_SUPPORTED)
        return [gpu.divided, gpu.divided]

    def nvmlEventSetCreate(self):
        self._whole()
        return "events"

    def nvmlEventSetFree(self, events):
        assert events == "events"

    def nvmlDeviceRegisterEvents(self, handle, kinds, events):
        assert (kinds, events) == (8, "events")
        if self._gpu(handle).silent:
            raise NVMLError(NOT_SUPPORTED)

    def nvmlEventSetWait_v2(self, events, milliseconds):
        assert (events, milliseconds) == ("events", 0)
        self._whole()
        if not self.fake.events:
            raise NVMLError(TIMEOUT)
        self.fake.events -= 1
        device = None if self.fake.anonymous else self.fake.about
        return types.SimpleNamespace(device=device, eventData=self.fake.xid)

    def nvmlDeviceGetFieldValues(self, handle, fields):
        gpu = self._gpu(handle)
        assert fields == [230]
        value = types.SimpleNamespace(uiVal=gpu.action)
        result = NOT_SUPPORTED if gpu.silent else 0
        return [types.SimpleNamespace(nvmlReturn=result, value=value)]

    def nvmlDeviceGetUtilizationRates(self, handle):
        gpu = self._gpu(handle)
        if gpu.divided:
            raise NVMLError(NOT_SUPPORTED)
        return types.SimpleNamespace(gpu=gpu.core)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        gpu = self._gpu(handle)
        found = types.SimpleNamespace(pid=gpu.pid, usedGpuMemory=gpu.held or None)
        return [found] if gpu.pid else []

    def nvmlDeviceGetProcessUtilization(self, handle, since):
        gpu = self._gpu(handle)
        if gpu.divided:
            raise NVMLError(NOT_SUPPORTED)
        if since >= 2000:
            raise NVMLError(NOT_FOUND)
        samples = ((1000, gpu.share), (2000, gpu.share + 20), (3000, 4_000_000_000))
        return [
            types.SimpleNamespace(pid=gpu.pid, timeStamp=moment, smUtil=share)
            for moment, share in samples
        ]
