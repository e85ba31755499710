package unpack

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// maxSpool bounds an archive that must be held in memory, because it came through a pipe.
const maxSpool = 1 << 30

// zip opens the one file that an archive holds.
func (in *Input) zip(r io.Reader, depth int) error {
	at, size := in.file, in.size
	if at == nil || depth > 0 {
		data, err := io.ReadAll(io.LimitReader(r, maxSpool+1))
		if err != nil {
			return err
		}
		if len(data) > maxSpool {
			return refuse(isZip, snapshot.ErrLimit,
				"a zip archive of over 1 GiB cannot be read through a pipe or inside another container; "+
					"unpack it first")
		}
		at, size = bytes.NewReader(data), int64(len(data))
	}
	z, err := zip.NewReader(counted{in: in, at: at}, size)
	if err != nil {
		return brokenZip(err)
	}
	member, err := pick(z)
	if err != nil {
		return err
	}
	body, err := member.Open()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return brokenZip(err)
	case err != nil:
		return unpackError(isZip, err)
	}
	in.closers = append(in.closers, func() { body.Close() })
	return in.unwrap(&layer{in: in, r: body, kind: isZip}, 0, depth+1)
}

func brokenZip(err error) error {
	return refuse(isZip, snapshot.ErrCorrupt, "the archive is damaged or was cut off (%v); copy the file again", err)
}

// pick chooses the member of an archive to open.
func pick(z *zip.Reader) (*zip.File, error) {
	var files, likely []*zip.File
	for _, f := range z.File {
		base := path.Base(f.Name)
		if f.Mode().IsDir() || strings.HasPrefix(f.Name, "__MACOSX/") || strings.HasPrefix(base, ".") {
			continue
		}
		if base == "data.pkl" || base == "constants.pkl" {
			return nil, notSnapshot("is a torch.save archive (a checkpoint, or a TorchScript model), not a memory " +
				"snapshot; snapshots are written by torch.cuda.memory._dump_snapshot")
		}
		files = append(files, f)
		switch strings.ToLower(path.Ext(base)) {
		case ".pickle", ".pkl", ".json", ".html", ".gz", ".zst", ".xz", ".snapshot":
			likely = append(likely, f)
		}
	}
	if len(likely) != 1 {
		likely = files
	}
	switch len(likely) {
	case 0:
		return nil, notSnapshot("is a zip archive with no file in it")
	case 1:
		if likely[0].Flags&1 != 0 {
			return nil, notSnapshot("is a zip archive with a password; unpack it first")
		}
		return likely[0], nil
	}
	var names []string
	for _, f := range likely[:min(3, len(likely))] {
		names = append(names, fmt.Sprintf("%.60q", f.Name))
	}
	slices.Sort(names)
	return nil, notSnapshot(fmt.Sprintf("is a zip archive of %d files (%s ...); unpack it and name one snapshot",
		len(likely), strings.Join(names, ", ")))
}
