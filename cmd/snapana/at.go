package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
)

func newAt() *cobra.Command {
	var (
		in     inputFlags
		device deviceFlag
		out    outputFlags
		format formatFlag
		at     string
		top    int
	)
	cmd := &cobra.Command{
		Use:   "at FILE ADDRESS",
		Short: "Show who lived at an address, and what lies beside it",
		Long: `Show which blocks had ADDRESS in the run that FILE (- for standard input) recorded: at a moment,
before it and after it, with the code that allocated and freed them, and what lies beside them.
This is for illegal memory accesses and uses after free.

ADDRESS is ` + address.Forms + `.`,
		Example: `  snapana at snapshot.pickle 0x7f064c000000
  snapana at --at oom snapshot.pickle b7f064c000000_2
  snapana at --format md snapshot.pickle 0x7f064c000000
  snapana at --json snapshot.pickle 139665090904064`,
		Args: needs(2, 2, "FILE (or - for standard input) and ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(cmd, out.json, "--json"); err != nil {
				return err
			}
			out.json = out.json || format == "json"
			q, err := address.Parse(args[1])
			if err != nil {
				return failure.Mark(failure.Usage, err)
			}
			if top < 0 {
				return misuse("invalid --top %d; expected 0 (all) or more", top)
			}
			rules, err := in.readRules(cmd.Context())
			if err != nil {
				return err
			}
			snap, t, addr, why, err := device.knowing(cmd, &in, args[0], q)
			if err != nil {
				return err
			}
			m, err := locate(snap, t, at)
			if err != nil {
				return err
			}
			most := top
			if out.json && !cmd.Flags().Changed("top") {
				most = 0
			}
			a := address.Ask(snap, t, m, addr, q.Generation, most, category.Namer(snap, t, rules))
			if q.Generation >= 0 && !a.Asked() {
				return fail(failure.NotInFile, "GPU %d of %s has no block %s; %s", t.Device, snap.Name, args[1], a.Others())
			}
			a.Why = why
			if format == "md" {
				return written(text.AtMarkdown(cmd.OutOrStdout(), a))
			}
			return show(cmd, out, a, json.WriteAt, text.At)
		},
	}
	in.add(cmd.Flags())
	device.add(cmd.Flags())
	out.add(cmd.Flags(), "print JSON, with all blocks unless --top is given", "")
	format.add(cmd)
	cmd.Flags().StringVar(&at, "at", "end", "`MOMENT`: "+attribution.AtWords)
	oneOf(cmd, "at", moments)
	cmd.Flags().IntVar(&top, "top", 20, "show the `N` blocks nearest to the moment; 0 for all")
	cmd.Flags().Lookup("device").Usage = "`NUMBER` of the GPU (default: the one that knows the address)"
	return cmd
}

// knowing is open for the device that knows an address, unless one was asked for.
func (f *deviceFlag) knowing(cmd *cobra.Command, in *inputFlags, path string, q address.Query) (
	s *snapshot.Snapshot, t *timeline.Timeline, addr uint64, why string, err error) {
	s, t, _, err = f.open(cmd, in, path)
	if err != nil {
		return nil, nil, 0, "", err
	}
	all := []*timeline.Timeline{t} // the one that reserved most first
	if used := s.UsedDevices(); !cmd.Flags().Changed("device") && len(used) > 1 {
		for _, d := range used {
			if d != t.Device {
				all = append(all, timeline.Build(s, d))
			}
		}
		why = fmt.Sprintf("of %d in the file; choose with --device", len(used))
	}
	t, addr = address.Device(all, q)
	return s, t, addr, why, nil
}
