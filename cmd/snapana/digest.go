package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func newDigest() *cobra.Command {
	var f digestFlags
	cmd := &cobra.Command{
		Use:   "digest FILE... -o FOLDER",
		Short: "Reduce snapshots to small digests, which ranks compares by the thousand",
		Long: `Write a digest of each snapshot into a folder: verdict with evidence, peaks and what they are made of,
growth, failures, settings, in some tens of kilobytes. "snapana ranks FOLDER" compares them, with no
snapshot at hand. A FILE may be a folder of snapshots.

A file whose digest is there already is skipped. One that cannot be read leaves a digest that says
why, is tried again the next time, and the exit code is then 2. A name of no file leaves nothing.`,
		Example: `  snapana digest -o digests/ dumps/rank*.pickle
  snapana ranks digests/`,
		Args: needs(1, many, "the FILES to make digests of"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.readFlags.add(cmd.Flags())
	fl := cmd.Flags()
	fl.StringVarP(&f.dir, "output", "o", "", "write the digests to `FOLDER`, which is made if there is none")
	fl.BoolVar(&f.redo, "redo", false, "make those anew that are there already")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	addBrief(fl)
	return cmd
}

// digestFlags are those of digest.
type digestFlags struct {
	readFlags
	dir        string
	redo, json bool
	there      *digest.Folder
	files      place.Series
	mark       bool // a file that is being read has a digest that says so, which stays when the program is killed
}

func (f *digestFlags) run(cmd *cobra.Command, args []string) error {
	if f.dir == "" {
		return misuse("name the folder for the digests with -o FOLDER")
	}
	return f.each(cmd, unfold(cmd.Context(), args, snapshots))
}

// each makes the digests of files.
func (f *digestFlags) each(cmd *cobra.Command, files []string) error {
	if err := f.ready(cmd.Context()); err != nil {
		return err
	}
	f.alone = true
	if err := place.MkdirAll(f.dir); err != nil {
		return written(err)
	}
	f.there = digest.List(cmd.Context(), f.dir)
	made := json.Digests{Digests: []json.Digested{}}
	for _, path := range files {
		if path == "-" {
			return misuse("a digest is of a file that has a name, not of standard input")
		}
		one, err := f.one(cmd, path)
		if err != nil {
			return err
		}
		made.Add(one)
		if !f.json && !isBrief(cmd) {
			if err := f.say(cmd, digestLine(one)); err != nil {
				return err
			}
		}
	}
	if err := f.end(cmd, &made); err != nil {
		return err
	}
	if made.Unread > 0 {
		return fail(failure.Unread, "%d of %d files could not be read", made.Unread, len(made.Digests))
	}
	return nil
}

func digestLine(d json.Digested) string {
	switch {
	case d.Fault != "":
		return filepath.Base(cmp.Or(d.Path, d.File)) + " unreadable: " + d.Fault
	case d.Skipped:
		return filepath.Base(d.File) + ": there already"
	}
	return filepath.Base(d.Path)
}

// say prints a line.
func (f *digestFlags) say(cmd *cobra.Command, line string) error {
	_, err := io.WriteString(cmd.OutOrStdout(), text.Fold(failure.Line(line)+"\n", look(cmd).Columns()))
	return written(err)
}

func (f *digestFlags) end(cmd *cobra.Command, made *json.Digests) error {
	if f.json {
		return written(json.WriteDigests(cmd.OutOrStdout(), made))
	}
	none := 0
	for _, d := range made.Digests {
		if d.Path == "" && !d.Skipped {
			none++
		}
	}
	s := fmt.Sprintf("%s in %s: %d written", units.Plural(len(made.Digests)-none, "digest"), f.dir, made.Written)
	if made.Skipped > 0 {
		s += fmt.Sprintf(", %d there already", made.Skipped)
	}
	if n := made.Unread - none; n > 0 {
		s += fmt.Sprintf(", %d of unreadable files", n)
	}
	if none > 0 {
		s += fmt.Sprintf("; %s of no file", units.Plural(none, "name"))
	}
	return f.say(cmd, s)
}

// one makes the digest of one file. The error is that of the surroundings: what is wrong with the file is in its digest.
func (f *digestFlags) one(cmd *cobra.Command, path string) (json.Digested, error) {
	out := json.Digested{File: input.Shown(cmd.Context(), path)}
	files := input.WithFilter(cmd.Context(), nil) // of digests, which have pseudonyms already
	src, err := digest.Stat(cmd.Context(), path, f.options()+pseudonyms(cmd.Context()))
	shown := src
	shown.Path = input.Shown(cmd.Context(), src.Path)
	if err == nil && !f.redo && f.there.Done(files, &shown) {
		out.Skipped = true
		return out, nil
	}
	if f.mark {
		mark, err := f.begin(cmd.Context(), shown)
		if err != nil {
			return out, err
		}
		defer func() {
			if mark != out.Path {
				place.Remove(cmd.Context(), mark)
			}
		}()
	}
	nameless := func(err error) string { return failure.Line(without(cmd.Context(), err.Error(), path)) }
	d, _, err := f.digest(cmd, path, src)
	d.Source.Path = shown.Path
	if err == nil && len(d.Source.SHA256) == 0 {
		err = misuse("a digest is of a file that can be read twice")
	}
	if stopped := cmd.Context().Err(); stopped != nil {
		return out, stopped
	}
	if err != nil && !f.mark && !isFile(cmd.Context(), path) { // a name that was mistyped is no rank
		err = explain(cmd.Context(), err)
		out.Tell(err, nameless(err))
		return out, nil
	}
	if err != nil { // what to do about it is said here alone: who reads the digest cannot
		d = digest.Failed(d.Source, errors.New(nameless(plainly(err))))
		err = explain(cmd.Context(), err)
		out.Tell(err, nameless(err))
	}
	data, err := d.Encode()
	if err != nil {
		d = digest.Failed(d.Source, err)
		out.Tell(err, d.Fault)
		if data, err = d.Encode(); err != nil {
			return out, err
		}
	}
	out.Path, out.Bytes = input.Join(f.dir, d.Source.Name()), len(data)
	if d.Fault != "" || f.there.Has(&d.Source) {
		return out, written(f.files.Write(cmd.Context(), out.Path, data))
	}
	err = f.files.Add(cmd.Context(), out.Path, data)
	if errors.Is(err, fs.ErrExist) { // by now: another task read the same file
		if there, e := digest.Open(files, out.Path); e == nil && there.Fault == "" &&
			there.Source.Options == d.Source.Options {
			return json.Digested{File: path, Skipped: true}, nil
		}
		err = f.files.Write(cmd.Context(), out.Path, data)
	}
	return out, written(err)
}

// isFile reports whether there is a file of that name, which may be unreadable.
func isFile(ctx context.Context, path string) bool {
	info, err := input.Stat(ctx, path)
	return err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist)
}

var errKilled = errors.New("the task that read it was killed, as for using too much memory, or it still runs")

// begin leaves a digest that says how far a file came.
func (f *digestFlags) begin(ctx context.Context, src digest.Source) (path string, err error) {
	d := digest.Failed(src, errKilled)
	data, err := d.Encode()
	if err != nil {
		return "", err
	}
	path = input.Join(f.dir, d.Source.Name())
	return path, written(f.files.Write(ctx, path, data))
}

// readFlags are those that say how snapshots are read whose digests are made.
type readFlags struct {
	in     inputFlags
	rules  []category.Rule
	hash   string // of the rules
	alone  bool   // files are read one after the other
	replay bool   // what other settings would have done is wanted too
}

func (f *readFlags) add(fl *pflag.FlagSet) { f.in.add(fl) }

// ready reads the rules.
func (f *readFlags) ready(ctx context.Context) error {
	rules, hash, err := f.in.hashRules(ctx)
	f.rules, f.hash = rules, hex.EncodeToString(hash[:min(len(hash), 8)])
	return err
}

// options tells digests apart that are of one file and differ.
func (f *readFlags) options() string {
	var s []string
	add := func(on bool, format string, a ...any) {
		if on {
			s = append(s, fmt.Sprintf(format, a...))
		}
	}
	add(f.in.partial, "partial")
	add(f.in.index > 0, "index=%d", f.in.index)
	add(f.in.window.From != "", "from=%s", f.in.window.From)
	add(f.in.window.To != "", "to=%s", f.in.window.To)
	add(f.hash != "", "rules=%s", f.hash)
	return strings.Join(s, " ")
}

var errChanged = fail(failure.Changed, "changed while it was read: wait until its program has written it")

// digest reads a snapshot, analyzes it with the recorder's file beside it, and makes the digest. Where that fails, the
// digest has the Source.
func (f *readFlags) digest(cmd *cobra.Command, path string, src digest.Source) (*digest.Digest, *analyze.Result, error) {
	failed := &digest.Digest{Source: src}
	ctx, release := input.Keep(cmd.Context())
	defer release()
	own := *cmd // since others are read at the same time
	own.SetContext(ctx)
	cmd = &own
	hashed := make(chan error, 1)
	go func() {
		info, err := input.Stat(cmd.Context(), path)
		if err == nil && info.Mode().IsRegular() { // a pipe cannot be read twice
			err = failed.Source.Hash(cmd.Context())
		}
		hashed <- err
	}()
	var s *snapshot.Snapshot
	var err error
	if f.alone {
		s, err = f.in.open(cmd, path)
	} else {
		s, err = f.in.read(cmd, path, nil)
	}
	if unread := <-hashed; err == nil {
		err = unread
	}
	if err != nil {
		return failed, nil, err
	}
	opt := analyze.Options{Rules: f.rules, NoReplay: !f.replay}
	if file, _ := sidecar.Beside(cmd.Context(), path); file != "" {
		if opt.Recorder, err = f.in.recording(cmd, file); err != nil {
			opt.Recorder, opt.Unread = nil, inFlags(err)
		}
	}
	r, err := analyze.Run(cmd.Context(), s, opt)
	if err != nil {
		return failed, nil, err
	}
	if now, err := digest.Stat(cmd.Context(), path, ""); err == nil && (now.Size != src.Size || now.Modified != src.Modified) {
		return failed, nil, errChanged
	}
	return digest.Of(failed.Source, r, opt.Recorder), r, nil
}
