package input

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
)

// Filter stands between files and all who read them: it changes what is in them, and what they are called.
type Filter struct {
	// Content copies what is in a file, unpacked, and changes it. What it does not know it refuses.
	Content func(w io.Writer, r *bufio.Reader) error
	// Name is what a file is called where that is shown, without its folder, and Path with it.
	Name, Path func(path string) string
}

type filterKey struct{}

// WithFilter gives a context in which files are read through a filter.
func WithFilter(ctx context.Context, f *Filter) context.Context {
	return context.WithValue(ctx, filterKey{}, f)
}

// FilterOf is that of a context, nil for none.
func FilterOf(ctx context.Context) *Filter {
	f, _ := ctx.Value(filterKey{}).(*Filter)
	return f
}

// Base is the name of a file without its folder, as the context shows it.
func Base(ctx context.Context, path string) string {
	if f := FilterOf(ctx); f != nil {
		return f.Name(path)
	}
	return filepath.Base(path)
}

// Shown is the path of a file as the context shows it.
func Shown(ctx context.Context, path string) string {
	if f := FilterOf(ctx); f != nil && path != "" {
		return f.Path(path)
	}
	return path
}

// Filtered is r through the context's filter, if it has one. Call done, which waits, before r is used by another.
func Filtered(ctx context.Context, r *bufio.Reader) (out io.Reader, done func()) {
	f := FilterOf(ctx)
	if f == nil {
		return r, func() {}
	}
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		to.CloseWithError(f.Content(to, r))
	}()
	return from, func() {
		from.Close()
		<-ended
	}
}
