package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/minio/minio-go/v7"
)

// mostPut is how large an object may be that is put at once.
const mostPut = 5 << 30

// Put writes an object as a whole, in one request: until it is over, what was there before stays. With fresh, nothing
// may be there, or the error is fs.ErrExist.
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
		err = s.do(ctx, bucket, func(c *minio.Core) error {
			opt := minio.PutObjectOptions{SendContentMd5: true, DisableMultipart: true, ContentType: kind(key),
				DisableContentSha256: size == 0} // else nothing is sent in pieces, which stores refuse
			if fresh {
				opt.SetMatchETagExcept("*")
			}
			_, err := c.Client.PutObject(ctx, bucket, key, io.NewSectionReader(data, 0, size), size, opt)
			return err
		})
	}
	if code := minio.ToErrorResponse(err).Code; fresh && err != nil &&
		(code == "PreconditionFailed" || code == "ConditionalRequestConflict") {
		err = &fault{"is there by now", fs.ErrExist}
	}
	return s.explain(ctx, "write", name, err)
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
	err = s.explain(ctx, "remove", name, s.do(ctx, bucket, func(c *minio.Core) error {
		return c.Client.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
	}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
