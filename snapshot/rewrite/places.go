package rewrite

import "bytes"

// spot is a place: a container, and the text that is the key, or one of the numbers below.
type spot struct{ box, key int32 }

// boxOf is a container as a value.
func (p *pickler) boxOf(c container) item {
	v, ok := p.known[c]
	if !ok {
		v = item(len(p.boxes))<<2 | box
		p.boxes = append(p.boxes, c)
		p.known[c] = v
	}
	return v
}

// dictAt reports whether a dict is at that height of the stack.
func (p *pickler) dictAt(i int) bool {
	return i >= 0 && p.stack[i].is() == box && p.boxes[p.stack[i].number()].dict
}

// around is the height at which the dict is that a value which comes now belongs to, -1 for none.
func (p *pickler) around() int {
	n, m := len(p.stack), -1
	if len(p.marks) > 0 {
		m = p.marks[len(p.marks)-1]
	}
	switch {
	case m > 0 && p.dictAt(m-1):
		return m - 1
	case n-2 > m && p.dictAt(n-2) && p.stack[n-1].is() == text:
		return n - 2
	case n-1 > m && p.dictAt(n-1):
		return n - 1
	}
	return -1
}

// spot is where a value stands that comes now. A dict is filled behind a mark, or entry by entry without one; a key
// may be taken for one of a dict beside it, and a value for one under the right key there, but no value for a key.
func (p *pickler) spot() spot { return p.spotOf(false) }

// spotOf is spot for a container, which is no key, or for a text.
func (p *pickler) spotOf(isBox bool) spot {
	n, m := len(p.stack), -1
	if len(p.marks) > 0 {
		m = p.marks[len(p.marks)-1]
	}
	if n == 0 {
		return spot{0, listed}
	}
	if d := p.around(); d >= 0 && !(isBox && d == n-1) {
		in, first := int32(p.stack[d].number()), d+1
		if d < m {
			first = m + 1
		}
		if (n-first)%2 == 0 {
			if n > first && p.itemOf(n-1, isBox) {
				return spot{int32(p.stack[n-1].number()), listed}
			}
			return spot{in, asKey}
		}
		if d < m && !isBox && p.dictAt(n-2) && p.stack[n-1].is() == text && p.ahead() == 's' {
			in = int32(p.stack[n-2].number()) // the only entry of a dict in it
		}
		if key := p.stack[n-1]; key.is() == text {
			return spot{in, int32(key.number())}
		}
		if p.stack[n-1].is() == box && (isBox || !p.dictAt(n-1)) { // a list that is the only item of another
			return spot{int32(p.stack[n-1].number()), listed}
		}
		return spot{int32(p.boxOf(container{false, Place{Above: p.boxes[in].Key}}).number()), listed}
	}
	switch {
	case m > 0 && p.stack[m-1].is() == box:
		return spot{int32(p.stack[m-1].number()), listed}
	case n-1 > m && p.stack[n-1].is() == box: // an item for APPEND, or one beside it
		return spot{int32(p.stack[n-1].number()), listed}
	case m < 0:
		return spot{0, listed}
	}
	return p.outside(m)
}

// itemOf reports whether what comes where a dict would have a key is the item of a list that ends here: the only one
// of it, or the last of many, which is not behind a mark. A container is no key, and a text is an item if APPEND follows.
func (p *pickler) itemOf(top int, isBox bool) bool {
	return p.stack[top].is() == box && !p.dictAt(top) && (isBox || p.ahead() == 'a')
}

// ahead is the opcode behind the text that was read last, and behind what stores it.
func (p *pickler) ahead() byte {
	next := p.peek(32)
	for len(next) > 0 {
		n := 0
		switch next[0] {
		case 0x94:
			n = 1
		case 'q':
			n = 2
		case 'r':
			n = 5
		case 'p':
			n = bytes.IndexByte(next, '\n') + 1
		case 0x95: // a frame of protocol 4
			n = 9
		}
		if n == 0 || n > len(next) {
			return next[0]
		}
		next = next[n:]
	}
	return 0
}

// outside is spot behind a mark that no container stands before: of a tuple, or of a list or dict of protocol 0.
func (p *pickler) outside(m int) spot {
	stack, marks := p.stack, p.marks
	p.stack, p.marks = stack[:m], marks[:len(marks)-1]
	around := p.place(p.spot())
	p.stack, p.marks = stack, marks
	if key := stack[len(stack)-1]; (len(stack)-m)%2 == 0 && key.is() == text { // behind what would be a key
		around = Place{Key: p.lits[key.number()].was, Above: around.Key}
	}
	return spot{int32(p.boxOf(container{false, around}).number()), listed}
}

// place is a spot in words.
func (p *pickler) place(at spot) Place {
	switch in := &p.boxes[at.box]; at.key {
	case asKey:
		return Place{Above: in.Key, IsKey: true}
	case listed:
		return Place{Key: in.Key, Above: in.Above}
	default:
		return Place{Key: p.lits[at.key].was, Above: in.Key}
	}
}
