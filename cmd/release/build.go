package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// target is a platform, in Go's names.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

func (t target) String() string { return t.os + "/" + t.arch }

// program is snapana, built for a target.
type program struct {
	target
	data []byte
	info *debug.BuildInfo
}

// name is that of the program's file.
func (p *program) name() string {
	if p.os == "windows" {
		return "snapana.exe"
	}
	return "snapana"
}

// file is a file of an artifact, or an artifact. Names have slashes.
type file struct {
	name string
	data []byte
	exec bool // a program
}

// release is what all artifacts of a commit share.
type release struct {
	version  version
	commit   string
	author   string    // of the commit, "Name <address>"
	time     time.Time // of the commit
	readme   []byte    // without links and pictures that lead nowhere outside of the repository
	license  []byte
	docs     docs
	python   []file // what can be imported: modules and packages
	legal    *legal
	programs []*program
}

// prepare builds the programs and collects what is packed with them.
func prepare(ctx context.Context, targets []target, dirty bool, stderr io.Writer) (*release, error) {
	tmp, err := os.MkdirTemp("", "snapana-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	w := &workshop{ctx: ctx, tree: filepath.Join(tmp, "tree"), out: filepath.Join(tmp, "out")}
	if err := w.checkout(dirty, stderr); err != nil {
		return nil, err
	}
	if err := w.setup(); err != nil {
		return nil, err
	}
	if w.packed, err = w.pack(); err != nil {
		return nil, err
	}
	r := &release{}
	host := target{runtime.GOOS, runtime.GOARCH}
	build := targets
	if !slices.Contains(targets, host) {
		build = append(slices.Clip(build), host) // manual and completions come from a program that runs here
	}
	var runs string
	for _, t := range build {
		fmt.Fprintf(stderr, "build %v\n", t)
		path, err := w.build(t)
		if err != nil {
			return nil, fmt.Errorf("build %v: %w", t, err)
		}
		if t == host {
			runs = path
		}
		if !slices.Contains(targets, t) {
			continue
		}
		p := &program{target: t}
		if p.data, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		if p.info, err = buildinfo.Read(bytes.NewReader(p.data)); err != nil {
			return nil, err
		}
		r.programs = append(r.programs, p)
	}
	if err := r.identify(r.programs[0].info); err != nil {
		return nil, err
	}
	tags, err := w.git("tag", "--points-at", "HEAD", "v*")
	if err != nil {
		return nil, err
	}
	if err := r.version.among(tags); err != nil {
		return nil, err
	}
	if r.author, err = w.git("log", "-1", "--format=%cn <%ce>"); err != nil {
		return nil, err
	}
	return r, r.collect(w, runs)
}

// identify takes version and commit from a program: it says itself what it was built from.
func (r *release) identify(info *debug.BuildInfo) (err error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	r.commit = settings["vcs.revision"]
	if r.time, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil || r.commit == "" {
		return fmt.Errorf("the program does not say which commit it was built from: %v", err)
	}
	r.time = r.time.UTC()
	r.version, err = parseVersion(info.Main.Version)
	return err
}

// collect reads what is packed beside the programs. runs is the path of a program that can be run here.
func (r *release) collect(w *workshop, runs string) (err error) {
	tree := os.DirFS(w.tree)
	if r.license, err = fs.ReadFile(tree, "LICENSE"); err != nil {
		return err
	}
	readme, err := fs.ReadFile(tree, "README.md")
	if err != nil {
		return err
	}
	r.readme = standalone(readme)
	if r.python, err = w.python(tree); err != nil {
		return err
	}
	if r.docs, err = r.document(w, tree, runs); err != nil {
		return err
	}
	r.legal, err = w.legal(r.programs)
	return err
}

// python lists the modules that a wheel installs.
func (w *workshop) python(tree fs.FS) (all []file, err error) {
	const recorder, sources = "snapshot/sidecar/recorder/snapana_recorder.py", "cmd/release/python/"
	list, err := w.git("ls-files", "-z", "-c", "-o", "--exclude-standard", recorder, sources)
	if err != nil {
		return nil, err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		data, err := fs.ReadFile(tree, path)
		if err != nil {
			return nil, err
		}
		name, packed := strings.CutPrefix(path, sources)
		if !packed {
			name = filepath.Base(path)
		}
		all = append(all, file{name: name, data: data})
	}
	return all, nil
}
