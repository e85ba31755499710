package unpack

import (
	"bufio"
	"bytes"
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
	next  func() error // reads the next piece
	check int          // bytes of the check after each block
	size  int64        // bytes of the block or the index so far
}

func newXzGuard(r io.Reader) *xzGuard {
	g := &xzGuard{r: bufio.NewReaderSize(r, 64<<10)}
	g.next = g.stream
	return g
}

func (g *xzGuard) Read(p []byte) (int, error) {
	for g.piece.Len() == 0 {
		if err := g.next(); err != nil {
			// What was read of an unfinished piece is for the decompressor to complain about.
			if g.piece.Len() > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
				g.next = func() error { return err }
				break
			}
			return 0, err
		}
	}
	return g.piece.Read(p)
}

// take moves n bytes into the piece and returns them.
func (g *xzGuard) take(n int64) ([]byte, error) {
	got, err := io.CopyN(&g.piece, g.r, n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return g.piece.Bytes()[g.piece.Len()-int(got):], err
}

// stream begins a stream, or passes over the padding between streams.
func (g *xzGuard) stream() error {
	b, err := g.r.Peek(1)
	if err != nil {
		return err
	}
	if b[0] == 0 {
		_, err := g.take(1)
		return err
	}
	header, err := g.take(12)
	if err != nil {
		return err
	}
	if string(header[:6]) != "\xfd7zXZ\x00" {
		return errors.New("a stream without its magic number")
	}
	g.check = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[header[7]&15]
	g.next = g.block
	return nil
}

// block reads the header of a block, or the index that comes behind the last one.
func (g *xzGuard) block() error {
	b, err := g.r.Peek(1)
	if err != nil {
		return err
	}
	if b[0] == 0 {
		return g.index()
	}
	header, err := g.take(4 * (int64(b[0]) + 1))
	if err != nil {
		return err
	}
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
			return errors.New("a bad block header")
		}
		if id != 0x21 || len(props) == 0 {
			continue
		}
		if bits := props[0]; bits > 40 || uint64(2|bits&1)<<(bits/2+11) > maxWindow {
			return tooMuch(isXz, "dictionary")
		}
	}
	g.size, g.next = 0, g.chunk
	return nil
}

// chunk reads one LZMA2 chunk, or the end of a block with its padding and check.
func (g *xzGuard) chunk() error {
	control, err := g.ReadByte()
	if err != nil {
		return err
	}
	rest := int64(0)
	switch {
	case control == 0:
		g.next = g.block
		_, err := g.take((4-g.size%4)%4 + int64(g.check))
		return err
	case control >= 0x80:
		sizes, err := g.take(4)
		if err != nil {
			return err
		}
		rest = int64(sizes[2])<<8 + int64(sizes[3]) + 1
		if control >= 0xc0 {
			rest++
		}
		g.size += 4
	case control <= 2:
		size, err := g.take(2)
		if err != nil {
			return err
		}
		rest = int64(size[0])<<8 + int64(size[1]) + 1
		g.size += 2
	default:
		return errors.New("a bad LZMA2 chunk")
	}
	g.size += rest
	_, err = g.take(rest)
	return err
}

// index passes over the index and the footer.
func (g *xzGuard) index() error {
	g.size = 0
	if _, err := g.ReadByte(); err != nil { // the zero
		return err
	}
	records, err := vli(g)
	if records > 1<<20 {
		return refuse(isXz, snapshot.ErrLimit, "the file has over a million blocks; unpack it first")
	}
	for n := 2 * records; n > 0 && err == nil; n-- {
		_, err = vli(g)
	}
	if err != nil {
		return err
	}
	g.next = g.stream
	_, err = g.take((4-g.size%4)%4 + 4 + 12)
	return err
}

// ReadByte moves a byte into the piece, and counts it.
func (g *xzGuard) ReadByte() (byte, error) {
	b, err := g.take(1)
	if err != nil {
		return 0, err
	}
	g.size++
	return b[0], nil
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
