// Package oomlog reads what PyTorch says about its memory in words: the out-of-memory
// messages of training logs. snapshot/SPEC.md 7.2 lists the messages by family, A to M.
//
// A log may have any size and any content. It is read once, in constant memory; nothing in it
// is trusted, and a figure that a message does not give stays unknown instead of zero.
package oomlog

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"
)

// Family is the form of a message, by the letter that it has in snapshot/SPEC.md 7.2.
type Family string

const (
	Unknown  Family = "?" // cut before its form shows
	Cached   Family = "A" // torch up to 1.3: "(GPU 0; ... cached)"
	Reserved Family = "B" // 1.4 to 1.8: "... reserved in total by PyTorch)"
	Hinted   Family = "C" // 1.9 to 2.0: B with a hint, or with "allowed"
	Capacty  Family = "D" // 2.1: in sentences, with "capacty"
	Capacity Family = "E" // 2.2 on
	Rejected Family = "F" // 2.12 on: refused before cudaMalloc
	Exabyte  Family = "G" // "more than 1EB memory"
	Async    Family = "H" // the cudaMallocAsync backend
	XPU      Family = "I" // Intel
	NPU      Family = "J" // Ascend
	MPS      Family = "K" // Apple
	HIP      Family = "L" // ROCm: the text of C, D or E
	Outside  Family = "M" // not from the caching allocator
)

var writers = map[Family]string{
	Cached: "torch up to 1.3", Reserved: "torch 1.4 to 1.8", Hinted: "torch 1.8 to 2.0", Capacty: "torch 2.1",
	Capacity: "torch 2.2 or newer", Rejected: "torch 2.12 or newer, with throw_on_cudamalloc_oom",
	Async: "torch with backend:cudaMallocAsync", XPU: "torch for XPU", NPU: "torch_npu", MPS: "torch for MPS",
	HIP: "torch for ROCm", Outside: "not PyTorch's caching allocator",
}

// Writer says in words who writes messages of the family.
func (f Family) Writer() string { return cmp.Or(writers[f], "torch") }

// Size is a number of bytes as a message prints it. The zero value is one that the message does not give.
// As JSON it is the number alone.
type Size struct {
	Bytes   int64 // as printed, math.MaxInt64 when it is more than that
	Step    int64 // what the last printed digit stands for, rounded up; 0 is unknown
	Derived bool  // not printed, but the sum or difference of what is
}

// Known reports whether the message gives the size.
func (s Size) Known() bool { return s.Step > 0 }

// MarshalJSON gives the bytes.
func (s Size) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, s.Bytes, 10), nil }

// Process is what NVML said about one process on the device.
type Process struct {
	PID  int64 `json:"pid"` // 0 is the process that ran out of memory
	Used Size  `json:"used,omitzero"`
	// Unavailable is set when NVML could not say: 17179869184.00 GiB is all bits set (snapshot/SPEC.md 7.2).
	Unavailable bool `json:"-"`
}

// Message is one out-of-memory message.
type Message struct {
	Family  Family
	Backend string // cuda, hip, xpu, npu, mps or cpu
	Line    int64  // from 1 on, by line feeds
	Offset  int64  // of its first byte; the exception's class comes before it
	Rank    int    // of the process that wrote it, -1 unknown
	Body
}

// Body is what a message says, wherever it stands.
type Body struct {
	Class  string `json:"class"`  // exception class in front of it, "" unknown
	Device int    `json:"device"` // ordinal, -1 unknown
	Cut    bool   `json:"cut"`    // lacks its beginning, or its last figures
	Hint   string `json:"hint"`   // the setting that the message recommends, even where it is on already
	Text   string `json:"text"`   // cleaned: no colors, escapes or line breaks; at most 2 KiB

	// Tried is the segment size that CUDA was asked for, not the tensor's (snapshot/SPEC.md 7.1); in families
	// F, H, K and for the CPU it is the request itself.
	Tried        Size      `json:"tried,omitzero"`
	Total        Size      `json:"device_total,omitzero"`
	Free         Size      `json:"free,omitzero"`          // on the device, as cudaMemGetInfo says
	Allowed      Size      `json:"allowed,omitzero"`       // what a memory fraction or watermark leaves to the process
	Allocated    Size      `json:"allocated,omitzero"`     // in live tensors, and PrivatePools
	Unallocated  Size      `json:"unallocated,omitzero"`   // reserved but not allocated; "cached" in family A
	Reserved     Size      `json:"reserved,omitzero"`      // held by the caching allocator
	Active       Size      `json:"active,omitzero"`        // family J only
	PrivatePools Size      `json:"private_pools,omitzero"` // free blocks of private pools, a part of Allocated
	Other        Size      `json:"other,omitzero"`         // family K: of the process, not the allocator
	Processes    []Process `json:"processes"`
}

// begin is a message of which nothing but its class is read yet.
func begin(backend, class string) Message {
	b := Body{Class: class, Device: -1, Processes: []Process{}}
	return Message{Family: Unknown, Backend: backend, Rank: -1, Body: b}
}

// derive completes the sum that a message prints two parts of: messages have Unallocated or Reserved.
func (b *Body) derive() {
	switch a, u, r := b.Allocated, b.Unallocated, b.Reserved; {
	case !a.Known():
	case u.Known() && !r.Known():
		b.Reserved = Size{a.Bytes + u.Bytes, a.Step + u.Step, true}
	case r.Known() && !u.Known():
		b.Unallocated = Size{r.Bytes - a.Bytes, a.Step + r.Step, true}
	}
}

// cursor reads words and sizes from cleaned text. Words match without regard to case and to
// white space, since logs are wrapped anywhere.
type cursor struct {
	text []byte
	i    int
}

func blank(b byte) bool { return b == ' ' || b == '\n' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b | 0x20
	}
	return b
}

// lit reads a text, given in lower case and without blanks.
func (c *cursor) lit(s string) bool {
	i := c.i
	for k := 0; k < len(s); k++ {
		for i < len(c.text) && blank(c.text[i]) {
			i++
		}
		if i == len(c.text) || lower(c.text[i]) != s[k] {
			return false
		}
		i++
	}
	c.i = i
	return true
}

// any reads the first of the texts that is there and returns its index, -1 for none.
func (c *cursor) any(texts ...string) int {
	for k, s := range texts {
		if c.lit(s) {
			return k
		}
	}
	return -1
}

// decimal reads a number with an optional fraction: digits without the point, and how many
// of them are behind it. A line may break inside it.
func (c *cursor) decimal() (digits uint64, frac int, ok bool) {
	for c.i < len(c.text) && blank(c.text[c.i]) {
		c.i++
	}
	i, n, point := c.i, 0, false
	for ; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case isDigit(b) && n < 18:
			digits = digits*10 + uint64(b-'0')
			n++
			if point {
				frac++
			}
			continue
		case b == '.' && !point && n > 0 && i+1 < len(c.text) && (isDigit(c.text[i+1]) || c.text[i+1] == '\n'):
			point = true
			continue
		case b == '\n' && n > 0 && i+1 < len(c.text) && (isDigit(c.text[i+1]) || c.text[i+1] == '.'):
			continue
		}
		break
	}
	if n == 0 || i < len(c.text) && isDigit(c.text[i]) {
		return 0, 0, false
	}
	c.i = i
	return digits, frac, true
}

// whole reads a whole number that fits an int32.
func (c *cursor) whole() (int, bool) {
	start := c.i
	n, frac, ok := c.decimal()
	if !ok || frac > 0 || n > math.MaxInt32 {
		c.i = start
		return 0, false
	}
	return int(n), true
}

// units in the order in which they must be tried. MPS prints powers of 1024 as KB, MB and GB.
var units = []struct {
	name  string
	shift uint
}{
	{"bytes", 0}, {"byte", 0}, {"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40},
	{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40},
}

// size reads a printed size (snapshot/SPEC.md 7.1).
func (c *cursor) size() (Size, bool) {
	start := c.i
	digits, frac, ok := c.decimal()
	if !ok {
		return Size{}, false
	}
	for _, u := range units {
		if c.lit(u.name) && (c.i == len(c.text) || lower(c.text[c.i]) < 'a' || lower(c.text[c.i]) > 'z') {
			return scale(digits, frac, u.shift), true
		}
	}
	c.i = start
	return Size{}, false
}

// scale is digits * 10^-frac * 2^shift, rounded.
func scale(digits uint64, frac int, shift uint) Size {
	ten := uint64(1)
	for range frac {
		ten *= 10
	}
	step := int64((uint64(1)<<shift + ten - 1) / ten)
	hi, lo := bits.Mul64(digits, 1<<shift)
	lo, carry := bits.Add64(lo, ten/2, 0)
	if hi += carry; hi >= ten {
		return Size{Bytes: math.MaxInt64, Step: step}
	}
	n, _ := bits.Div64(hi, lo, ten)
	return Size{Bytes: int64(min(n, math.MaxInt64)), Step: step}
}
