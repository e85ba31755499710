// Package source finds the lines of a program below a folder that the user names, to show them beside the stacks of a
// snapshot.
//
// The names of files in a snapshot are what its writer says: they are looked up below the folder only, and nothing else
// is opened, whatever they or links in the folder say (os.Root). A name is looked up by its longest end that is there, so
// that /home/a/project/train/model.py is found in b's checkout of the project. That a file is there does not say that it
// is the one that ran, nor that it has not changed since: Fits tells where it cannot be the same.
package source

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bounds on what is read, whatever a folder has.
const (
	mostBytes = 1 << 20 // of a file
	mostFiles = 1000    // that are read
	mostTries = 20_000  // names that are looked up
	mostParts = 40      // folders of a name
)

// Tree is a folder of sources. It is not safe for concurrent use.
type Tree struct {
	Dir    string // as the user named it
	Editor Editor

	root         *os.Root
	base         string // absolute, for Editor
	known        map[string]*File
	files, tries int
}

// File is one that was found.
type File struct {
	Name  string // below the folder, with slashes
	Path  string // absolute, with slashes
	Lines []string
}

// Open opens a folder. Close it after use.
func Open(dir string, editor Editor) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of sources: %w", err)
	}
	base, err := filepath.Abs(dir)
	if err != nil {
		base = dir
	}
	return &Tree{Dir: dir, Editor: editor, root: root, base: filepath.ToSlash(base), known: map[string]*File{}}, nil
}

// Close closes the folder.
func (t *Tree) Close() error { return t.root.Close() }

// Find gives the file that a frame names, nil where there is none, or too much was read already.
func (t *Tree) Find(name string) *File {
	if f, ok := t.known[name]; ok {
		return f
	}
	f := t.find(name)
	t.known[name] = f
	return f
}

func (t *Tree) find(name string) *File {
	if len(name) > 4096 || !strings.HasSuffix(name, ".py") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return nil
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) > mostParts || slices.ContainsFunc(parts, func(p string) bool { return strings.Trim(p, ".") == "" }) {
		return nil
	}
	for i := range parts {
		end := path.Join(parts[i:]...)
		if t.tries++; t.tries > mostTries || t.files >= mostFiles {
			return nil
		}
		if !filepath.IsLocal(filepath.FromSlash(end)) {
			continue
		}
		if lines, err := t.read(filepath.FromSlash(end)); err == nil {
			t.files++
			return &File{Name: end, Path: path.Join(t.base, end), Lines: lines}
		}
	}
	return nil
}

// read reads the lines of a regular file.
func (t *Tree) read(name string) ([]string, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil, fs.ErrInvalid
	}
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil || len(text) > mostBytes || bytes.IndexByte(text, 0) >= 0 {
		return nil, fs.ErrInvalid
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines, nil
}

var word = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// Fits reports whether a frame can be of the file as it is: its line is there, and a function of its name, which may be
// qualified by a class, begins at it or above. Where not, the file has changed since, or is another.
func (f *File) Fits(function string, line int) bool {
	if line < 1 || line > len(f.Lines) {
		return false
	}
	name := function[strings.LastIndexByte(function, '.')+1:]
	if !word.MatchString(name) {
		return true // <module>, <lambda>, <listcomp>
	}
	for _, text := range slices.Backward(f.Lines[:line]) {
		text = strings.TrimLeft(text, " \t")
		for _, before := range []string{"def ", "async def ", "class "} {
			if rest, ok := strings.CutPrefix(text, before); ok {
				rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), name)
				if ok && (rest == "" || !word.MatchString("_"+rest[:1])) {
					return true
				}
			}
		}
	}
	return false
}

// Link is the address that opens a line of the file in an editor, with {line} for the line; "" without an editor.
func (t *Tree) Link(f *File) string {
	parts := strings.Split(f.Path, "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(parts[i]), "+", "%20")
	}
	name := strings.Join(parts, "/")
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // C:/...
	}
	return strings.ReplaceAll(string(t.Editor), "{path}", name)
}
