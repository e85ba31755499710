package oomlog

// anchor is a text that every message has one of.
type anchor int

const (
	anchorMemory   anchor = iota // memory, OutOfMemoryError, cudaErrorMemoryAllocation
	anchorCapacity               // "capacity" of a message without its head
	anchorFailed                 // CUBLAS_STATUS_ALLOC_FAILED and the like
)

// anchors are what next looks for, all of the same length.
var anchors = [...]string{anchorMemory: "emory", anchorCapacity: "capac", anchorFailed: "_FAIL"}

const anchorSize = 5

// steps tells how far a window of anchorSize bytes may move on by its last byte (Horspool's
// method for several texts); after tells the same once a window that ends like an anchor was
// compared. Tried: bytes.Index for each text, 4 times slower on a log without messages.
var steps, after = func() (a, b [256]uint8) {
	for i := range a {
		a[i], b[i] = anchorSize, anchorSize
	}
	for _, x := range anchors {
		for i := range anchorSize {
			c, far := x[i], uint8(anchorSize-1-i)
			a[c] = min(a[c], far)
			if far > 0 {
				b[c] = min(b[c], far)
			}
		}
	}
	return a, b
}()

// next finds the first anchor in buf from pos on; its place is len(buf) when there is none.
func next(buf []byte, pos int) (int, anchor) {
	for i := pos + anchorSize - 1; i < len(buf); {
		b := buf[i]
		if n := steps[b]; n > 0 {
			i += int(n)
			continue
		}
		at := i - anchorSize + 1
		switch string(buf[at : i+1]) {
		case anchors[anchorMemory]:
			if at--; at >= pos && buf[at]|0x20 == 'm' {
				return at, anchorMemory
			}
		case anchors[anchorCapacity]:
			return at, anchorCapacity
		case anchors[anchorFailed]:
			return at, anchorFailed
		}
		i += int(after[b])
	}
	return len(buf), anchorMemory
}
