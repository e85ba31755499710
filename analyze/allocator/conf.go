package allocator

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Conf are the settings that change where memory goes (SPEC.md 5.2). The zero value is not valid: begin
// with Default.
type Conf struct {
	MaxSplit            int64   // max_split_size in bytes, -1 for no limit
	MaxNonSplitRounding int64   // max_non_split_rounding in bytes
	Roundup             Roundup // roundup_power2_divisions
	Exact               bool    // where Roundup is 1, sizes are not rounded: torch 2.1, if divisions are set
	Padding             int64   // bytes that are added to each request: 32 by torch_npu
	LargeSegment        int64   // large_segment_size in bytes; torch 2.11 and later
	Expandable          bool    // expandable_segments

	// GCThreshold is garbage_collection_threshold, 0 for off. It has an effect only together
	// with Fraction.
	GCThreshold float64
	// Fraction is per_process_memory_fraction (torch 2.10 and later), which is also what
	// torch.cuda.set_per_process_memory_fraction sets; 1 is no limit.
	Fraction float64
	// Reject is throw_on_cudamalloc_oom (torch 2.12 and later): what exceeds the fraction fails
	// at once.
	Reject bool

	// Needs is the first release that knows all the keys that a settings string had, 0 for any.
	Needs Release

	// Async is backend:cudaMallocAsync, another allocator, which this package does not know.
	Async bool
}

// Default are the settings of an empty PYTORCH_CUDA_ALLOC_CONF.
func Default() Conf {
	return Conf{MaxSplit: -1, MaxNonSplitRounding: LargeBuffer, LargeSegment: LargeBuffer, Fraction: 1}
}

// Collects reports whether segments may be released before the device is full.
func (c *Conf) Collects() bool { return c.GCThreshold > 0 }

// Waits reports whether the size of the device matters only once it is full: settings that give memory back by how full it
// is, or allow a part of it, are none such.
func (c *Conf) Waits() bool { return !c.Collects() && c.Fraction >= 1 }

// String gives the settings as PYTORCH_CUDA_ALLOC_CONF has them, in a fixed order and without
// those that have their default; "" for all defaults.
func (c *Conf) String() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.Async {
		add("backend:cudaMallocAsync")
	}
	if c.Expandable {
		add("expandable_segments:True")
	}
	if c.LargeSegment != LargeBuffer {
		add("large_segment_size_mb:%d", c.LargeSegment>>20)
	}
	if c.MaxSplit >= 0 {
		add("max_split_size_mb:%d", c.MaxSplit>>20)
	}
	if c.MaxNonSplitRounding != c.LargeSegment {
		add("max_non_split_rounding_mb:%d", c.MaxNonSplitRounding>>20)
	}
	if s := c.Roundup.String(); s != "" {
		add("roundup_power2_divisions:%s", s)
	}
	if c.GCThreshold > 0 {
		add("garbage_collection_threshold:%s", strconv.FormatFloat(c.GCThreshold, 'g', -1, 64))
	}
	if c.Fraction < 1 {
		add("per_process_memory_fraction:%s", strconv.FormatFloat(c.Fraction, 'g', -1, 64))
	}
	if c.Reject {
		add("throw_on_cudamalloc_oom:True")
	}
	return strings.Join(out, ",")
}

// String gives the divisions as the settings string of the newest releases has them: a number
// when all intervals have the same, else the list of the intervals where it changes; "" when all
// are off.
func (up *Roundup) String() string {
	same, off := true, true
	for _, div := range up {
		same = same && div == up[0]
		off = off && div <= 1
	}
	switch {
	case off:
		return ""
	case same:
		return strconv.FormatInt(up[0], 10)
	}
	// The first entry also stands for all below it, ">" for all above the last one.
	first, last := 0, len(up)-2
	for up[first+1] == up[0] {
		first++
	}
	for last > first && up[last] == up[len(up)-1] {
		last--
	}
	var list []string
	for i := first; i <= last; i++ {
		list = append(list, fmt.Sprintf("%d:%d", 1<<i, up[i]))
	}
	return "[" + strings.Join(append(list, fmt.Sprintf(">:%d", up[len(up)-1])), ",") + "]"
}

// maxSplit is MaxSplit as a size that nothing reaches when there is no limit.
func (c *Conf) maxSplit() int64 {
	if c.MaxSplit < 0 {
		return math.MaxInt64
	}
	return c.MaxSplit
}

// allowed gives the bytes that the fraction leaves of a device's total.
func (c *Conf) allowed(total int64) int64 {
	if c.Fraction >= 1 || total <= 0 {
		return math.MaxInt64
	}
	return int64(c.Fraction * float64(total))
}

func powerOfTwo(n uint64) bool { return bits.OnesCount64(n) == 1 }

// Release is a release of torch: 206 for 2.6, 211 for 2.11. 0 is the newest one.
type Release int

// Newest is the release after all those in which something changed.
const Newest Release = 0

// oneParser is the release since which all devices share one parser of settings.
const oneParser Release = 210

func (r Release) before(o Release) bool { return r != Newest && r < o }

func (r Release) String() string {
	if r == Newest {
		return "newest"
	}
	return fmt.Sprintf("%d.%d", r/100, r%100)
}

// Torch names a release in a sentence.
func (r Release) Torch() string {
	if r == Newest {
		return "torch"
	}
	return "torch " + r.String()
}

// Tie says which of several free blocks of the same size is taken (SPEC.md 5.4).
type Tie uint8

const (
	TieAddress        Tie = iota // the lowest address: up to torch 2.11
	TieCounter                   // the first one made: torch 2.12
	TieCounterPrivate            // that in private pools, else the lowest address: shortly after
	TieSegment                   // of the segment made first, then the lowest address: torch 2.13 and later
)

// ByAddress reports whether addresses that the driver gives decide between blocks of several segments.
func (t Tie) ByAddress() bool { return t == TieAddress || t == TieCounterPrivate }

// Tie gives the order of equal blocks in a release.
func (r Release) Tie() Tie {
	switch {
	case r.before(212):
		return TieAddress
	case r.before(213):
		return TieCounter
	}
	return TieSegment
}

// Recorded are the settings of the run as far as the file tells.
type Recorded struct {
	Conf Conf
	// Release is the newest one that may have written the file; Tie is its order of equal
	// blocks.
	Release Release
	Tie     Tie
	// Known is whether the file has allocator settings at all (torch 2.3 and later); without
	// them Conf are the defaults.
	Known bool
	// Text is the settings string, "" for none.
	Text string
}

// RecordedIn reads the settings of a snapshot. Where they are values of their own they are
// trusted over the settings string, which may have been set later (SPEC.md 5.2).
func RecordedIn(s *snapshot.Snapshot) Recorded {
	r := Recorded{Conf: Default(), Known: s.Settings.Present, Text: strings.TrimSpace(s.Settings.Conf),
		Release: Release(s.Writer.Newest)}
	r.Tie = r.Release.Tie()
	if s.Writer.Backend == snapshot.NPU {
		r.Conf.Padding = 32
	}
	if !r.Known {
		return r
	}
	if c, err := r.Release.ParseConf(r.Text); err == nil {
		r.Conf = c
	}
	r.Conf.Async = false // such a run has no snapshot
	r.Conf.Expandable = s.Settings.ExpandableSegments
	r.Conf.MaxSplit = -1
	if s.Settings.MaxSplitSize > 0 {
		r.Conf.MaxSplit = s.Settings.MaxSplitSize
	}
	if t := s.Settings.GCThreshold; t > 0 && t < 1 {
		r.Conf.GCThreshold = t
	}
	r.Conf.Roundup = Roundup(s.Settings.Roundup)
	return r
}
