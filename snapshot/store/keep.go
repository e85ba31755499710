package store

import (
	"context"
	"os"
	"sync"
)

type keeping struct{}

// keeper keeps what was read of objects.
type keeper struct {
	mu      sync.Mutex
	objects map[string]*kept
}

// kept is what was read of an object.
type kept struct {
	etag  string
	parts []keptPart
	mu    sync.Mutex
	file  *os.File // nil where there is no room for it
}

type keptPart struct {
	mu   sync.Mutex
	have bool
}

// Keep gives a context for who reads an object several times: what was read of it stays in a temporary file until
// release, where there is room for it. An object that is another by then cannot be opened again.
func Keep(ctx context.Context) (again context.Context, release func()) {
	k := &keeper{objects: map[string]*kept{}}
	return context.WithValue(ctx, keeping{}, k), k.release
}

// of is what is kept of an object.
func (k *keeper) of(name, etag string, size int64) (*kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil {
		o = &kept{etag: etag, parts: make([]keptPart, 1+min(size/partBytes, mostKept))}
		if f, err := os.CreateTemp("", "snapana-*"); err == nil {
			os.Remove(f.Name()) // on systems that let it be used on; else release does
			o.file = f
		}
		k.objects[name] = o
	}
	if o.etag != etag {
		return nil, &fault{ErrChanged.Error(), ErrChanged}
	}
	return o, nil
}

// mostKept bounds the parts of an object that are kept: 256 GiB.
const mostKept = 1 << 16

func (k *keeper) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.objects {
		o.drop()
	}
	clear(k.objects)
}

func (o *kept) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
		os.Remove(o.file.Name())
		o.file = nil
	}
}

// part gives n bytes that are there, or fetches them.
func (o *kept) part(i, off, n int64, fetch func(off, n int64) ([]byte, error)) part {
	if i >= int64(len(o.parts)) {
		data, err := fetch(off, n)
		return part{data, err}
	}
	p := &o.parts[i]
	p.mu.Lock() // who reads the same at the same time waits
	defer p.mu.Unlock()
	o.mu.Lock()
	file := o.file
	o.mu.Unlock()
	if p.have && file != nil {
		data := make([]byte, n)
		if _, err := file.ReadAt(data, off); err == nil {
			return part{data, nil}
		}
	}
	data, err := fetch(off, n)
	if err == nil && file != nil {
		if _, err := file.WriteAt(data, off); err != nil {
			o.drop()
		} else {
			p.have = true
		}
	}
	return part{data, err}
}
