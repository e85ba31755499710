package attach

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// memory is that of another process.
type memory interface {
	// read fills p with what is at an address, or fails.
	read(at uint64, p []byte) error
	write(at uint64, p []byte) error
}

// The runtime state of CPython begins with a table that tells debuggers where its parts are: _Py_DebugOffsets in
// Include/internal/pycore_debug_offsets.h. Up to here the tables of the versions in layouts agree.
const (
	atVersion      = 8 // PY_VERSION_HEX
	atFreeThreaded = 16
	atRuntimeSize  = 24
	atFinalizing   = 32 // of the runtime state
	atHead         = 40 // its newest interpreter
	atInterpSize   = 48
	atInterpID     = 56 // of an interpreter
	atInterpNext   = 64
	atThreadsMain  = 80 // its main thread
	atThreadSize   = 176
	atThreadInterp = 200 // of a thread
)

// cookie is what the table begins with.
const cookie = "xdebugpy"

// layouts are the versions whose tables are known, by the upper half of PY_VERSION_HEX: how large the table is, and
// where in it debugger_support is (PEP 768). Each was compared with the header of the release and tried.
var layouts = map[uint32]struct{ size, support int }{
	0x030e: {760, 712}, // 3.14
	0x030f: {888, 840}, // 3.15
}

// Bits of a thread's eval_breaker in all of layouts (Include/internal/pycore_ceval.h). Any of them makes the
// interpreter look for a script. These two make it look for signals and pending calls, too, so that none is lost if it
// sets the same bits while we do; CPython's own sys.remote_exec sets another, and may lose some.
const signalsPending, callsToDo = 1 << 1, 1 << 2

// final is the level in PY_VERSION_HEX of what is no pre-release.
const final = 0xf

// python is an interpreter in another process.
type python struct {
	mem     memory
	runtime uint64 // address of the runtime state
	version uint32 // PY_VERSION_HEX
	thread  uint64 // address of the main thread's state
	breaker uint64 // address of its eval_breaker
	pending uint64 // address of debugger_pending_call
	script  uint64 // address of debugger_script_path
	longest int    // a path takes up there, with a zero behind
}

// release is a version in words: 3.14.8.
func release(version uint32) string {
	return fmt.Sprintf("%d.%d.%d", version>>24, version>>16&255, version>>8&255)
}

// findPython looks for the interpreter in what the process may write of its files. No file is read: that of a process
// in a container is somebody else's, and that of a long run may have been replaced.
func findPython(mem memory, maps []mapping) (*python, error) {
	left := uint64(most)
	for _, byName := range []bool{true, false} {
		for _, m := range maps {
			if !m.writable || isPython(m.file) != byName || m.to-m.from > left {
				continue
			}
			left -= m.to - m.from
			at, err := findCookie(mem, m)
			if err != nil {
				return nil, err
			}
			if at == 0 {
				continue
			}
			return openPython(mem, at)
		}
	}
	if v := nameOfPython(maps); v != "" {
		return nil, &Error{Kind: Version, what: "Python " + v + " cannot be asked to run a script; 3.14 and 3.15 can"}
	}
	return nil, &Error{Kind: NotPython, what: "it is no Python program"}
}

// findCookie is the address of a table in a mapping, 0 if there is none.
func findCookie(mem memory, m mapping) (uint64, error) {
	buf := make([]byte, min(m.to-m.from, 1<<20))
	for at := m.from; at < m.to; at += uint64(len(buf)) {
		buf = buf[:min(m.to-at, uint64(len(buf)))]
		if err := mem.read(at, buf); err != nil {
			if errors.Is(err, errUnmapped) {
				return 0, nil // unmapped meanwhile
			}
			return 0, err
		}
		for i := 0; ; i++ { // mappings begin at pages, and the table is aligned
			j := bytes.Index(buf[i:], []byte(cookie))
			if j < 0 {
				break
			}
			if i += j; i%8 == 0 {
				return at + uint64(i), nil
			}
		}
	}
	return 0, nil
}

// errUnmapped is the error of reading where nothing is.
var errUnmapped = errors.New("no memory at this address")

// openPython reads the table at an address, and checks all that a wrong write could come from.
func openPython(mem memory, at uint64) (*python, error) {
	head := make([]byte, atFreeThreaded+8)
	if err := mem.read(at, head); err != nil {
		return nil, err
	}
	hex := binary.LittleEndian.Uint64(head[atVersion:])
	p := &python{mem: mem, runtime: at, version: uint32(hex)}
	layout, ok := layouts[p.version>>16]
	switch free := binary.LittleEndian.Uint64(head[atFreeThreaded:]); {
	case hex>>32 != 0:
		return nil, &Error{Kind: Version, what: "its Python has a version that makes no sense"}
	case !ok:
		return nil, &Error{Kind: Version,
			what: "Python " + release(p.version) + " cannot be asked to run a script; 3.14 and 3.15 can"}
	case p.version>>4&15 != final:
		return nil, &Error{Kind: Version, what: "its Python is a pre-release of " + release(p.version) +
			", and those change their memory layout"}
	case free != 0:
		return nil, &Error{Kind: Version, what: "its Python " + release(p.version) +
			" has no global lock (free-threaded), and the recorder needs one"}
	}
	table := make([]byte, layout.size)
	if err := mem.read(at, table); err != nil {
		return nil, err
	}
	support := layout.support
	o := offsets{table: table}
	o.check(atRuntimeSize, 1<<26, atFinalizing, atHead)
	o.check(atInterpSize, 1<<26, atInterpID, atInterpNext, atThreadsMain, support+16)
	o.check(atThreadSize, 1<<20, atThreadInterp, support, support+8)
	size := o.at(support + 40)
	room := o.at(atThreadSize) - o.at(support+8) // no less than 8: checked
	if pending := o.at(support + 24); !o.bad && (size < 64 || size > 4096 || pending > room-4 ||
		o.at(support+32) > room || size > room-o.at(support+32) || pending%4 != 0) {
		o.bad = true
	}
	if o.bad {
		return nil, &Error{Kind: Version, what: "its Python " + release(p.version) +
			" does not look like the one that python.org released"}
	}
	p.longest = int(size)
	return p, p.find(o)
}

// find follows the pointers from the runtime state to the main thread of the main interpreter, the one with the number
// 0, which PyTorch runs in.
func (p *python) find(o offsets) error {
	m := p.mem
	var err error
	word := func(at uint64) uint64 {
		var b [8]byte
		if err == nil {
			err = m.read(at, b[:])
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	ending := word(p.runtime + o.at(atFinalizing))
	interp := word(p.runtime + o.at(atHead))
	main := false
	for i := 0; i < 1000 && interp != 0 && err == nil && !main; i++ { // newest first
		if main = word(interp+o.at(atInterpID)) == 0; !main {
			interp = word(interp + o.at(atInterpNext))
		}
	}
	if err != nil {
		return err
	}
	if !main || ending != 0 {
		return &Error{Kind: Ended, what: "its interpreter is starting or ending"}
	}
	support := layouts[p.version>>16].support
	enabled := uint32(word(interp + o.at(support+16)))
	p.thread = word(interp + o.at(atThreadsMain))
	if err != nil {
		return err
	}
	if enabled != 1 {
		return &Error{Kind: Disabled, what: "remote debugging is turned off in it, by PYTHON_DISABLE_REMOTE_DEBUG or " +
			"-X disable_remote_debug"}
	}
	if p.thread == 0 || word(p.thread+o.at(atThreadInterp)) != interp {
		if err != nil {
			return err
		}
		return &Error{Kind: Ended, what: "its interpreter is starting or ending"}
	}
	p.breaker = p.thread + o.at(support)
	base := p.thread + o.at(support+8)
	p.pending, p.script = base+o.at(support+24), base+o.at(support+32)
	return nil
}

// offsets is a table of them.
type offsets struct {
	table []byte
	bad   bool
}

func (o *offsets) at(i int) uint64 { return binary.LittleEndian.Uint64(o.table[i:]) }

// check notes if a structure, whose size is in the table, is not as it can be, or a field is not within it.
func (o *offsets) check(size int, most uint64, fields ...int) {
	n := o.at(size)
	o.bad = o.bad || n < 64 || n > most
	for _, f := range fields {
		at := o.at(f)
		o.bad = o.bad || at%4 != 0 || at > n-8 || n < 8
	}
}

// ask has the main thread run a script as soon as it is between two instructions.
func (p *python) ask(script string) error {
	if len(script)+1 > p.longest {
		return &Error{Kind: Failed, what: fmt.Sprintf("the path of the script, %s, is longer than the %d bytes that "+
			"Python takes", script, p.longest-1)}
	}
	waiting, err := p.waiting()
	if err != nil {
		return err
	}
	if waiting {
		return &Error{Kind: Busy, what: "another debugger has asked it to run a script, which has not begun yet"}
	}
	if err := p.mem.write(p.script, append([]byte(script), 0)); err != nil {
		return err
	}
	if err := p.mem.write(p.pending, []byte{1, 0, 0, 0}); err != nil {
		return err
	}
	var bits [1]byte // no more than the byte with the bits: above it are others' numbers
	if err := p.mem.read(p.breaker, bits[:]); err != nil {
		return err
	}
	bits[0] |= signalsPending | callsToDo
	return p.mem.write(p.breaker, bits[:])
}

// waiting reports whether a script was asked for that has not begun.
func (p *python) waiting() (bool, error) {
	var b [4]byte
	err := p.mem.read(p.pending, b[:])
	return b != [4]byte{}, err
}

// withdraw takes back what ask has asked for, if it still waits.
func (p *python) withdraw() error {
	now, err := openPython(p.mem, p.runtime)
	if err != nil {
		return err
	}
	if now.thread != p.thread { // another program in the same process
		return nil
	}
	if waiting, err := p.waiting(); err != nil || !waiting {
		return err
	}
	return p.mem.write(p.pending, make([]byte, 4))
}
