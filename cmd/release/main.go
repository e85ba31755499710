// Command release builds what is published of one commit: programs for each platform, archives, Python wheels, Debian
// packages, a container image, lists of what is in them, checksums, and a statement of how they were made.
//
//	go run ./cmd/release [-o dist] [-only OS/ARCH,...] [-dirty]
//
// The same commit and the same release of Go give the same bytes, whoever builds, when, and in which folder: programs are
// built from a clone of the commit, with an environment of their own; times are the commit's. Nothing is fetched: the
// modules of go.mod must be in the module cache (`go mod download` brings them).
//
// The version is what Go stamps into the program: the tag vX.Y.Z at the commit, else a pseudo-version that sorts between
// the tags before and after it. A tree with changes that are not committed is refused; with -dirty it is built, and its
// version ends in +dirty.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/snapshot/sorting"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	output := flags.String("o", "dist", "`folder` to write; it is made, or files of an earlier release in it are replaced")
	only := flags.String("only", "", "`platforms` to build, such as linux/amd64,darwin/arm64 (default: all)")
	dirty := flags.Bool("dirty", false, "build a tree with changes that are not committed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("takes no arguments, got %q", flags.Arg(0))
	}
	targets, err := chosen(*only)
	if err != nil {
		return err
	}
	r, err := prepare(ctx, targets, *dirty, stderr)
	if err != nil {
		return err
	}
	files, err := r.artifacts()
	if err != nil {
		return err
	}
	if err := publish(ctx, *output, files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(stdout, "%10d  %s\n", len(f.data), filepath.Join(*output, f.name))
	}
	return nil
}

// chosen are the targets that a list names, all for "".
func chosen(list string) (some []target, err error) {
	if list == "" {
		return targets, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: unknown platform %q; choose from %v", name, targets)
		}
		some = append(some, targets[i])
	}
	return some, nil
}

// artifacts are all files of the release, in the order of their names, the checksums last.
func (r *release) artifacts() ([]file, error) {
	var all []file
	for _, p := range r.programs {
		made, err := r.packages(p)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", p.target, err)
		}
		all = append(all, made...)
	}
	image, err := r.image()
	if err != nil {
		return nil, err
	}
	all = append(all, image...)
	sorting.By(all, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	statement, err := r.provenance(all)
	if err != nil {
		return nil, err
	}
	all = append(all, statement)
	return append(all, checksums(all)), nil
}

// packages are the files that carry one program.
func (r *release) packages(p *program) (all []file, err error) {
	bill, err := r.bill(p)
	if err != nil {
		return nil, err
	}
	all = append(all, bill)
	for _, pack := range []func(*program, file) (file, error){r.archive, r.wheel, r.deb} {
		made, err := pack(p, bill)
		if err != nil {
			return nil, err
		}
		if made.name != "" {
			all = append(all, made)
		}
	}
	return all, nil
}

// publish puts the files into the folder as a whole. Files of an earlier release go, others stay.
func publish(ctx context.Context, dir string, files []file) error {
	var all []place.File
	for _, f := range files {
		all = append(all, place.File{Name: f.name, Data: f.data})
	}
	ours := func(name string) bool { return strings.HasPrefix(name, "snapana") || name == sumsName }
	if _, err := os.Stat(dir); err == nil {
		return place.Replace(ctx, dir, all, ours)
	}
	return place.Create(ctx, dir, all, ours)
}
