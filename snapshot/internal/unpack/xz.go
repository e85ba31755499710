package unpack

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/snapana/snapana/snapshot"
)

// xzGuard passes an xz file on and refuses blocks that demand more than maxWindow for their
// dictionary: the decompressor would allocate all of it first, 4 GiB for a file of 40 bytes.
// It follows the framing of the .xz file format 1.2.1 (sections 2 to 4) and of LZMA2 chunks, and
// decodes nothing.
type xzGuard struct {
	r     *bufio.Reader
	piece bytes.Buffer // looked at, not yet passed on
	next  func()       // reads the next piece
	err   error        // why there is none
	check int          // bytes of the check after each block
	size  int64        // bytes of the block or the index so far
}

func newXzGuard(r io.Reader) *xzGuard {
	g := &xzGuard{r: bufio.NewReaderSize(r, 64<<10)}
	g.next = g.stream
	return g
}

func (g *xzGuard) Read(p []byte) (int, error) {
	for g.piece.Len() == 0 && g.err == nil {
		g.next()
	}
	// What was read of an unfinished piece is for the decompressor to complain about.
	if g.err != nil && (g.piece.Len() == 0 || !errors.Is(g.err, io.ErrUnexpectedEOF)) {
		return 0, g.err
	}
	return g.piece.Read(p)
}

// take moves n bytes into the piece and returns them, zeros at the end of the file.
func (g *xzGuard) take(n int64) []byte {
	got, err := io.CopyN(&g.piece, g.r, n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	g.err = cmp.Or(g.err, err)
	if got < n {
		return make([]byte, n)
	}
	return g.piece.Bytes()[g.piece.Len()-int(n):]
}

// peek is the next byte, 0 at the end of the file.
func (g *xzGuard) peek() byte {
	b, err := g.r.Peek(1)
	if g.err = cmp.Or(g.err, err); err != nil {
		return 0
	}
	return b[0]
}

// bad gives up for what the file is.
func (g *xzGuard) bad(err error) { g.err = cmp.Or(g.err, err) }

// stream begins a stream, or passes over the padding between streams.
func (g *xzGuard) stream() {
	if g.peek() == 0 {
		if g.err == nil {
			g.take(1)
		}
		return
	}
	header := g.take(12)
	if string(header[:6]) != "\xfd7zXZ\x00" {
		g.bad(errors.New("a stream without its magic number"))
	}
	g.check = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[header[7]&15]
	g.next = g.block
}

// block reads the header of a block, or the index that comes behind the last one.
func (g *xzGuard) block() {
	size := g.peek()
	if size == 0 {
		g.index()
		return
	}
	header := g.take(4 * (int64(size) + 1))
	h := bytes.NewReader(header[2 : len(header)-4])
	for _, has := range []byte{0x40, 0x80} { // compressed and uncompressed size
		if header[1]&has != 0 {
			vli(h)
		}
	}
	for range header[1]&3 + 1 {
		id, _ := vli(h)
		size, _ := vli(h)
		props := make([]byte, min(size, 256))
		if _, err := io.ReadFull(h, props); err != nil || size > 256 {
			g.bad(errors.New("a bad block header"))
			return
		}
		if id != 0x21 || len(props) == 0 {
			continue
		}
		if bits := props[0]; bits > 40 || uint64(2|bits&1)<<(bits/2+11) > maxWindow {
			g.bad(tooMuch(isXz, "dictionary"))
		}
	}
	g.size, g.next = 0, g.chunk
}

// chunk reads one LZMA2 chunk, or the end of a block with its padding and check.
func (g *xzGuard) chunk() {
	control, _ := g.ReadByte()
	head, reset := 2, 0
	switch {
	case control == 0:
		g.next = g.block
		g.take((4-g.size%4)%4 + int64(g.check))
		return
	case control >= 0xc0:
		head, reset = 4, 1
	case control >= 0x80:
		head = 4
	case control > 2:
		g.bad(errors.New("a bad LZMA2 chunk"))
	}
	sizes := g.take(int64(head))
	rest := int64(sizes[head-2])<<8 + int64(sizes[head-1]) + 1 + int64(reset)
	g.size += int64(head) + rest
	g.take(rest)
}

// index passes over the index and the footer.
func (g *xzGuard) index() {
	g.size = 0
	g.ReadByte() // the zero
	records, _ := vli(g)
	if records > 1<<20 {
		g.bad(refuse(isXz, snapshot.ErrLimit, "the file has over a million blocks; unpack it first"))
	}
	for n := 2 * records; n > 0 && g.err == nil; n-- {
		vli(g)
	}
	g.next = g.stream
	g.take((4-g.size%4)%4 + 4 + 12)
}

// ReadByte moves a byte into the piece, and counts it.
func (g *xzGuard) ReadByte() (byte, error) {
	b := g.take(1)[0]
	g.size++
	return b, g.err
}

// vli reads a number of the format, 0 where there is none.
func vli(r io.ByteReader) (n uint64, err error) {
	for i := range 9 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			break
		}
	}
	return n, nil
}
