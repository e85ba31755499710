package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"path"
	"time"
)

// archive packs the program with what belongs to it: a zip for Windows, else a tar.gz, with one folder in it.
func (r *release) archive(p *program, bill file) (file, error) {
	top := "snapana-" + r.version.plain + "-" + p.os + "-" + p.arch
	files := []file{
		{name: p.name(), data: p.data, exec: true},
		{name: "LICENSE", data: r.license},
		{name: "THIRD_PARTY_LICENSES", data: r.legal.notice(p)},
		{name: "README.md", data: r.readme},
		{name: billName, data: bill.data},
	}
	for _, m := range r.docs.man {
		files = append(files, file{name: "man/" + m.path(), data: m.data})
	}
	for _, c := range r.docs.completions {
		files = append(files, file{name: "completions/" + c.name, data: c.data})
	}
	for i := range files {
		files[i].name = top + "/" + files[i].name
	}
	if p.os == "windows" {
		data, err := zipped(files, r.time)
		return file{name: top + ".zip", data: data}, err
	}
	data, err := tarred(files, r.time)
	if err == nil {
		data, err = gzipped(data, gzip.DefaultCompression)
	}
	return file{name: top + ".tar.gz", data: data}, err
}

// tarred is a tar of files that root owns, each below its folders.
func tarred(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true, "/": true}
	var folder func(dir string) error
	folder = func(dir string) error {
		if made[dir] {
			return nil
		}
		made[dir] = true
		if err := folder(path.Dir(dir)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at,
			Format: tar.FormatUSTAR})
	}
	for _, f := range files {
		if err := folder(path.Dir(f.name)); err != nil {
			return nil, err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode(), Size: int64(len(f.data)), ModTime: at,
			Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// gzipped is data in gzip, without a time or a name. Programs take thrice as long at the best level, and get 1% smaller.
func gzipped(data []byte, level int) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// zipped is a zip. Times are in UTC, whatever the time zone.
func zipped(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.CreatorVersion = 3 << 8                         // Unix, whose modes follow
		h.ExternalAttrs = uint32(0o100000|f.mode()) << 16 // a regular file
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func (f file) mode() int64 {
	if f.exec {
		return 0o755
	}
	return 0o644
}
