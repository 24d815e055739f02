# As much of PyTorch's interface as the peer program of `attest bench` uses, without a device and without mathematics:
# the program runs, answers and fails as it would, on any machine.
import sys, time, types

__version__ = "0.fake"
bfloat16, float16, float32, int64 = "bf16", "fp16", "fp32", "i64"
chosen = []  # backends


class Tensor:
    def repeat_interleave(self, n, axis): return self
    def __matmul__(self, other): return self
    def copy_(self, other): return self
    def clone(self): return self


def randn(*shape, **options): return Tensor()
def zeros(*shape, **options): return Tensor()
def empty_like(t): return t
def logsumexp(t, axis): return t


class inference_mode:
    def __enter__(self): pass
    def __exit__(self, *error): pass


class SDPBackend:
    FLASH_ATTENTION, CUDNN_ATTENTION, EFFICIENT_ATTENTION = "flash", "cudnn", "efficient"


class sdpa_kernel:
    def __init__(self, backend): self.backend = backend
    def __enter__(self): chosen.append(self.backend)
    def __exit__(self, *error): chosen.pop()


def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa):
    if chosen == ["cudnn"]:
        raise RuntimeError("No available kernel.\nand a second line")
    return q


class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = time.perf_counter()
    def query(self): return False
    def synchronize(self): pass
    def elapsed_time(self, end): return 1e3 * (end.at - self.at)


cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "none", empty_cache=lambda: None,
                             synchronize=lambda: None, current_device=lambda: 0, _sleep=lambda cycles: None, Event=Event)
version = types.SimpleNamespace(cuda="none")
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 0))

for name, parts in {"torch.nn": {}, "torch.nn.functional": {"scaled_dot_product_attention": scaled_dot_product_attention},
                    "torch.nn.attention": {"SDPBackend": SDPBackend, "sdpa_kernel": sdpa_kernel}}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(parts)
nn = sys.modules["torch.nn"]
nn.functional, nn.attention, nn.__path__ = sys.modules["torch.nn.functional"], sys.modules["torch.nn.attention"], []
__path__ = []
