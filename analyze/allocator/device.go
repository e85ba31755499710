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

// Device is a device of a given capacity. It gives ever higher addresses and none twice.
type Device struct {
	// Total is the memory that can be had in bytes, 0 for no limit: without that of the CUDA
	// context, libraries and other processes.
	Total int64

	used int64
	next uint64
}

const (
	firstAddress = 0x7f0000000000
	devicePage   = 2 << 20 // cudaMalloc's own rounding
)

// Hold counts bytes that were taken from the device before. They may be more than it has.
func (d *Device) Hold(bytes int64) { d.used += bytes }

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
	addr := max(d.next, firstAddress)
	end := addr + uint64(roundUp(size, devicePage))
	if end < addr {
		return 0, false
	}
	d.next = end
	return addr, true
}

// Map implements Driver.
func (d *Device) Map(_ uint64, size int64) bool { return d.take(size) }

// Unmap implements Driver.
func (d *Device) Unmap(addr uint64, size int64) { d.Free(addr, size) }
