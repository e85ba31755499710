package address

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/units"
)

// say puts the answer in words, from its figures.
func (a *Answer) say() {
	switch a.Status {
	case Allocated, Pending:
		a.sayLive()
	case Free:
		a.sayFree()
	default:
		a.sayUnreserved()
	}
	if !a.Balanced {
		a.reason("The file contradicts itself, so that owners may be missing or wrong.")
	}
}

func (a *Answer) reason(format string, args ...any) {
	a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...))
}

// Into is how many bytes of the segment lie before the address.
func (a *Answer) Into() int64 { return a.offset }

// At is an event in words, with the time since the first one.
func (a *Answer) At(event int, time int64) string {
	if event < 0 {
		return "before the trace"
	}
	s := "at event " + units.Count(event)
	if a.firstTime > 0 && time >= a.firstTime {
		s += " (+" + units.Micros(time-a.firstTime) + ")"
	}
	return s
}

// sayLive is for an address in a block.
func (a *Answer) sayLive() {
	o := a.now
	by := attribution.Allocated(o.Site)
	switch {
	case a.Status == Pending:
		a.Headline = fmt.Sprintf("The program has freed %s, which %s, but the block waits for another stream "+
			"(record_stream).", o.Name, by)
		a.reason("Using it now is a use after free: its memory is handed out anew as soon as the other stream is done.")
	case a.Beyond:
		a.Headline = fmt.Sprintf("%s lies %s what %s asked for: in the unused end of %s, which is larger than the "+
			"request.", a.Address, behind(o.Offset-o.Requested), o.Site, o.Name)
		a.reason("An access here is out of bounds of %s, which was asked for %s bytes and takes %s.", o.Name,
			units.Count(o.Requested), units.Count(o.Rounded))
	default:
		a.Headline = fmt.Sprintf("%s is in use: byte %s of %s (%s), which %s.", a.Address, units.Count(o.Offset), o.Name,
			units.Bytes(o.Requested), by)
	}
	if a.last != nil {
		a.reason("Before, %s had it, until it was freed %s.", a.last.Name, a.freed(a.last))
	}
	if a.Above != nil && a.Above.Distance == o.Rounded-o.Offset {
		a.reason("A write past its end hits %s right behind it (%s, %s).", a.Above.Name, units.Bytes(a.Above.Requested),
			a.Above.Site)
	}
}

func behind(bytes int64) string {
	if bytes == 0 {
		return "right behind the end of"
	}
	return units.Bytes(bytes) + " behind the end of"
}

// near is how far behind a block a program that runs over its end may write.
const near = 1 << 20

// sayFree is for an address in a segment where no block lives.
func (a *Answer) sayFree() {
	switch {
	case a.last != nil:
		a.Headline = fmt.Sprintf("%s is free: %s had it last, which %s and was freed %s.", a.Address, a.last.Name,
			attribution.Allocated(a.last.Site), a.freed(a.last))
		a.reason("Using %s now is a use after free. The memory is still reserved, so that the device does not notice.",
			a.last.Name)
	case a.traced:
		a.Headline = fmt.Sprintf("%s is free: it is in a segment, and no block had it so far in this trace.", a.Address)
	default:
		a.Headline = fmt.Sprintf("%s is free: it is in a segment, and no block is there.", a.Address)
	}
	if a.Below != nil && a.Below.Distance < near {
		a.reason("It lies %s %s (%s, %s), the next live block below.", behind(a.Below.Distance),
			a.Below.Name, units.Bytes(a.Below.Requested), a.Below.Site)
	}
	a.sayNext()
}

// sayUnreserved is for an address in no segment.
func (a *Answer) sayUnreserved() {
	what := fmt.Sprintf("%s is not reserved by PyTorch's allocator on GPU %d", a.Address, a.Device)
	var gone, later *Segment
	for i := range a.Segments {
		seg := &a.Segments[i]
		switch {
		case seg.To != nil && *seg.To <= a.Event:
			gone = seg
		case seg.From > a.Event && later == nil:
			later = seg
		}
	}
	switch {
	case a.Host != nil:
		a.Headline = fmt.Sprintf("%s is pinned host memory, not memory of a GPU: byte %s of a block of %s.", a.Address,
			units.Count(int64(a.addr-a.Host.addr)), units.Bytes(a.Host.Size))
		return
	case gone != nil:
		a.Headline = fmt.Sprintf("%s: its segment at %s (%s) was released at event %s.", what, gone.Address,
			units.Bytes(gone.Size), units.Count(*gone.To))
		if a.last != nil {
			a.reason("%s had it last, which %s and was freed %s: using it now is an illegal memory access.", a.last.Name,
				attribution.Allocated(a.last.Site), a.freed(a.last))
		}
	case later != nil:
		a.Headline = fmt.Sprintf("%s yet: its segment at %s comes at event %s.", what, later.Address,
			units.Count(later.From))
	default:
		a.Headline = what + ", and no segment of the file ever had it."
		a.reason("It belongs to something else (a library, another process, the host), or it was computed wrongly.")
	}
	if a.nearest != nil {
		end := a.nearest.addr + uint64(a.nearest.Size)
		a.reason("The segment below it, at %s (%s), ends %s before it.", a.nearest.Address, units.Bytes(a.nearest.Size),
			units.Bytes(int64(a.addr-end)))
	}
	a.sayNext()
}

func (a *Answer) sayNext() {
	if a.next != nil {
		a.reason("Later, %s gets it, which %s (event %s).", a.next.Name, attribution.Allocated(a.next.Site),
			units.Count(a.next.Born))
	}
}

// freed says when and where a block was freed.
func (a *Answer) freed(o *Owner) string {
	event, time := o.Freed, o.FreedTime
	if o.FreeRequested != nil {
		event, time = o.FreeRequested, o.FreeRequestedTime
	}
	if event == nil {
		return "at an unknown moment"
	}
	s := a.At(*event, time)
	if o.FreeSite != "" {
		s += " by " + o.FreeSite
	}
	return s
}

// Others says in words which blocks begin at the address.
func (a *Answer) Others() string {
	n := 0
	for i := range a.Owners {
		if o := &a.Owners[i]; o.Offset == 0 {
			n = max(n, int(o.Generation)+1)
		}
	}
	switch n {
	case 0:
		return "no block of the file begins there"
	case 1:
		return "the only one that begins there is number 0"
	}
	return fmt.Sprintf("those that begin there have the numbers 0 to %d", n-1)
}
