"""What the recorder uses of PyTorch, made up: tensors that are nothing but descriptors of C, and an allocator that
never frees."""
import operator
import threading


class device:
    __slots__ = ("type", "index")

    def __init__(self):
        self.type, self.index = "cuda", 0


class Storage:
    __slots__ = ("device", "size", "address")
    nbytes, data_ptr = operator.attrgetter("size"), operator.attrgetter("address")


class Base:
    __slots__ = ("shape", "dtype", "requires_grad", "is_leaf", "grad_fn", "grad", "retains_grad", "_base",
                 "_backward_hooks", "offset", "element", "storage", "__weakref__")
    storage_offset, element_size = operator.attrgetter("offset"), operator.attrgetter("element")
    untyped_storage = operator.attrgetter("storage")


class Tensor(Base):
    __slots__ = ()

    def __init__(self, size):
        for name in Base.__slots__[:-1]:
            setattr(self, name, None)
        self.shape, self.dtype, self.requires_grad, self.is_leaf = (size,), "uint8", False, True
        self.offset, self.element, self.storage = 0, 1, Storage()
        self.storage.device, self.storage.size, self.storage.address = device(), size, cuda.memory.allocate(size)


class _C:
    _TensorBase, StorageBase = Base, Storage
    DisableTorchFunction = threading.Lock  # its __enter__ and __exit__ are C, too

    @staticmethod
    def _cuda_isHistoryEnabled():
        return cuda.memory.enabled

    @staticmethod
    def _cuda_attach_out_of_memory_observer(_):
        pass  # memory does not run out here

    @staticmethod
    def _cuda_isCurrentStreamCapturing():
        return False

    @staticmethod
    def _cuda_memoryStats(_):
        now = cuda.memory.used
        calls = {"allocated": len(cuda.memory.blocks), "freed": 0}
        return {"allocation": {"all": calls}, "allocated_bytes": {"all": {"current": now, "peak": now}},
                "reserved_bytes": {"all": {"current": now, "peak": now, "allocated": now}}}


class nn:
    class Parameter(Tensor):
        __slots__ = ()


from . import cuda  # noqa: E402
