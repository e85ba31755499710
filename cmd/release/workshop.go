package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// workshop is a clone of the commit, and how things are built there.
type workshop struct {
	ctx       context.Context
	tree, out string
	goroot    string
	env       []string
	packed    string // the file that pack wrote
}

// checkout clones the commit of the current folder's repository. With dirty, files that differ from it are copied over.
func (w *workshop) checkout(dirty bool, stderr io.Writer) error {
	from := func(args ...string) (string, error) { return w.run("git", args...) }
	root, err := from("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	changed, err := from("status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" && !dirty {
		return fmt.Errorf("the tree has changes that are not committed (-dirty builds it all the same):\n%s", changed)
	}
	if shallow, err := from("rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
		fmt.Fprintln(stderr, "release: this clone has no full history, so the version may lack a tag (git fetch --unshallow --tags)")
	}
	commit, err := from("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	plain := []string{"-c", "core.autocrlf=false", "-c", "advice.detachedHead=false"}
	if _, err := from(append(plain, "clone", "-q", "--no-checkout", root, w.tree)...); err != nil {
		return err
	}
	if _, err := w.git(append(plain, "checkout", "-q", "--detach", commit)...); err != nil {
		return err
	}
	if changed == "" {
		return nil
	}
	list, err := from("-C", root, "ls-files", "-z", "-c", "-o", "--exclude-standard")
	if err != nil {
		return err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(w.tree, path), filepath.Join(root, path)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile makes to what from is: a file, a link, or nothing.
func copyFile(to, from string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// setup makes the environment for Go. Of the user's it has what says where things are; the rest, and what
// `go env -w` keeps, would choose other instructions, flags, or a network. The proxy is a folder that is not there: with
// GOPROXY=off Go remembers what a commit's version was before it had its tag (readDiskStat in cmd/go/internal/modfetch).
func (w *workshop) setup() error {
	where := exec.CommandContext(w.ctx, "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT")
	where.Env = append(os.Environ(), "GOTOOLCHAIN=local") // another one would be fetched
	places, err := output(where)
	if err != nil {
		return err
	}
	lines := strings.Split(places, "\n")
	if len(lines) != 4 {
		return fmt.Errorf("go env printed %q", places)
	}
	w.goroot = lines[3]
	nowhere := url.URL{Scheme: "file", Path: path.Join("/", filepath.ToSlash(filepath.Join(w.out, "no-proxy")))}
	for _, name := range []string{"PATH", "HOME", "USERPROFILE", "LOCALAPPDATA", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"} {
		if v, ok := os.LookupEnv(name); ok {
			w.env = append(w.env, name+"="+v)
		}
	}
	w.env = append(w.env, "GOCACHE="+lines[0], "GOMODCACHE="+lines[1], "GOPATH="+lines[2], "GOENV=off", "GOFLAGS=",
		"GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY="+nowhere.String(), "GOSUMDB=off", "GOTELEMETRY=off", "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "LC_ALL=C.UTF-8")
	return nil
}

// build builds snapana and returns the program's path.
func (w *workshop) build(t target) (string, error) {
	path := filepath.Join(w.out, t.os+"-"+t.arch, (&program{target: t}).name())
	args := []string{"build", "-mod=readonly", "-buildvcs=true", "-trimpath", "-tags=nethttpomithttp2",
		"-overlay=" + w.packed, "-ldflags=-s -w -funcalign=8"}
	for packages := range strings.FieldsSeq(cold) {
		args = append(args, "-gcflags="+packages+"=-l")
	}
	_, err := w.goFor(t, append(args, "-o", path, "./cmd/snapana")...)
	return path, err
}

// cold are packages in which nothing is done a million times: without inlining they take a tenth less, and all that is
// measured takes 1 to 3% more. Stores and `serve` speak HTTP/1.1, which without HTTP/2 takes half a megabyte less.
const cold = `
net net/... crypto/... encoding/json encoding/xml encoding/gob encoding/asn1 mime/... text/... html go/... log/... os/... fmt
time context errors regexp/... path/... archive/... image/... io/... reflect debug/... unicode/... math/big
vendor/golang.org/... codeberg.org/... github.com/DataDog/... github.com/google/... github.com/minio/...
github.com/modelcontextprotocol/... github.com/segmentio/... github.com/spf13/... golang.org/x/... gonum.org/... gopkg.in/...
github.com/yosida95/... github.com/rivo/... go.yaml.in/... github.com/klauspost/cpuid/...
github.com/snapana/snapana/cmd/... github.com/snapana/snapana/report/... github.com/snapana/snapana/analyze
github.com/snapana/snapana/analyze/address github.com/snapana/snapana/analyze/attribution
github.com/snapana/snapana/analyze/change github.com/snapana/snapana/analyze/device github.com/snapana/snapana/analyze/diff
github.com/snapana/snapana/analyze/environment github.com/snapana/snapana/analyze/finding github.com/snapana/snapana/analyze/fit
github.com/snapana/snapana/analyze/footprint github.com/snapana/snapana/analyze/gate github.com/snapana/snapana/analyze/holder
github.com/snapana/snapana/analyze/host github.com/snapana/snapana/analyze/lever github.com/snapana/snapana/analyze/oom
github.com/snapana/snapana/analyze/platform github.com/snapana/snapana/analyze/ranks
github.com/snapana/snapana/analyze/redact github.com/snapana/snapana/analyze/remedy
github.com/snapana/snapana/analyze/source github.com/snapana/snapana/analyze/verdict
github.com/snapana/snapana/snapshot/store github.com/snapana/snapana/snapshot/attach`

// goFor runs the go command in the clone, for a target.
func (w *workshop) goFor(t target, args ...string) (string, error) {
	cmd := exec.CommandContext(w.ctx, "go", args...)
	cmd.Dir = w.tree
	cmd.Env = append(slices.Clip(w.env), "GOOS="+t.os, "GOARCH="+t.arch)
	return output(cmd)
}

// git runs git in the clone.
func (w *workshop) git(args ...string) (string, error) {
	return w.run("git", append([]string{"-C", w.tree}, args...)...)
}

// run runs a program in the current folder with the user's environment, and returns what it prints, trimmed.
func (w *workshop) run(name string, args ...string) (string, error) {
	return output(exec.CommandContext(w.ctx, name, args...))
}

// output is what a command prints, without the last line break. The error has what it complains.
func output(cmd *exec.Cmd) (string, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
