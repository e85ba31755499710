package attribution

import "github.com/snapana/snapana/analyze/timeline"

// Before is the memory from before the trace. Nothing recorded what it is for; its sizes let one guess.
type Before struct {
	Blocks int64 `json:"blocks"`
	Bytes  int64 `json:"bytes"` // rounded
	// Unchanged are the blocks that live through the whole trace, as a model's do.
	Unchanged      int64 `json:"unchanged"`
	UnchangedBytes int64 `json:"unchanged_bytes"`
	// Copies is how often the unchanged blocks have each of one set of sizes: 1 for a model alone, 2 with its
	// gradients or a copy of it, 3 for parameters and two states of Adam, 4 with gradients too. 0 is for blocks that
	// tell nothing: too few, or mostly freed in the trace.
	Copies int `json:"copies"`
}

// A guess needs this many unchanged blocks, of this many sizes, and most of the bytes from before the trace.
const (
	leastBlocks = 8
	leastSizes  = 3
)

// FindBefore looks at the pre-trace blocks of a device.
func FindBefore(t *timeline.Timeline) Before {
	var b Before
	counts := map[int64]int64{} // unchanged blocks by requested size
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born >= 0 {
			break // they come first
		}
		b.Blocks++
		b.Bytes += l.Rounded
		if l.Freed < 0 && l.FreeRequested == -1 {
			b.Unchanged++
			b.UnchangedBytes += l.Rounded
			counts[l.Requested]++
		}
	}
	if t.HasHistory() && b.Unchanged >= leastBlocks && len(counts) >= leastSizes && b.UnchangedBytes > b.Bytes/2 {
		b.Copies = copies(counts)
	}
	return b
}

// copies is the largest number, up to 4, that divides how often sizes occur, for nearly all blocks and bytes. It must
// be that of some, as a model has one embedding, and others must occur more often, as its layers' do: else it may count
// layers. Small blocks matter as much as large ones: two matrices of one size, such as an embedding and its head, and
// an even number of layers look like two models but for an odd number of norms.
func copies(counts map[int64]int64) int {
	var all, blocks int64
	for size, n := range counts {
		all += size * n
		blocks += n
	}
	for k := int64(4); k > 1; k-- {
		var multiple, many, once, often int64
		for size, n := range counts {
			if n%k == 0 {
				multiple += size * n
				many += n
			}
			switch {
			case n == k:
				once += size * n
			case n%k == 0:
				often += size * n
			}
		}
		if multiple >= all/100*97 && many*100 >= blocks*97 && once >= all/100 && often >= all/100 {
			return int(k)
		}
	}
	return 1
}
