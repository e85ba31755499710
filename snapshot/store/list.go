package store

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of a listing.
const (
	MostListed = 250_000 // objects and folders
	mostPages  = 2_000   // requests, each again where it failed
)

func base(name string) string { return path.Base(strings.TrimSuffix(name, "/")) }

// Stat tells what an object is, or a folder. A folder is there as long as something is in it.
func Stat(ctx context.Context, name string) (Info, error) {
	s := from(ctx)
	bucket, key, err := split(name)
	if err != nil {
		return Info{}, err
	}
	info := Info{name: base(name)}
	err = fs.ErrNotExist
	if key != "" && !strings.HasSuffix(key, "/") {
		err = s.do(ctx, bucket, func(c *service) error {
			is, err := c.head(ctx, bucket, key, "")
			info.size, info.modified = is.size, is.time
			return err
		})
		err = s.explain(ctx, "open", name, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return folder(ctx, s, name)
	}
	return info, err
}

// folder tells whether something is in a folder.
func folder(ctx context.Context, s *Store, name string) (Info, error) {
	bucket, key, err := split(name)
	if err == nil {
		var in []Info
		if in, err = list(ctx, s, name, false, 1); err == nil && len(in) == 0 && strings.Trim(key, "/") != "" {
			err = s.explain(ctx, "open", name, &fault{"no such object, and no folder in the bucket " + bucket,
				fs.ErrNotExist})
		}
	}
	return Info{name: base(name), dir: true}, err
}

// List lists what is in a folder: objects and folders, or, if deep, all objects below it with their names from there
// on. Nothing in it is fs.ErrNotExist.
func List(ctx context.Context, name string, deep bool) ([]Info, error) {
	s := from(ctx)
	all, err := list(ctx, s, name, deep, MostListed)
	if err == nil && len(all) == 0 {
		err = s.explain(ctx, "open", name, &fault{"no such folder", fs.ErrNotExist})
	}
	return all, err
}

func list(ctx context.Context, s *Store, name string, deep bool, most int) (all []Info, err error) {
	bucket, prefix, err := split(name)
	if err != nil {
		return nil, err
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	var left atomic.Int64
	left.Store(mostPages)
	ctx = context.WithValue(ctx, pages{}, &left)
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {prefix}}
	if !deep {
		query.Set("delimiter", "/")
	}
	if most == 1 {
		query.Set("max-keys", "2") // one may be the folder itself
	}
	tooMuch := false
	take := func(key string, size int64, modified time.Time) bool {
		below, ok := strings.CutPrefix(key, prefix)
		dir := strings.HasSuffix(below, "/")
		if below = strings.TrimSuffix(below, "/"); !ok || below == "" && !(key == prefix && most == 1) {
			return true // the mark of an empty folder, or what was not asked for
		}
		if tooMuch = len(all) == MostListed; tooMuch {
			return false
		}
		all = append(all, Info{name: below, size: size, modified: modified, dir: dir})
		return most > 1
	}
	for {
		var page *listing
		err := s.do(ctx, bucket, func(c *service) (err error) {
			page, err = c.page(ctx, bucket, query)
			return err
		})
		if err == nil && page.each(take) && page.IsTruncated {
			query.Set("continuation-token", page.Next)
			continue
		}
		if tooMuch {
			err = &fault{"there is too much in this folder to list it", nil}
		}
		return all, s.explain(ctx, "open", name, err)
	}
}

// Folder is what a listing has for a folder of that name.
func Folder(name string) Info { return Info{name: base(name), dir: true} }

// Base is what a listing of the folder that an object is in has for it.
func (i Info) Base() Info {
	i.name = base(i.name)
	return i
}
