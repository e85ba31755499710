package oomlog

import (
	"math"
	"strings"
)

// parser fills a Message from cleaned text that begins with it.
type parser struct {
	cursor
	m        *Message
	complete bool // the last figure of the form was there
}

// allocator reads what follows "CUDA out of memory" (families A to G, I, J and L). strict
// asks for more than these words. It reports whether this is a message.
func (p *parser) allocator(strict bool) bool {
	p.lit(".")
	switch {
	case p.lit("triedtoallocatemorethan1eb"):
		p.lit("memory")
		p.lit(".")
		p.m.Family, p.complete = Exabyte, true
		return true
	case p.lit("allocationwaspreemptivelyrejected"):
		p.m.Family = Rejected
		p.lit("becauseitwouldexceedper_process_memory_fractionlimit.")
		if p.lit("requestedsize:") {
			p.m.Tried, p.complete = p.size()
		}
		return p.complete || !strict
	case p.lit("triedtoallocate"):
		var ok bool
		if p.m.Tried, ok = p.size(); !ok {
			return !strict
		}
	case strict:
		return false
	}
	p.lit(".")
	p.body()
	return true
}

// body reads a message from its device on: "(GPU 0; 10.92 GiB total capacity; ...)", or "GPU 0 has a total
// capacity of ...". Of these sentences, clauses may come in any order and with "..." between them, since
// people shorten what they quote.
func (p *parser) body() {
	start := p.i
	if p.lit("(") && p.device() {
		known := true
		for known && p.lit(";") {
			known = p.figure(true)
		}
		if known {
			p.lit(")")
			p.lit(".")
		}
	} else {
		p.i = start
		for p.clause() {
			for p.any(".", ",", ";", "and") >= 0 {
			}
		}
	}
	p.hint()
	p.family()
}

func (p *parser) device() bool {
	if p.any("gpu", "npu", "xpu") < 0 {
		return false
	}
	n, ok := p.whole()
	if ok && p.i < len(p.text) { // else digits may have been cut
		p.m.Device = n
	}
	return ok
}

// field is a size with the label in front of it.
type field struct {
	label string
	to    *Size
}

// fields reads fields one after the other, as far as they come in that order, and returns how many.
func (p *parser) fields(fields ...field) int {
	for n, f := range fields {
		ok := p.lit(f.label)
		if ok {
			*f.to, ok = p.size()
		}
		if !ok {
			return n
		}
	}
	return len(fields)
}

// clause reads one clause of a sentence.
func (p *parser) clause() bool {
	m, start := p.m, p.i
	switch {
	case p.lit("ofwhich"):
		return p.told(&m.Free, "isfree")
	case p.lit("oftheallocatedmemory"):
		return p.told(&m.Allocated, "isallocatedbypytorch")
	case p.lit("includingnon-pytorchmemory,thisprocesshas"):
		return p.process(0)
	case p.lit("process"):
		if pid, _, ok := p.decimal(); ok && p.lit("has") {
			return p.process(int64(pid))
		}
	case p.device():
		if k := p.any("hasatotalcapacityof", "hasatotalcapactyof"); k >= 0 {
			var ok bool
			if m.Total, ok = p.size(); ok {
				m.Family = [...]Family{Capacity, Capacty}[k]
			}
			return ok
		}
	default:
		p.lit("with")
		if p.figure(false) {
			return true
		}
	}
	p.i = start
	return false
}

// figure reads a size with the words behind it, as they are in a list or in sentences.
func (p *parser) figure(listed bool) bool {
	m, start := p.m, p.i
	s, ok := p.size()
	for _, f := range []struct {
		listed bool
		label  string
		to     *Size
		last   bool // completes the message
	}{
		{true, "totalcapacity", &m.Total, false}, {true, "totalcapacty", &m.Total, false},
		{true, "alreadyallocated", &m.Allocated, false}, {true, "currentactive", &m.Active, false},
		{true, "free", &m.Free, false}, {true, "allowed", &m.Allowed, false},
		{true, "cached", &m.Unallocated, true}, {true, "reservedintotalbypytorch", &m.Reserved, true},
		{false, "allowed", &m.Allowed, false}, {false, "allocatedinprivatepools", &m.PrivatePools, false},
		{false, "isreservedbypytorchbutunallocated", &m.Unallocated, true},
	} {
		if !ok || f.listed != listed || !p.lit(f.label) {
			continue
		}
		*f.to = s
		p.complete = p.complete || f.last
		switch {
		case f.last && f.to == &m.Reserved:
			m.Family = Reserved
		case f.last && listed:
			m.Family = Cached
		}
		if f.to == &m.PrivatePools && p.lit("(e.g.,") {
			p.any("cudagraphs", "hipgraphs", "xpugraphs")
			p.lit(")")
		}
		return true
	}
	p.i = start
	return false
}

// told reads a size with what follows it; a cut end does not take the size away.
func (p *parser) told(to *Size, after string) bool {
	s, ok := p.size()
	if ok {
		*to = s
		ok = p.lit(after)
	}
	return ok
}

func (p *parser) process(pid int64) bool {
	s, ok := p.size()
	if !ok {
		return false
	}
	proc := Process{PID: pid, Used: s}
	if s.Bytes == math.MaxInt64 {
		proc.Used, proc.Unavailable = Size{}, true
	}
	const most = 1024 // on a device at once
	if len(p.m.Processes) < most {
		p.m.Processes = append(p.m.Processes, proc)
	}
	return p.lit("memoryinuse")
}

// hint reads which setting a message recommends.
func (p *parser) hint() {
	switch {
	case p.lit("ifreserved"):
		names := []string{"max_split_size_mb", "expandable_segments"}
		for start, i := p.i, p.i; i < min(len(p.text), start+200); i++ {
			p.i = i
			if k := p.any(names...); k >= 0 {
				p.m.Hint = names[k]
				p.lit(":true")
				p.lit("toavoidfragmentation.")
				return
			}
			p.i = start
		}
	case p.lit("pleaseuse"):
		p.lit("`")
		if p.lit("empty_cache") {
			p.m.Hint = "empty_cache"
		}
	}
}

// family decides on the form by all that was read.
func (p *parser) family() {
	m := p.m
	switch m.Backend {
	case "hip":
		m.Family = HIP
	case "xpu":
		m.Family = XPU
		p.complete = p.complete || m.Free.Known() && !m.Allocated.Known()
	case "npu":
		m.Family = NPU
	default:
		if m.Family == Reserved && (m.Hint != "" || m.Allowed.Known()) {
			m.Family = Hinted
		}
	}
}

// async reads family H from "Allocation on device" on.
func (p *parser) async(strict bool) bool {
	p.m.Family = Async
	if n, ok := p.whole(); ok {
		p.m.Device = n
	}
	if !p.lit("wouldexceedallowedmemory") {
		return !strict
	}
	p.lit(".")
	p.lit("(outofmemory)")
	p.fields(field{"currentlyallocated:", &p.m.Allocated}, field{"requested:", &p.m.Tried},
		field{"devicelimit:", &p.m.Total}, field{"free(accordingtocuda):", &p.m.Free},
		field{"pytorchlimit(setbyuser-suppliedmemoryfraction):", &p.m.Allowed})
	p.complete = p.m.Allowed.Known()
	if p.m.Allowed.Bytes == math.MaxInt64 { // no fraction is set
		p.m.Allowed = Size{}
	}
	return true
}

// mps reads family K from behind "MPS backend out of memory".
func (p *parser) mps(strict bool) bool {
	m, start := p.m, p.i
	m.Family = MPS
	n := p.fields(field{"(mpsallocated:", &m.Allocated}, field{",otherallocations:", &m.Other},
		field{",maxallowed:", &m.Allowed})
	if n == 0 && (strict || p.i == start) {
		return !strict
	}
	p.lit("unlimited")
	p.lit(")")
	p.lit(".")
	if p.lit("triedtoallocate") {
		m.Tried, p.complete = p.size()
		if p.lit("on") && p.any("shared", "private") >= 0 {
			p.lit("pool.")
		}
	}
	return true
}

// cpu reads what follows "DefaultCPUAllocator: can't allocate memory".
func (p *parser) cpu() bool {
	p.m.Family = Outside
	if p.lit(":youtriedtoallocate") {
		p.m.Tried, p.complete = p.size()
	}
	return p.complete
}

// flat puts cleaned text on one line.
func flat(text []byte) string {
	const most = 2048
	s := strings.ToValidUTF8(string(text[:min(len(text), most)]), "")
	return strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
}
