package allocator

// Driver is where segments come from: the CUDA driver as the allocator sees it.
type Driver interface {
	// Malloc is cudaMalloc of a whole number of bytes, false when the device is full.
	Malloc(size int64) (addr uint64, ok bool)
	// Free is cudaFree of what Malloc gave.
	Free(addr uint64, size int64)
	// Reserve gives address space for an expandable segment (cuMemAddressReserve), false when
	// there is none left.
	Reserve(size int64) (addr uint64, ok bool)
	// Map puts memory behind a part of reserved address space, all or nothing.
	Map(addr uint64, size int64) bool
	// Unmap takes memory from a part of reserved address space.
	Unmap(addr uint64, size int64)
}

// Device is a device of a given capacity. It gives ever higher addresses and none twice, see GoDown.
type Device struct {
	// Total is the memory that can be had in bytes, 0 for no limit: without that of the CUDA
	// context, libraries and other processes.
	Total int64

	used int64
	next uint64
	down bool
}

const (
	firstAddress = 0x7f0000000000
	devicePage   = 2 << 20 // cudaMalloc's own rounding
)

// Hold counts bytes that were taken from the device before. They may be more than it has.
func (d *Device) Hold(bytes int64) { d.used += bytes }

// GoDown has it give ever lower addresses from now on, below those given so far. Drivers do either, and where addresses decide
// between blocks of one size (see Tie) that may move them.
func (d *Device) GoDown() { d.down, d.next = true, firstAddress }

func (d *Device) take(size int64) bool {
	size = roundUp(size, devicePage)
	if d.Total > 0 && d.used+size > d.Total {
		return false
	}
	d.used += size
	return true
}

// Malloc implements Driver.
func (d *Device) Malloc(size int64) (uint64, bool) {
	if !d.take(size) {
		return 0, false
	}
	addr, ok := d.Reserve(size)
	if !ok {
		d.Free(addr, size)
	}
	return addr, ok
}

// Free implements Driver.
func (d *Device) Free(_ uint64, size int64) { d.used -= roundUp(size, devicePage) }

// Reserve implements Driver.
func (d *Device) Reserve(size int64) (uint64, bool) {
	n := uint64(roundUp(size, devicePage))
	if d.next == 0 {
		d.next = firstAddress
	}
	addr, end := d.next, d.next+n
	if d.down {
		addr, end = d.next-n, d.next
	}
	if end < addr {
		return 0, false
	}
	if d.next = end; d.down {
		d.next = addr
	}
	return addr, true
}

// Map implements Driver.
func (d *Device) Map(_ uint64, size int64) bool { return d.take(size) }

// Unmap implements Driver.
func (d *Device) Unmap(addr uint64, size int64) { d.Free(addr, size) }
