package store

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"
)

// mostPut is how large an object may be that is put at once.
const mostPut = 5 << 30

// Put writes an object as a whole, in one request: until it is over, what was there before stays. With fresh, nothing
// may be there, or the error is fs.ErrExist; in a store that cannot tell, errors.ErrUnsupported.
func Put(ctx context.Context, name string, data io.ReaderAt, size int64, fresh bool) error {
	s := from(ctx)
	bucket, key, err := split(name)
	switch {
	case err != nil:
		return err
	case key == "" || strings.HasSuffix(key, "/"):
		err = &fault{"is a folder, not a file", nil}
	case size > mostPut:
		err = &fault{"is more than 5 GiB, which a store does not take at once", nil}
	default:
		tried := 0
		err = s.do(ctx, bucket, func(c *service) error {
			tried++
			err := c.put(ctx, bucket, key, data, size, fresh)
			if fresh && tried > 1 && refused(err).Code == "PreconditionFailed" &&
				is(ctx, c, bucket, key, data, size) {
				return nil // an earlier try wrote it, and its answer was lost
			}
			return err
		})
	}
	if answer := refused(err); fresh && err != nil {
		switch {
		case answer.Code == "PreconditionFailed" || answer.Code == "ConditionalRequestConflict":
			err = &fault{"is there by now", fs.ErrExist}
		case answer.Status == 501 || answer.Code == "NotImplemented":
			err = &fault{"the store cannot tell whether something is there by now", errors.ErrUnsupported}
		}
	}
	return s.explain(ctx, "write", name, err)
}

// is reports whether an object is what was to be put, by the MD5 that stores have for a tag of what was put at once.
func is(ctx context.Context, c *service, bucket, key string, data io.ReaderAt, size int64) bool {
	h := md5.New()
	if _, err := io.Copy(h, io.NewSectionReader(data, 0, size)); err != nil {
		return false
	}
	is, err := c.head(ctx, bucket, key, "")
	return err == nil && is.size == size && is.etag == hex.EncodeToString(h.Sum(nil))
}

// kind is what a browser takes an object for.
func kind(key string) string {
	for end, kind := range map[string]string{".html": "text/html; charset=utf-8", ".json": "application/json",
		".png": "image/png", ".svg": "image/svg+xml"} {
		if strings.HasSuffix(key, end) {
			return kind
		}
	}
	return "application/octet-stream"
}

// Remove removes an object, if it is there.
func Remove(ctx context.Context, name string) error {
	s := from(ctx)
	bucket, key, err := split(name)
	if err != nil {
		return err
	}
	err = s.explain(ctx, "remove", name, s.do(ctx, bucket, func(c *service) error {
		return c.remove(ctx, bucket, key)
	}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
