# The peer process of `attest bench`: PyTorch's attention, timed by CUDA events on the tensors that the tool shares with
# it. One JSON object a line comes in, one goes out. Everything before the hello is import; nothing is measured there.
import ctypes, json, os, sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print must not pass for an answer


def answer(**fields):
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


def one_line(error):
    return (type(error).__name__ + ": " + (str(error).strip().splitlines() or [""])[0])[:300]


try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no CUDA device")
    torch.zeros(1, device="cuda")  # from here on the primary context is this thread's
except Exception as e:
    answer(error=one_line(e))
    sys.exit(0)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


# ---- memory of the tool, opened here ----

class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class DLTensor(ctypes.Structure):  # dlpack.h; dtype is {code, bits, lanes}, code 1 is unsigned
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class CudaArray:  # for a torch that does not take the capsule; this way needs numpy
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


keep = []  # what the C side points to


def bytes_at(address, size):
    try:
        shape, nothing = (ctypes.c_int64 * 1)(size), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
        managed = DLTensor(address, 2, torch.cuda.current_device(), 1, 1, 8, 1, shape, None, 0, None,
                           ctypes.cast(nothing, ctypes.c_void_p))
        keep.extend([shape, nothing, managed])
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return torch.utils.dlpack.from_dlpack(make(ctypes.byref(managed), b"dltensor", None))
    except Exception:
        return torch.as_tensor(CudaArray(address, size), device="cuda")


arena = None


def share(request):
    global arena
    opener = ctypes.CDLL("libcuda.so.1").cuIpcOpenMemHandle_v2
    opener.argtypes = [ctypes.POINTER(ctypes.c_uint64), IpcHandle, ctypes.c_uint]
    address = ctypes.c_uint64()
    code = opener(ctypes.byref(address), IpcHandle.from_buffer_copy(bytes.fromhex(request["handle"])), 1)
    if code != 0:
        raise RuntimeError("cuIpcOpenMemHandle returned %d" % code)
    arena = bytes_at(address.value, request["bytes"])
    # The tool wrote this number at the begin: what is opened is what was meant.
    if arena[:8].view(torch.int64).item() != request["stamp"]:
        arena = None
        raise RuntimeError("the memory opened is not the tool's")
    return {"shared": True}


def tensor(field):
    dtype, shape = DTYPES[field["dtype"]], field["shape"]
    if arena is None:
        return torch.randn(shape, device="cuda", dtype=dtype)
    begin = field["offset"]
    return arena[begin:begin + field["bytes"]].view(dtype).view(shape)


def own(field):
    return tensor(field) if arena is None else tensor(field).clone()


# ---- cells and their peers: name -> (backend or None, call(set index)) ----

cell = None


class Cell:
    def __init__(self, spec):
        self.spec, self.peers, self.timed, self.results = spec, {}, set(), {}
        # The same values, but in memory that torch has allocated: calls on large tensors that another process has
        # allocated were seen to run up to 2.5 times slower, and the peer is not to blame for that. The copy is not timed.
        self.sets = [{f["name"]: own(f) for f in fields} for fields in spec["sets"]]
        self.outputs = {f["name"]: tensor(f) for f in spec["outputs"]} if arena is not None else {}
        kind = spec["kind"]
        if kind in ("forward", "decode"):
            self.grouped = spec["q_heads"] != spec["kv_heads"]
            if spec["dtype"] == "fp32":
                self.attention("torch.efficient", SDPBackend.EFFICIENT_ATTENTION)
            else:
                self.attention("torch.flash", SDPBackend.FLASH_ATTENTION)
                if self.grouped:
                    self.attention("torch.flash-expanded", SDPBackend.FLASH_ATTENTION, True)
                self.attention("torch.cudnn", SDPBackend.CUDNN_ATTENTION)
        elif kind == "scan":
            self.peers["torch.logsumexp"] = (None, lambda i: torch.logsumexp(self.sets[i]["scores"], 1))
        elif kind == "copy":
            a, b = self.sets[0]["from"], torch.empty_like(self.sets[0]["from"])
            self.peers["torch.copy"] = (None, lambda i: b.copy_(a))
        elif kind == "matmul":
            n = spec["n"]
            a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
            self.peers["torch.matmul"] = (None, lambda i: a @ b)

    def attention(self, name, backend, expand=False):
        causal, made = self.spec["causal"], []

        def call(i):
            if expand and not made:  # heads repeated beforehand: the copy is not part of the time
                group = self.spec["q_heads"] // self.spec["kv_heads"]
                made.extend({"q": t["q"], "k": t["k"].repeat_interleave(group, 1),
                             "v": t["v"].repeat_interleave(group, 1)} for t in self.sets)
            t = (made or self.sets)[i]
            return F.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=causal,
                                                  enable_gqa=self.grouped and not expand)

        self.peers[name] = (backend, call)

    def run(self, name, what):
        backend, call = self.peers[name]
        with torch.inference_mode():
            if backend is None:
                return what(call)
            with sdpa_kernel(backend):
                return what(call)


def open_cell(request):
    global cell
    cell = None
    torch.cuda.empty_cache()
    cell = Cell(request)
    return {"peers": list(cell.peers)}


def difference(a, b):
    a, b = a.float(), b.float()
    gap = (a - b).abs()
    bad = ~torch.isfinite(gap)
    return {"difference": gap.masked_fill(bad, 0).max().item(), "nonfinite": int(bad.sum().item()),
            "largest": b.abs().nan_to_num(0, 0, 0).max().item()}


# The tool's output of set 0, which it has just computed, beside the peer's of the same inputs.
def check(request):
    name = request["peer"]
    if name not in cell.results:
        cell.results[name] = cell.run(name, lambda call: call(0))
    return difference(cell.outputs["o"], cell.results[name])


# ---- time, measured as the tool measures its own kernels ----

delay = 200000  # clock cycles
turn = 0


# Seconds of one call out of `calls` back to back, all of them enqueued before the first begins: the device waits in a
# sleep meanwhile. `hidden` is false where even a long sleep was too short for that.
def queued(call, sets, calls):
    global delay, turn
    while True:
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(delay)
        a.record()
        for _ in range(calls):
            turn += 1
            call(turn % sets)
        b.record()
        late = a.query()
        b.synchronize()
        if not late or delay >= 50000000:
            return a.elapsed_time(b) * 1e-3 / calls, not late
        delay *= 2


def alone(call, sets):
    global turn
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    turn += 1
    torch.cuda.synchronize()
    a.record()
    call(turn % sets)
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e-3


def measure(call, sets, request, first):
    for _ in range(3 if first else 1):
        queued(call, sets, 1)
    once, _ = queued(call, sets, 1)
    calls = int(min(max(request["sample"] / max(once, 1e-7), 1), request["most_calls"]))
    samples = int(min(max(request["effort"] / (calls * max(once, 1e-7)), 2), request["most_samples"]))
    device, hidden = zip(*(queued(call, sets, calls) for _ in range(samples)))
    return {"device": device, "call": [alone(call, sets) for _ in range(min(samples, request["most_alone"]))],
            "calls": calls, "hidden": all(hidden)}


def time(request):
    name = request["peer"]
    first = name not in cell.timed
    cell.timed.add(name)
    cell.results.clear()
    return cell.run(name, lambda call: measure(call, len(cell.sets), request, first))


handlers = {"share": share, "cell": open_cell, "check": check, "time": time}
answer(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(),
       device=torch.cuda.get_device_name(), python=sys.version.split()[0])
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer(**handlers[request["cmd"]](request))
    except Exception as e:
        answer(error=one_line(e))
        torch.cuda.empty_cache()
sys.stdout.flush()
os._exit(0)  # the tool's memory is not this process's to give back
