package oomlog

import (
	"bytes"
	"strconv"
)

const (
	behind = 512  // what may stand between the start of a message's line and an anchor
	ahead  = 8192 // what a message may take after its anchor, decoration included
)

// finder recognizes messages around anchors. It keeps buffers between calls.
type finder struct {
	before, after cleaned
	squeezed      []byte
	from          []int32
}

// find looks for a message around an anchor at raw[at], where raw begins at most behind bytes
// before it and ends at most ahead bytes after it, or earlier only where the log, or what
// belongs to an earlier message, does. It returns where in raw the message begins and ends.
func (f *finder) find(raw []byte, at int, kind anchor) (m Message, start, end int, ok bool) {
	switch kind {
	case anchorMemory:
		word := raw[at+len("memory"):]
		switch {
		case bytes.HasSuffix(raw[:at], []byte("OutOf")):
			return f.class(raw, at, word)
		case bytes.HasSuffix(raw[:at], []byte("cudaError")):
			return f.code(raw, at-len("cudaError"), at+len("MemoryAllocation"),
				bytes.HasPrefix(word, []byte("Allocation")))
		}
		return f.head(raw, at)
	case anchorCapacity:
		return f.headless(raw, at)
	}
	start = at
	for start > 0 && isWord(raw[start-1]) {
		start--
	}
	end = min(len(raw), at+len("_FAILED"))
	return f.code(raw, start, end,
		string(raw[at:end]) == "_FAILED" && bytes.HasSuffix(raw[:at], []byte("_STATUS_ALLOC")))
}

// head reads a message with "memory" as the last word of its head.
func (f *finder) head(raw []byte, at int) (m Message, start, end int, ok bool) {
	const most = 256 // for a head with its decoration
	low := max(0, at-most)
	f.squeeze(raw[low:at])
	best := -1
	for i := range heads {
		n := len(heads[i].text)
		if !bytes.HasSuffix(f.squeezed, []byte(heads[i].text)) || best >= 0 && len(heads[best].text) > n {
			continue
		}
		if k := len(f.squeezed) - n; k == 0 || !isWord(f.squeezed[k-1]) || f.from[k] > f.from[k-1]+1 {
			best = i
		}
	}
	if best < 0 {
		return m, 0, 0, false
	}
	h := &heads[best]
	start = low + int(f.from[len(f.squeezed)-len(h.text)])
	if h.form == formAsync {
		k := bytes.LastIndex(f.squeezed, []byte("allocationondevice"))
		if k < 0 || len(f.squeezed)-k > 60 {
			return m, 0, 0, false
		}
		start = low + int(f.from[k])
	}
	class, prefix := f.context(raw, start)
	var p parser
	for _, most := range widths {
		m = begin(h.backend, class)
		p = f.parser(&m, raw[start:min(len(raw), at+most)], prefix)
		f.past(&p, at, start)
		switch h.form {
		case formAsync:
			p.i = 0
			p.lit("allocationondevice")
			ok = p.async(true)
		case formAllocator:
			ok = p.allocator(class == "" || !p.stops())
		case formMPS:
			ok = p.mps(class == "" || !p.stops())
		case formCPU:
			ok = p.cpu()
		case formOutside:
			m.Family, p.complete = Outside, true
			ok = !h.loose || p.stops() && (class != "" || !p.quoted() && introduced(f.before.text))
		}
		if !ok {
			return m, 0, 0, false
		}
		if p.i+nearEnd < len(p.text) {
			break
		}
	}
	return m, start, start + f.close(&p, prefix), true
}

// widths are how far behind an anchor a message is first looked for, and then, when it does
// not end well before that, in full.
var widths = [...]int{512, ahead}

const nearEnd = 128

// class reads family H behind the name of its exception: ComfyUI prints no more of it than
// "Allocation on device".
func (f *finder) class(raw []byte, at int, word []byte) (m Message, start, end int, ok bool) {
	if !bytes.HasPrefix(word, []byte("Error")) {
		return m, 0, 0, false
	}
	start = at + len("MemoryError")
	p := f.parser(&m, raw[start:min(len(raw), start+256)], nil)
	if p.any(":", "('", "(\"") < 0 {
		return m, 0, 0, false
	}
	head := p.i
	if !p.lit("allocationondevice") {
		return m, 0, 0, false
	}
	for lower(p.text[head]) != 'a' { // what stands before it is white
		head++
	}
	start += int(f.after.from[head])
	class, prefix := f.context(raw, start)
	m = begin("cuda", class)
	p = f.parser(&m, raw[start:], prefix)
	p.lit("allocationondevice")
	p.async(false)
	return m, start, start + f.close(&p, prefix), true
}

// code reads an error code, raw[start:end], that is a message when an exception or a failed
// call names it.
func (f *finder) code(raw []byte, start, end int, whole bool) (m Message, _, _ int, ok bool) {
	if !whole {
		return m, 0, 0, false
	}
	class, prefix := f.context(raw, start)
	p := f.parser(&m, raw[start:min(len(raw), end+128)], prefix)
	p.complete = true
	f.past(&p, end-1, start)
	told := bytes.HasSuffix(bytes.ToLower(bytes.TrimRight(f.before.text, " \n'\"(")), []byte("error:"))
	mark := p.i
	if !p.lit(":outofmemory") && !p.lit("(outofmemory)") && !p.lit("whencalling") {
		p.i = mark
		if !told && class == "" {
			return m, 0, 0, false
		}
	}
	if k := bytes.IndexByte(p.text[p.i:min(len(p.text), p.i+80)], '`'); k >= 0 && k < 2 { // `cublasCreate(handle)`
		if n := bytes.IndexAny(p.text[p.i+k+1:], "`\n"); n >= 0 {
			p.i += k + n + 2
		}
	}
	m = begin("cuda", class)
	m.Family = Outside
	return m, start, start + f.close(&p, prefix), true
}

// headless reads a message whose head was cut away, from its device on.
func (f *finder) headless(raw []byte, at int) (m Message, start, end int, ok bool) {
	const most = 200 // for a device and its total with decoration
	low := max(0, at-most)
	f.squeeze(raw[low:at])
	if !bytes.HasSuffix(f.squeezed, []byte("total")) {
		return m, 0, 0, false
	}
	k, backend := -1, "cuda"
	for _, name := range []string{"gpu", "npu", "xpu"} {
		k = max(k, bytes.LastIndex(f.squeezed, []byte(name)))
	}
	if k < 0 || len(f.squeezed)-k > 40 {
		return m, 0, 0, false
	}
	if name := string(f.squeezed[k : k+3]); name != "gpu" {
		backend = name
	}
	if k > 0 && f.squeezed[k-1] == '(' {
		k--
	}
	start = low + int(f.from[k])
	class, prefix := f.context(raw, start)
	var p parser
	for _, most := range widths {
		m = begin(backend, class)
		p = f.parser(&m, raw[start:min(len(raw), at+most)], prefix)
		if p.body(); !m.Total.Known() || p.i+nearEnd < len(p.text) {
			break
		}
	}
	if !m.Total.Known() || !m.Free.Known() && !m.Allocated.Known() {
		return m, 0, 0, false
	}
	end = start + f.close(&p, prefix)
	m.Cut = true
	return m, start, end, end > at
}

// parser reads m from raw, whose lines begin with prefix.
func (f *finder) parser(m *Message, raw, prefix []byte) parser {
	f.after.read(raw, prefix)
	return parser{cursor: cursor{text: f.after.text}, m: m}
}

// squeeze cleans raw and takes away blanks and capitals.
func (f *finder) squeeze(raw []byte) {
	f.before.read(raw, repeated(raw))
	f.squeezed, f.from = f.squeezed[:0], f.from[:0]
	for i, b := range f.before.text {
		if !blank(b) {
			f.squeezed, f.from = append(f.squeezed, lower(b)), append(f.from, f.before.from[i])
		}
	}
}

// past moves p behind the anchor whose first byte is raw[at], given that the text begins at start.
func (f *finder) past(p *parser, at, start int) {
	for p.i < len(p.text) && int(f.after.from[p.i])+start < at {
		p.i++
	}
	for p.i < len(p.text) && isWord(p.text[p.i]) {
		p.i++
	}
}

// close completes a message that p has read up to its end, and returns its length.
func (f *finder) close(p *parser, prefix []byte) int {
	m := p.m
	m.Cut, m.Text = !p.complete, flat(p.text[:p.i])
	m.derive()
	g := ranks.FindSubmatch(prefix)
	if g == nil {
		g = srunLabel.FindSubmatch(prefix)
	}
	if g != nil {
		m.Rank, _ = strconv.Atoi(string(g[1]))
	}
	if p.i < len(f.after.from) {
		return int(f.after.from[p.i])
	}
	return int(f.after.last)
}
