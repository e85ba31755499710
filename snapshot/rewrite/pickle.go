package rewrite

import (
	"io"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// item is a value on the stack or in the memo: what it is in the lowest bits, above them its number in a table.
type item uint32

const (
	other item = iota // a number, or what has no texts of interest
	marked
	text // of pickler.lits
	box  // a container, of pickler.boxes
)

func (i item) is() item    { return i & 3 }
func (i item) number() int { return int(i >> 2) }

// lit is a text that the file has, and as what it was written.
type lit struct {
	was, now string
	spot     spot // where it was met last, and what became of it there
	kind     kind
	then     string
}

// kind is what decides what becomes of a text.
type kind uint8

const (
	unmet kind = iota
	plain
	name // with the file of its frame
	file
)

const (
	asKey  = -1
	listed = -2
)

// place is that of a container.
type container struct {
	dict bool
	Place
}

// pickler rewrites one pickle. It keeps of the machine that a pickle is for no more than tells where a text stands.
type pickler struct {
	*from
	sink
	texts  *Texts
	stack  []item
	marks  []int
	memo   []item
	lits   []lit
	boxes  []container
	known  map[container]item
	same   map[met]int
	lately [2]lately
	kept   []byte
	latest struct { // the file of the frame at that place on the stack
		at   int
		file string
	}
}

// Pickle rewrites one pickle, of protocol 0 to 5, and what is behind it is left out. Frames of protocol 4, which say
// how long what follows is, are left out too: no reader needs them.
func Pickle(w io.Writer, r io.Reader, texts *Texts) error {
	p := &pickler{from: newFrom(r), sink: sink{w: w}, texts: texts, known: map[container]item{}, same: map[met]int{},
		boxes: make([]container, 1)} // the first is the top
	p.latest.at = -1
	for {
		done, err := p.step()
		if err == nil && !done && len(p.out) < flushAt {
			continue
		}
		if done || err != nil {
			p.settle()
		}
		if failed := p.flush(done || err != nil); failed != nil {
			return failed
		}
		if done && texts.Resized != nil {
			texts.Resized(p.offset(), p.total)
		}
		if done || err != nil {
			return err
		}
	}
}

// fixed is how many bytes are behind the opcode of a number or a constant.
func fixed(op byte) int {
	switch op {
	case 'K', 0x80:
		return 1
	case 'M':
		return 2
	case 'J':
		return 4
	case 'G':
		return 8
	}
	return 0
}

func (p *pickler) step() (done bool, err error) {
	op, err := p.byte()
	if err != nil {
		return false, p.cut(err)
	}
	switch op {
	case 0x8c, 'X', 0x8d, 'U', 'T', 'V', 'S', 'C', 'B', 0x8e, 0x96:
		return false, p.text(op)
	case 'N', 0x88, 0x89, 'J', 'K', 'M', 'G', 0x80:
		p.out = append(p.out, op)
		if n := fixed(op); n > 0 {
			b, err := p.take(uint64(n))
			if err != nil {
				return false, err
			}
			p.out = append(p.out, b...)
		}
		if op != 0x80 {
			return false, p.push(other)
		}
	case 'I', 'L', 'F':
		b, err := p.line()
		if err != nil {
			return false, err
		}
		if strings.Trim(string(b), "0123456789+-.eELnaifNI \t\r") != "" {
			return false, p.fault(snapshot.ErrCorrupt, "has a number with other characters")
		}
		p.out = append(append(append(p.out, op), b...), '\n')
		return false, p.push(other)
	case 0x8a, 0x8b:
		width := 1
		if op == 0x8b {
			width = 4
		}
		b, err := p.take(uint64(width))
		if err != nil {
			return false, err
		}
		p.out = append(append(p.out, op), b...)
		n := length(b)
		if n > 1<<10 {
			return false, p.fault(snapshot.ErrLimit, "has a number of %d bytes", n)
		}
		if b, err = p.take(n); err != nil {
			return false, err
		}
		p.out = append(p.out, b...)
		return false, p.push(other)
	case 0x95:
		_, err := p.take(8)
		return false, err
	case '.':
		p.out = append(p.out, op)
		return true, nil
	case 'h', 'j', 'g':
		return false, p.get(op)
	case 'q', 'r', 'p', 0x94:
		return false, p.put(op)
	case 'c':
		return false, p.global()
	default:
		return false, p.shape(op)
	}
	return false, nil
}

// length reads a length of up to 8 bytes, little endian.
func length(b []byte) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

// widths are the bytes of the lengths of texts.
var widths = map[byte]uint64{0x8c: 1, 'U': 1, 'C': 1, 'X': 4, 'T': 4, 'B': 4, 0x8d: 8, 0x8e: 8, 0x96: 8}

// text reads a text and writes what becomes of it.
func (p *pickler) text(op byte) error {
	var was string
	if op == 'V' || op == 'S' {
		b, err := p.line()
		if err != nil {
			return err
		}
		if was = string(b); op == 'S' {
			if was = strings.TrimSpace(was); len(was) < 2 || was[0] != was[len(was)-1] || was[0] != '\'' && was[0] != '"' {
				return p.fault(snapshot.ErrCorrupt, "has a STRING without quotes")
			}
			was = was[1 : len(was)-1]
		}
		was = unescape(was)
	} else {
		var n uint64
		switch op { // the usual ones first
		case 0x8c:
			b, err := p.byte()
			if err != nil {
				return p.cut(err)
			}
			n = uint64(b)
		default:
			b, err := p.take(widths[op])
			if err != nil {
				return err
			}
			n = length(b)
		}
		b, err := p.take(n)
		if err != nil {
			return err
		}
		was = string(b)
	}
	at := p.spot()
	number, again := p.same[met{was, at}]
	if !again {
		number = len(p.lits)
		p.lits = append(p.lits, lit{was: was})
		if number >= 1<<28 {
			return p.fault(snapshot.ErrLimit, "has too many texts")
		}
	}
	if p.meet(number, at); !again && p.lits[number].kind != name { // names may become several things
		p.same[met{was, at}] = number
	}
	return p.write(at, number, func(now string) []byte {
		p.lits[number].now = now
		return literal(op, now)
	})
}

// met is a text at a place.
type met struct {
	was string
	at  spot
}

// meet looks up what becomes of a text at a place.
func (p *pickler) meet(number int, at spot) {
	l := &p.lits[number]
	if l.kind != unmet && l.spot == at {
		return
	}
	l.spot = at
	switch full := p.place(at); {
	case isName(full):
		l.kind = name
	case isFile(full):
		l.kind, l.then = file, p.texts.Text(full, l.was)
	default:
		l.kind, l.then = plain, p.texts.Text(full, l.was)
	}
}

// write writes a text that stands at a spot and was met there: as says how, once it is known what it becomes.
func (p *pickler) write(at spot, number int, as func(now string) []byte) error {
	l := &p.lits[number]
	switch l.kind {
	case name:
		was := l.was
		fill := func(file string) []byte { return as(p.texts.Name(was, file)) }
		if owner := p.around(); p.latest.at == owner {
			p.out = append(p.out, fill(p.latest.file)...)
		} else {
			p.leave(owner, fill)
		}
	case file:
		p.latest.at, p.latest.file = p.around(), l.was
		if p.hole && p.owner == p.latest.at {
			p.close(l.was)
		}
		fallthrough
	default:
		p.out = append(p.out, as(l.then)...)
	}
	return p.push(item(number)<<2 | text)
}

func (p *pickler) push(v item) error {
	if len(p.stack) >= 4<<20 {
		return p.fault(snapshot.ErrLimit, "has more values on its stack than a snapshot")
	}
	p.stack = append(p.stack, v)
	return nil
}

// slot reads the number of a memo entry, and gives what is behind its opcode, which is valid until more is read.
func (p *pickler) slot(op byte) (n uint64, as []byte, err error) {
	switch op {
	case 'h', 'q':
		as, err = p.take(1)
	case 'j', 'r':
		as, err = p.take(4)
	case 0x94:
		return uint64(len(p.memo)), nil, nil
	default:
		b, err := p.line()
		if err != nil {
			return 0, nil, err
		}
		if n, err = strconv.ParseUint(string(b), 10, 31); err != nil {
			return 0, nil, p.fault(snapshot.ErrCorrupt, "has a memo entry without a number")
		}
		return n, append(b, '\n'), nil
	}
	return length(as), as, err
}

func (p *pickler) put(op byte) error {
	n, as, err := p.slot(op)
	switch {
	case err != nil:
		return err
	case len(p.stack) == 0:
		return p.fault(snapshot.ErrCorrupt, "stores a value that does not exist")
	case n > uint64(p.offset()):
		return p.fault(snapshot.ErrLimit, "memo index %d is too large for a file of this size", n)
	}
	for uint64(len(p.memo)) <= n {
		p.memo = append(p.memo, other)
	}
	p.memo[n] = p.stack[len(p.stack)-1]
	p.out = append(append(p.out, op), as...)
	return nil
}

// get writes a text anew where it becomes another than at the place where the file has it.
func (p *pickler) get(op byte) error {
	n, as, err := p.slot(op)
	if err != nil {
		return err
	}
	if n >= uint64(len(p.memo)) {
		return p.fault(snapshot.ErrCorrupt, "refers to memo entry %d, which does not exist", n)
	}
	v := p.memo[n]
	if v.is() != text {
		p.out = append(append(p.out, op), as...)
		return p.push(v)
	}
	as = append(p.kept[:0], as...) // spot may look ahead
	p.kept = as
	number, at := v.number(), p.spot()
	p.meet(number, at)
	if l := &p.lits[number]; l.kind == plain && l.then == l.now {
		p.out = append(append(p.out, op), as...)
		return p.push(v)
	}
	as = append([]byte{op}, as...)
	return p.write(at, number, func(now string) []byte {
		if p.lits[number].now == now {
			return as
		}
		return literal('X', now)
	})
}

// data are the globals that stand for data: what makes an empty dict, and the tag of torch.jit for typed containers.
var data = []string{"collections OrderedDict", "torch.jit._pickle restore_type_tag"}

// global admits what reads data.
func (p *pickler) global() error {
	module, err := p.line()
	if err != nil {
		return err
	}
	first := string(module)
	name, err := p.line()
	if err != nil {
		return err
	}
	return p.admit(first, string(name), []byte("c"+first+"\n"+string(name)+"\n"))
}

func (p *pickler) admit(module, name string, as []byte) error {
	for _, d := range data {
		if d == module+" "+name {
			p.out = append(p.out, as...)
			return p.push(other)
		}
	}
	return p.fault(snapshot.ErrRefused, "refused to copy a call of %.80q: snapshots contain only data", module+"."+name)
}

// pop takes n values off the stack.
func (p *pickler) pop(n int) error {
	floor := 0
	if len(p.marks) > 0 {
		floor = p.marks[len(p.marks)-1] + 1
	}
	if len(p.stack)-n < floor {
		return p.fault(snapshot.ErrCorrupt, "needs more values than there are")
	}
	p.stack = p.stack[:len(p.stack)-n]
	return nil
}

// toMark takes all off the stack down to the last mark, and that too.
func (p *pickler) toMark() error {
	if len(p.marks) == 0 {
		return p.fault(snapshot.ErrCorrupt, "has no MARK")
	}
	p.stack = p.stack[:p.marks[len(p.marks)-1]]
	p.marks = p.marks[:len(p.marks)-1]
	return nil
}

// open pushes a container that stands here.
func (p *pickler) open(dict bool) error {
	if p.latest.at == len(p.stack) {
		p.latest.at = -1
	}
	at := p.spotOf(true)
	if k := (opened{at, dict}); p.lately[dict2(dict)].opened != k || p.lately[dict2(dict)].as == 0 {
		p.lately[dict2(dict)] = lately{k, p.boxOf(container{dict, p.place(at)})}
	}
	return p.push(p.lately[dict2(dict)].as)
}

// opened is a container that begins at a spot.
type opened struct {
	at   spot
	dict bool
}

// lately is the last one, which the next mostly is like.
type lately struct {
	opened
	as item
}

func dict2(dict bool) int {
	if dict {
		return 1
	}
	return 0
}

// shape follows the opcodes that make containers.
func (p *pickler) shape(op byte) (err error) {
	if p.hole && len(p.stack) <= p.owner { // its frame ended
		p.close("")
	}
	p.out = append(p.out, op)
	switch op {
	case '(':
		if len(p.marks) >= mostDepth {
			return p.fault(snapshot.ErrLimit, "is nested too deep")
		}
		p.marks = append(p.marks, len(p.stack))
		return p.push(marked)
	case '}', ']', ')':
		return p.open(op == '}')
	case 's', 'a':
		err = p.pop(1 + int(op-'a')/int('s'-'a'))
	case 'u', 'e', '1':
		err = p.toMark()
	case 't', 'l', 'd':
		if err = p.toMark(); err == nil {
			err = p.open(op == 'd')
		}
	case 0x85, 0x86, 0x87:
		if err = p.pop(int(op) - 0x84); err == nil {
			err = p.open(false)
		}
	case '0':
		err = p.pop(1)
	case '2':
		if len(p.stack) == 0 {
			return p.fault(snapshot.ErrCorrupt, "copies a value that does not exist")
		}
		err = p.push(p.stack[len(p.stack)-1])
	case 'R':
		if err = p.pop(2); err == nil {
			err = p.open(true)
		}
	case 0x93:
		n := len(p.stack)
		if n < 2 || p.stack[n-1].is() != text || p.stack[n-2].is() != text {
			return p.fault(snapshot.ErrRefused, "refused to copy a call: snapshots contain only data")
		}
		module, name := p.lits[p.stack[n-2].number()].was, p.lits[p.stack[n-1].number()].was
		p.stack = p.stack[:n-2]
		err = p.admit(module, name, nil)
	default:
		return p.fault(snapshot.ErrCorrupt, "has the opcode 0x%02x, which no snapshot has", op)
	}
	return err
}
