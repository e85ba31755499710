package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// inputFlags are the flags of every command that reads a snapshot.
type inputFlags struct {
	partial  bool
	maxBytes size
	index    int
	rules    string
}

func (f *inputFlags) add(fl *pflag.FlagSet) {
	f.addReading(fl, "file", "input")
	fl.StringVar(&f.rules, "rules", "", "`FILE` of your own patterns for what memory is for (YAML)")
}

// addReading adds those that say how to read. The words are what may be damaged, and what may unpack
// to much.
func (f *inputFlags) addReading(fl *pflag.FlagSet, damaged, large string) {
	fl.BoolVar(&f.partial, "partial", false, "read a damaged or truncated "+damaged+" as far as possible")
	f.addLimit(fl, large)
	fl.IntVar(&f.index, "index", 0, "`NUMBER` of the snapshot in an HTML page that has several, from 0")
}

// addLimit adds the bound on what files unpack to, which every command has that reads packed ones.
func (f *inputFlags) addLimit(fl *pflag.FlagSet, large string) {
	fl.Var(&f.maxBytes, "max-bytes", "refuse "+large+" that unpacks to more than `SIZE`, like 8GiB\n"+
		"(default: 64MiB or 250 times the compressed size, whichever is larger)")
}

// recording reads a .snapana file as the flags say.
func (f *inputFlags) recording(cmd *cobra.Command, path string) (*sidecar.File, error) {
	opt := sidecar.Options{Partial: f.partial, MaxBytes: int64(f.maxBytes)}
	return sidecar.Open(cmd.Context(), path, opt)
}

// recorderFlags name the recorder's files that belong to a snapshot.
type recorderFlags struct{ file, before string }

func (f *recorderFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "recorder", "", "`FILE` of the recorder (default: NAME.snapana beside NAME.pickle, if any)")
	fl.StringVar(&f.before, "before", "", "compare with the last dump in an earlier `FILE` of the recorder\n"+
		"(default: with the first dump of the same run)")
}

// driverFlags name what the driver says of the devices' memory.
type driverFlags struct {
	live     bool
	readings string
}

func (f *driverFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.readings, "readings", "", "account for all memory of the device, by the driver's readings\n"+
		"in `FILE` (.snapana) of the same run")
	fl.BoolVar(&f.live, "nvml", false, "account for all memory of the device, by reading the driver now:\n"+
		"for a snapshot that was just written")
}

// outputFlags say how to print a result.
type outputFlags struct{ json, all bool }

// add adds --json with its help, and --all unless its help is empty.
func (f *outputFlags) add(fl *pflag.FlagSet, json, all string) {
	fl.BoolVar(&f.json, "json", false, json)
	if all != "" {
		fl.BoolVar(&f.all, "all", false, all)
	}
}

// addCapacity adds --capacity, which goes before what files say. why is what the help says of it.
func addCapacity(fl *pflag.FlagSet, to *size, why string) {
	fl.Var(to, "capacity", "memory of each GPU, a `SIZE` like 80GiB"+why)
}

// deviceFlag chooses one device of a snapshot, by its ordinal.
type deviceFlag int

func (f *deviceFlag) add(fl *pflag.FlagSet) {
	fl.IntVar((*int)(f), "device", -1, "`NUMBER` of the GPU (default: the one that reserved most)")
	fl.Lookup("device").DefValue = "0" // keeps -1 out of the help
}

// open reads a snapshot and builds the timeline of the device that was asked for, or else of the one
// with the highest peak of reserved memory, and says why when there were others.
func (f *deviceFlag) open(cmd *cobra.Command, in *inputFlags, path string) (
	s *snapshot.Snapshot, t *timeline.Timeline, why string, err error) {
	if s, err = in.open(cmd, path); err != nil {
		return nil, nil, "", err
	}
	used := s.UsedDevices()
	switch given := cmd.Flags().Changed("device"); {
	case given && !slices.Contains(used, int(*f)):
		err = fmt.Errorf("invalid --device %d; the file has memory of %s", *f, deviceWords(used))
	case given:
		t = timeline.Build(s, int(*f))
	case len(used) == 0:
		err = fmt.Errorf("%s has no segments and no events, so nothing is live in it", s.Name)
	default:
		if t = timeline.Main(s); len(used) > 1 {
			why = fmt.Sprintf("of %d in the file, the one that reserved most; choose with --device",
				len(used))
		}
	}
	return s, t, why, err
}

func deviceWords(used []int) string {
	const most = 8
	if len(used) == 0 {
		return "no GPU"
	}
	words := strings.Trim(strings.ReplaceAll(fmt.Sprint(used[:min(len(used), most)]), " ", ", "), "[]")
	if len(used) > most {
		words += fmt.Sprintf(", ... (%d in all)", len(used))
	}
	return "GPU " + words
}

// oneOf makes a shell complete a flag to one of words.
func oneOf(cmd *cobra.Command, flag string, words []string) {
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag
	}
}
