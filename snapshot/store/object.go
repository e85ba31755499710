package store

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An object is read in parts: a first one that most small objects fit in, and those behind it, so many ahead of the
// reader.
const (
	headBytes = 256 << 10
	partBytes = 4 << 20
	ahead     = 4
)

// Object is an object that is open, at its version of that time. Read is for one goroutine.
type Object struct {
	Info
	ctx    context.Context
	stop   context.CancelFunc
	store  *Store
	url    string // the name that it was opened by
	bucket string
	key    string
	etag   string
	head   []byte
	kept   *kept // nil for nothing

	at    int64
	parts map[int64]chan part // that were asked for, ahead of at
	now   part
	nowAt int64 // index of now, -1 for none
	sum   hash.Hash
	want  []byte // that sum, once all is read

	mu     sync.Mutex // for ReadAt
	cached part
	index  int64
}

type part struct {
	data []byte
	err  error
}

// Info is what is known of an object, or of a folder.
type Info struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

// Name, Size, Mode, ModTime, IsDir and Sys are those of fs.FileInfo. A folder in a store has no time.
func (i Info) Name() string       { return i.name }
func (i Info) Size() int64        { return i.size }
func (i Info) ModTime() time.Time { return i.modified }
func (i Info) IsDir() bool        { return i.dir }
func (i Info) Sys() any           { return nil }
func (i Info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// Stat is that of fs.File.
func (o *Object) Stat() (fs.FileInfo, error) { return o.Info, nil }

// Close ends all requests for the object.
func (o *Object) Close() error {
	o.stop()
	return nil
}

// Open opens an object, or a folder, of which only Stat can be had. Errors are *fs.PathError, and ctx.Err() once ctx is
// done, with which reading ends too.
func Open(ctx context.Context, name string) (*Object, error) {
	if _, err := Is(name); err != nil {
		return nil, err
	}
	o := &Object{url: name, store: from(ctx), nowAt: -1, index: -1, parts: map[int64]chan part{}}
	o.Info.name = base(name)
	o.bucket, o.key, _ = split(name)
	o.ctx, o.stop = context.WithCancel(ctx)
	err := fs.ErrNotExist
	if o.key != "" && !strings.HasSuffix(o.key, "/") {
		err = o.open()
	}
	if errors.Is(err, fs.ErrNotExist) {
		var info Info
		if info, err = folder(ctx, o.store, name); err == nil {
			o.Info = info
		}
	}
	if err != nil {
		o.stop()
		return nil, o.store.explain(ctx, "open", name, err)
	}
	return o, nil
}

// open gets the first part, and with it the size and version of all.
func (o *Object) open() error {
	var info meta
	var whole bool
	err := o.store.do(o.ctx, o.bucket, func(c *service) error {
		ctx, stop := context.WithCancel(o.ctx)
		defer stop()
		body, got, err := c.get(ctx, o.bucket, o.key, "", 0, headBytes-1)
		if refused(err).Status == 416 {
			o.size = 0 // there is nothing in it
			info, err = c.head(ctx, o.bucket, o.key, "")
			whole = true
			if err == nil && info.size != 0 {
				err = &fault{"the store refuses to give a part of it", ErrUnavailable}
			}
			return err
		}
		if err != nil {
			return err
		}
		defer body.Close()
		info, o.size = got, got.size
		if has, total, ok := strings.Cut(got.header.Get("Content-Range"), "/"); ok {
			if !strings.HasPrefix(has, "bytes 0-") {
				return &fault{"the store gives other bytes than those that were asked for", ErrUnavailable}
			}
			if o.size, err = strconv.ParseInt(total, 10, 64); err != nil {
				o.size = -1
			}
		}
		if o.size < 0 || o.size > math.MaxInt64/2 {
			return &fault{"the store does not say how large it is", ErrUnavailable}
		}
		whole = o.size <= headBytes
		o.head = make([]byte, min(o.size, headBytes))
		_, err = readFull(body, o.head, stop)
		return err
	})
	if err != nil {
		return o.store.explain(o.ctx, "open", o.url, err)
	}
	o.etag, o.modified = info.etag, info.time
	if !whole {
		if err := o.more(&info); err != nil {
			return o.store.explain(o.ctx, "open", o.url, err)
		}
	}
	o.expect(&info)
	if k, ok := o.ctx.Value(keeping{}).(*keeper); ok && !whole {
		o.kept, err = k.of(o.url, o.etag, o.size)
	}
	return err
}

// more asks for the checksums of an object, of which a part does not tell.
func (o *Object) more(info *meta) error {
	return o.store.do(o.ctx, o.bucket, func(c *service) (err error) {
		*info, err = c.head(o.ctx, o.bucket, o.key, o.etag)
		if err == nil && (info.etag != o.etag || info.size != o.size) {
			return &fault{ErrChanged.Error(), ErrChanged}
		}
		return err
	})
}

// expect takes the checksum that the store has of the whole object, if it has any. An ETag is the MD5 of what was
// put at once, unless it was encrypted with a key of KMS or is in a directory bucket.
func (o *Object) expect(info *meta) {
	for _, c := range []struct {
		name string
		sum  func() hash.Hash
	}{
		{"Crc32c", func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
		{"Crc64nvme", func() hash.Hash { return crc64.New(crc64.MakeTable(nvme)) }},
		{"Crc32", func() hash.Hash { return crc32.NewIEEE() }},
		{"Sha256", sha256.New}, {"Sha1", sha1.New},
	} {
		want, err := base64.StdEncoding.DecodeString(info.header.Get("X-Amz-Checksum-" + c.name))
		if err == nil && len(want) > 0 && info.header.Get("X-Amz-Checksum-Type") != "COMPOSITE" {
			o.sum, o.want = c.sum(), want
			return
		}
	}
	want, err := hex.DecodeString(info.etag)
	kms := strings.HasPrefix(info.header.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
	express := strings.HasSuffix(o.bucket, "-x-s3") // a directory bucket, whose tags are no sums
	if err == nil && len(want) == md5.Size && !kms && !express {
		o.sum, o.want = md5.New(), want
	}
}

// nvme is the polynomial of CRC-64/NVME, reversed.
const nvme = 0x9a6c9329ac4bc9b5

// slowest is how many bytes a second have to come: a store that gives one now and then gives nothing.
const slowest = 16 << 10

// readFull fills p, unless nothing comes for long, or little.
func readFull(r io.Reader, p []byte, giveUp func()) (n int, err error) {
	t := time.AfterFunc(stalled, giveUp)
	defer t.Stop()
	all := time.AfterFunc(stalled+time.Duration(len(p)/slowest)*time.Second, giveUp)
	defer all.Stop()
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
		t.Reset(stalled)
	}
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// fetch gets n bytes. Where an answer breaks off, it goes on from there.
func (o *Object) fetch(off, n int64) ([]byte, error) {
	data := make([]byte, n)
	got := int64(0)
	err := o.store.do(o.ctx, o.bucket, func(c *service) error {
		ctx, stop := context.WithCancel(o.ctx)
		defer stop()
		body, info, err := c.get(ctx, o.bucket, o.key, o.etag, off+got, off+n-1)
		if err != nil {
			return err
		}
		defer body.Close()
		if info.etag != o.etag {
			return &fault{ErrChanged.Error(), ErrChanged}
		}
		from, _, _ := strings.Cut(strings.TrimPrefix(info.header.Get("Content-Range"), "bytes "), "-")
		if at, err := strconv.ParseInt(from, 10, 64); err != nil || at != off+got {
			return &fault{"the store gives other bytes than those that were asked for", ErrUnavailable}
		}
		k, err := readFull(body, data[got:], stop)
		got += int64(k)
		return err
	})
	return data, err
}

// part gets a part, of those behind the first.
func (o *Object) part(i int64) part {
	off := headBytes + i*partBytes
	n := min(partBytes, o.size-off)
	if o.kept == nil {
		data, err := o.fetch(off, n)
		return part{data, err}
	}
	return o.kept.part(i, off, n, o.fetch)
}

// Read is that of io.Reader. The last bytes come only if the checksum is right.
func (o *Object) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	data, err := o.next()
	if err != nil {
		return 0, o.store.explain(o.ctx, "read", o.url, err)
	}
	n := copy(p, data)
	o.at += int64(n)
	if o.sum == nil {
		return n, nil
	}
	if o.sum.Write(p[:n]); o.at == o.size && string(o.sum.Sum(nil)) != string(o.want) {
		return 0, o.store.explain(o.ctx, "read", o.url,
			&fault{"what the store gave does not match its checksum; try again", ErrUnavailable})
	}
	return n, nil
}

// next is what comes next.
func (o *Object) next() ([]byte, error) {
	if o.at < int64(len(o.head)) {
		return o.head[o.at:], nil
	}
	i := (o.at - headBytes) / partBytes
	if i != o.nowAt {
		for k := i; k < i+ahead && headBytes+k*partBytes < o.size; k++ {
			if o.parts[k] == nil {
				c := make(chan part, 1)
				o.parts[k] = c
				go func() { c <- o.part(k) }()
			}
		}
		select {
		case o.now = <-o.parts[i]:
		case <-o.ctx.Done():
			return nil, o.ctx.Err()
		}
		delete(o.parts, i)
		o.nowAt = i
	}
	return o.now.data[min((o.at-headBytes)%partBytes, int64(len(o.now.data))):], o.now.err
}

// ReadAt is that of io.ReaderAt.
func (o *Object) ReadAt(p []byte, off int64) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		switch {
		case at >= o.size:
			return n, io.EOF
		case at < int64(len(o.head)):
			n += copy(p[n:], o.head[at:])
			continue
		}
		if i := (at - headBytes) / partBytes; i != o.index {
			if o.cached = o.part(i); o.cached.err != nil {
				o.index = -1
				return n, o.store.explain(o.ctx, "read", o.url, o.cached.err)
			}
			o.index = i
		}
		n += copy(p[n:], o.cached.data[(at-headBytes)%partBytes:])
	}
	return n, nil
}
