package attach

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fake is the memory of a made-up process: one stretch from an address on.
type fake struct {
	base   uint64
	data   []byte
	writes []uint64 // where to
}

func (f *fake) at(at uint64, n int) ([]byte, error) {
	if at < f.base || at-f.base > uint64(len(f.data)) || uint64(len(f.data))-(at-f.base) < uint64(n) {
		return nil, errUnmapped
	}
	return f.data[at-f.base:][:n], nil
}

func (f *fake) read(at uint64, p []byte) error {
	b, err := f.at(at, len(p))
	copy(p, b)
	return err
}

func (f *fake) write(at uint64, p []byte) error {
	b, err := f.at(at, len(p))
	copy(b, p)
	f.writes = append(f.writes, at)
	return err
}

func (f *fake) put(at, v uint64) { binary.LittleEndian.PutUint64(f.data[at-f.base:], v) }

// Where the parts of the made-up process are.
const (
	fakeBase   = 0x10000
	fakeTable  = fakeBase + 0x100
	fakeMain   = fakeBase + 0x2000 // interpreters
	fakeSub    = fakeBase + 0x3000
	fakeThread = fakeBase + 0x4000
)

// process makes one with the runtime state of a version. Of its two interpreters the newer is not the main one.
func fakeProcess(version uint64) *fake {
	f := &fake{base: fakeBase, data: make([]byte, 0x6000)}
	copy(f.data[fakeTable-fakeBase:], cookie)
	set := func(field int, v uint64) { f.put(fakeTable+uint64(field), v) }
	set(atVersion, version)
	set(atRuntimeSize, 0x1800)
	set(atFinalizing, 0x1000)
	set(atHead, 0x1008)
	set(atInterpSize, 0x800)
	set(atInterpID, 0x10)
	set(atInterpNext, 0x18)
	set(atThreadsMain, 0x20)
	set(atThreadSize, 0x600)
	set(atThreadInterp, 0x10)
	support := layouts[uint32(version)>>16].support
	for i, v := range []uint64{0x18, 0x200, 0x30, 0, 4, 512} {
		set(support+8*i, v)
	}
	f.put(fakeTable+0x1008, fakeSub)
	f.put(fakeSub+0x10, 1)
	f.put(fakeSub+0x18, fakeMain)
	f.put(fakeMain+0x20, fakeThread)
	f.put(fakeMain+0x30, 1)
	f.put(fakeThread+0x10, fakeMain)
	f.put(fakeThread+0x18, 0xabcdef0000000001) // instrumentation version, and a request to drop the lock
	return f
}

func fakeMaps() []mapping {
	return []mapping{
		{0x1000, 0x2000, true, "/lib/libc.so.6"}, // of which nothing can be read
		{fakeBase, fakeBase + 0x6000, true, "/usr/bin/python3.14 (deleted)"},
	}
}

func TestAsk(t *testing.T) {
	for _, version := range []uint64{0x030e08f0, 0x030f00f0} {
		f := fakeProcess(version)
		p, err := findPython(f, fakeMaps())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ask("/tmp/x/script.py"); err != nil {
			t.Fatal(err)
		}
		if got, _ := f.at(fakeThread+0x204, 17); string(got) != "/tmp/x/script.py\x00" {
			t.Errorf("the path is %q", got)
		}
		if got := binary.LittleEndian.Uint64(f.data[fakeThread+0x18-fakeBase:]); got != 0xabcdef0000000007 {
			t.Errorf("eval_breaker is %#x", got)
		}
		if want := []uint64{fakeThread + 0x204, fakeThread + 0x200, fakeThread + 0x18}; !slices.Equal(f.writes, want) {
			t.Errorf("written to %#x", f.writes)
		}
		var e *Error
		if err := p.ask("/other"); !errors.As(err, &e) || e.Kind != Busy {
			t.Errorf("a second request: %v", err)
		}
		if waiting, err := p.waiting(); !waiting || err != nil {
			t.Error("no request waits")
		}
		if err := p.withdraw(); err != nil {
			t.Error(err)
		}
		if waiting, err := p.waiting(); waiting || err != nil {
			t.Error("the request was not withdrawn")
		}
		if err := p.ask("/" + strings.Repeat("x", 511)); err == nil {
			t.Error("a path that is too long")
		}
		f.writes = nil
		f.put(fakeThread+0x10, fakeSub) // no thread of this interpreter any more
		if err := p.withdraw(); err == nil || f.writes != nil {
			t.Errorf("withdrawn from what is no thread any more: %v", err)
		}
	}
}

func TestRefusesPython(t *testing.T) {
	support := uint64(layouts[0x030e].support)
	for _, c := range []struct {
		what  string
		put   map[uint64]uint64
		want  Kind
		words string
	}{
		{"3.13", map[uint64]uint64{fakeTable + atVersion: 0x030d05f0}, Version, "Python 3.13.5 cannot"},
		{"3.16", map[uint64]uint64{fakeTable + atVersion: 0x031000f0}, Version, "Python 3.16.0 cannot"},
		{"a beta", map[uint64]uint64{fakeTable + atVersion: 0x030e00b2}, Version, "pre-release of 3.14.0"},
		{"a candidate", map[uint64]uint64{fakeTable + atVersion: 0x030f00c1}, Version, "pre-release of 3.15.0"},
		{"free-threaded", map[uint64]uint64{fakeTable + atFreeThreaded: 1}, Version, "free-threaded"},
		{"no version", map[uint64]uint64{fakeTable + atVersion: 1 << 40}, Version, "no sense"},
		{"a field outside", map[uint64]uint64{fakeTable + support: 0x600}, Version, "does not look like"},
		{"a path outside", map[uint64]uint64{fakeTable + support + 32: 0x5f0}, Version, "does not look like"},
		{"a huge field", map[uint64]uint64{fakeTable + support + 8: 1<<64 - 8}, Version, "does not look like"},
		{"a huge structure", map[uint64]uint64{fakeTable + atThreadSize: 1 << 40}, Version, "does not look like"},
		{"turned off", map[uint64]uint64{fakeMain + 0x30: 0}, Disabled, "PYTHON_DISABLE_REMOTE_DEBUG"},
		{"ending", map[uint64]uint64{fakeTable + 0x1000: 1}, Ended, "starting or ending"},
		{"no thread", map[uint64]uint64{fakeMain + 0x20: 0}, Ended, "starting or ending"},
		{"another's thread", map[uint64]uint64{fakeThread + 0x10: fakeSub}, Ended, "starting or ending"},
		{"interpreters in a ring", map[uint64]uint64{fakeSub + 0x18: fakeSub}, Ended, "starting or ending"},
		{"no cookie", map[uint64]uint64{fakeTable: 0}, Version, "Python 3.14 cannot"},
	} {
		f := fakeProcess(0x030e08f0)
		for at, v := range c.put {
			f.put(at, v)
		}
		p, err := findPython(f, fakeMaps())
		var e *Error
		if p, ok := err.(*Error); ok {
			e = p
		}
		if e == nil || e.Kind != c.want || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %+v %v", c.what, p, err)
		}
		if f.writes != nil {
			t.Errorf("%s: written to %#x", c.what, f.writes)
		}
	}
}

func TestMaps(t *testing.T) {
	got := parseMaps([]byte(`00400000-00420000 r--p 00000000 fe:00 123                      /usr/bin/python3.14
00b94000-00be2000 rw-p 00794000 fe:00 123                                /a b/python3.14 (deleted)
7f00-7e00 rw-p 0 0:0 0 /backwards
7ffc0000-7ffe0000 rw-p 00000000 00:00 0                                  [stack]
7f000-7f100 rw-p 00000000 00:00 0
nonsense
`))
	want := []mapping{{0x400000, 0x420000, false, "/usr/bin/python3.14"},
		{0xb94000, 0xbe2000, true, "/a b/python3.14 (deleted)"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if v := nameOfPython(got); v != "3.14" {
		t.Errorf("version %q", v)
	}
}

// FuzzPython holds that no table and no memory of another process makes anything be written outside of the thread that
// the table tells of, nor panics.
func FuzzPython(f *testing.F) {
	for _, version := range []uint64{0x030e08f0, 0x030f00f0, 0x030d00f0} {
		f.Add(fakeProcess(version).data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &fake{base: fakeBase, data: bytes.Clone(data)}
		p, err := findPython(m, []mapping{{fakeBase, fakeBase + uint64(len(data)), true, "/python"}})
		if err != nil {
			return
		}
		if len(m.writes) > 0 {
			t.Fatal("written while looking")
		}
		if err := p.ask("/tmp/script.py"); err == nil {
			p.withdraw()
		}
		for _, at := range m.writes {
			if at < p.thread || at >= p.thread+1<<20 {
				t.Fatalf("written to %#x, and the thread is at %#x", at, p.thread)
			}
		}
	})
}

func FuzzMaps(f *testing.F) {
	f.Add([]byte("00400000-00420000 rw-p 00000000 fe:00 123   /usr/bin/python3.14\n"))
	f.Add([]byte("-"))
	f.Fuzz(func(t *testing.T, data []byte) {
		maps := parseMaps(data)
		for _, m := range maps {
			if m.to <= m.from || m.file == "" {
				t.Errorf("%+v", m)
			}
		}
		nameOfPython(maps)
		findPython(&fake{}, maps)
	})
}
