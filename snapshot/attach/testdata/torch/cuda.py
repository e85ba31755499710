from . import memory_of_cuda as memory

version = None


def is_initialized():
    return memory.used > 0


def device_count():
    return 1


def mem_get_info(_):
    return memory.TOTAL - memory.used, memory.TOTAL


def _lazy_call(do):
    do()


class get_device_properties:
    name, major, minor, total_memory, multi_processor_count = "made up", 9, 0, memory.TOTAL, 132

    def __init__(self, device):
        pass
