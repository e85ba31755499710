package load

import (
	"context"
	"errors"
	"io"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/unpack"
)

// Unpacked calls use with what is in a file, or in r where that is not nil, once it is unpacked as Read does it, and as the
// context's filter makes it. What data cannot be told from is refused. Errors are as those of Read.
func Unpacked(ctx context.Context, r io.Reader, name string, opt Options, use func(r io.Reader) error) error {
	limits := unpack.Options{MaxBytes: opt.MaxBytes, Snapshots: true, Index: opt.Index}
	return unpack.Read(ctx, r, name, limits, func(in *unpack.Input) error {
		if in.Foreign() {
			return in.Stranger()
		}
		err := use(in.Capped())
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return &snapshot.FormatError{Offset: -1, Msg: "the file ends early", Err: snapshot.ErrTruncated}
		}
		return err
	})
}
