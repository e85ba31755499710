package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
)

// roots are the folders below which files may be read. A name is looked up in each of them, one after the other. Links
// are followed as long as they lead to a place below a root, and what is opened is opened below it: a link that is put
// there meanwhile leads nowhere.
type roots struct {
	local  []root
	remote []string // s3://BUCKET/FOLDER/
}

type root struct {
	named, resolved string // absolute
	dir             *os.Root
}

func openRoots(ctx context.Context, names []string) (*roots, error) {
	r := new(roots)
	for _, name := range names {
		if strings.HasPrefix(name, "s3://") {
			r.remote = append(r.remote, strings.TrimSuffix(name, "/")+"/")
			continue
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		resolved, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return nil, err
		}
		dir, err := os.OpenRoot(resolved)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { dir.Close() })
		r.local = append(r.local, root{abs, resolved, dir})
	}
	return r, nil
}

// place is a file or folder below a root.
type place struct {
	name string      // as answers call it: below its root, with slashes
	path string      // absolute, without links; or in a store
	rel  string      // path below the root
	dir  *os.Root    // nil in a store
	info fs.FileInfo // of the file itself
}

// below is what a path is called from a folder, false where it is elsewhere.
func below(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// outside is the error for what is in no root. It does not tell whether there is such a file.
func outside(name string) error {
	return failure.Advise("give a path below the folders that the server was started with; report with the file \".\" lists "+
		"the snapshots in them", failure.Mark(failure.Permission,
		fmt.Errorf("%s is outside of the folders that this server may read", clip(name, shortText))))
}

// find is the place that a name leads to.
func (r *roots) find(ctx context.Context, name string) (place, error) {
	switch {
	case name == "":
		return place{}, failure.Mark(failure.Usage, errors.New("the name of a file is missing"))
	case strings.ContainsRune(name, 0):
		return place{}, failure.Mark(failure.Usage, errors.New("the name of a file has a zero byte in it"))
	case strings.Contains(name, "://"):
		return r.store(ctx, name)
	}
	var missing error
	for i := range r.local {
		at := &r.local[i]
		full := filepath.Clean(name)
		if !filepath.IsAbs(full) {
			full = filepath.Join(at.named, full)
		}
		rel, ok := below(at.named, full)
		if !ok {
			if rel, ok = below(at.resolved, full); !ok {
				continue
			}
		}
		resolved, err := filepath.EvalSymlinks(filepath.Join(at.resolved, rel))
		if err != nil {
			missing = cmp.Or(missing, hidden(err, name))
			continue
		}
		if rel, ok = below(at.resolved, resolved); !ok {
			return place{}, outside(name)
		}
		info, err := at.dir.Stat(rel)
		if err != nil {
			missing = cmp.Or(missing, hidden(err, name))
			continue
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return place{}, failure.Mark(failure.WrongKind, fmt.Errorf("%s is no regular file", clip(name, shortText)))
		}
		return place{r.called(i, rel), resolved, rel, at.dir, info}, nil
	}
	return place{}, cmp.Or(missing, outside(name))
}

// called is the name by which find finds what lies at a path below a root: absolute where an earlier root has such a path.
func (r *roots) called(root int, rel string) string {
	for i := range root {
		if _, err := r.local[i].dir.Lstat(rel); err == nil {
			return filepath.Join(r.local[root].named, rel)
		}
	}
	return filepath.ToSlash(rel)
}

// tops are the folders that may be read.
func (r *roots) tops(ctx context.Context) (out []place, err error) {
	names := slices.Clone(r.remote)
	for i := range r.local {
		names = append(names, r.local[i].named)
	}
	for _, name := range names {
		at, err := r.find(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return out, nil
}

// hidden is an error of the system about a file, by the name that was asked for.
func hidden(err error, name string) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "open", Path: clip(name, shortText), Err: at.Err}
	}
	return &fs.PathError{Op: "open", Path: clip(name, shortText), Err: fs.ErrNotExist}
}

// store is find for objects of stores.
func (r *roots) store(ctx context.Context, name string) (place, error) {
	scheme, key, _ := strings.Cut(name, "://")
	clean := scheme + "://" + path.Clean(key)
	is := func(root string) bool { return strings.HasPrefix(clean+"/", root) }
	if scheme != "s3" || strings.HasPrefix(path.Clean(key), ".") || !slices.ContainsFunc(r.remote, is) {
		return place{}, outside(name)
	}
	info, err := input.Stat(ctx, clean)
	return place{name: clean, path: clean, info: info}, err
}

// open opens a file to read, which ends when ctx is done.
func (p *place) open(ctx context.Context) (input.File, error) {
	if p.dir == nil {
		return input.Open(ctx, p.path)
	}
	f, err := p.dir.Open(p.rel)
	if err != nil {
		return nil, hidden(err, p.name)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, failure.Mark(failure.WrongKind, fmt.Errorf("%s is no regular file", p.name))
	}
	return f, nil
}

// beside is the recorder's file that lies beside a snapshot and has its name, nil for none that may be read.
func (r *roots) beside(ctx context.Context, p *place) *place {
	name := snapshot.Stem(path.Base(p.name)) + ".snapana"
	at := input.Join(input.Dir(p.path), name)
	if file, err := r.find(ctx, at); err == nil && file.path != p.path && file.info.Mode().IsRegular() {
		return &file
	}
	return nil
}

// Files up to whole bytes are compared as a whole, larger ones by samples.
const (
	whole   = 4 << 20
	samples = 64
	sample  = 4 << 10
)

// stamp tells a file from itself before a change: by size, time and content.
func (p *place) stamp(ctx context.Context) (string, error) {
	head := fmt.Sprintf("%s %d %d", p.path, p.info.Size(), p.info.ModTime().UnixNano())
	if p.dir == nil {
		return head, nil
	}
	f, err := p.open(ctx)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if p.info.Size() <= whole {
		_, err = io.Copy(h, io.LimitReader(f, whole))
	} else {
		part := make([]byte, sample)
		for i := range int64(samples) {
			if _, err = f.ReadAt(part, (p.info.Size()-sample)*i/(samples-1)); err != nil {
				break
			}
			h.Write(part)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", hidden(err, p.name)
	}
	return fmt.Sprintf("%s %x", head, h.Sum(nil)), nil
}
