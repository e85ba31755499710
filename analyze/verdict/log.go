package verdict

import (
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// Message says of one of a log's messages why the request failed and what to do. Of the main one it
// also says what the snapshot beside the log knows.
func Message(l *oom.Log, g *oom.Group) finding.Finding {
	f := finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: g.Device, Bytes: g.Tried.Bytes,
		Evidence: finding.Evidence{Request: printed(g)},
	}
	explain(&f)
	caveats(g, &f)
	if g.Backend != "cpu" && g.Backend != "mps" { // of MPS there are no snapshots
		f.Wants = finding.WantSnapshot
	}
	if g == &l.Groups[l.Main] && (g.Cause == oom.Fragmentation || g.Cause == oom.Joined) {
		if says, or := expandable(l.Failure, g.Hint); says != "" {
			f.Next[0] = says
			if g.Cause == oom.Fragmentation {
				f.Next[1] = or + findSmall
			}
		}
	}
	named(&f, g.Backend)
	return f
}

// printed is what a message prints of its request.
func printed(g *oom.Group) *finding.Request {
	size := func(s oomlog.Size) units.Size {
		if !s.Known() {
			return oom.Unknown
		}
		return units.Size(s.Bytes)
	}
	v := &finding.Request{
		Cause: string(g.Cause), Family: string(g.Family), Failures: int(g.Count), Reserved: size(g.Reserved),
		Active: size(g.Allocated), Usable: size(g.Unallocated), PrivatePools: size(g.PrivatePools),
		Cut: g.Cut, Hint: g.Hint, Limit: size(g.Allowed), LargestPiece: oom.Unknown, OtherStreams: oom.Unknown,
		Pending: oom.Unknown, ReservedBefore: oom.Unknown,
		Refusal: finding.Refusal{Requested: size(g.Tried), Segment: size(g.Tried), DeviceFree: size(g.Free),
			DeviceTotal: size(g.Total), Elsewhere: size(g.Other), LargestUsable: oom.Unknown, Servable: oom.Unknown,
			AtLeast: oom.Unknown, Grown: oom.Unknown, Fraction: 1},
	}
	if g.Ledger != nil {
		for _, row := range []oom.Row{oom.RowForeign, oom.RowOthers} {
			if n, ok := g.Ledger.Get(row); ok {
				v.Elsewhere, v.Apart = units.Size(n), row == oom.RowOthers
			}
		}
	}
	return v
}

// expandable is what a replay of the snapshot says of expandable segments, "" for nothing, and the beginning of
// other advice after that.
func expandable(failure *oom.Report, hint string) (says, or string) {
	if failure == nil {
		return "", ""
	}
	for _, a := range failure.Answers {
		switch {
		case a.ID != "setting" || a.Conf != "expandable_segments:True" || a.Needs != "":
		case a.Fits == oom.Yes:
			return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in a replay of the snapshot it serves the " +
				"request.", "Or "
		default:
			although := ""
			if hint == "expandable_segments" {
				although = ", although the message recommends it"
			}
			return "expandable_segments:True does not help here" + although + ": in a replay of the snapshot the " +
				"request fails with it too.", "Instead, "
		}
	}
	return "", ""
}

// caveats adds what misleads in a message.
func caveats(g *oom.Group, f *finding.Finding) {
	v := f.Evidence.Request
	switch g.Family {
	case oomlog.Rejected, oomlog.Async, oomlog.MPS, oomlog.Outside: // they print the request itself
	default:
		switch v.Segment {
		case 2 << 20:
			f.Because("2.00 MiB is the segment that PyTorch asked the device for; the tensor has at most 1 MiB.")
		case 20 << 20:
			f.Because("20.0 MiB is the segment that PyTorch asked the device for; the tensor has between 1 and 20 MiB.")
		}
	}
	if slices.ContainsFunc(g.Processes, func(p oomlog.Process) bool { return p.Unavailable }) {
		f.Because("17179869184.00 GiB means \"not available\": the driver does not tell processes apart (Windows, " +
			"WSL, some containers).")
	}
	if g.Hint == "empty_cache" && v.Usable > 0 && g.Cause != oom.Room {
		f.Because("empty_cache(), which the message recommends, has nothing to return: PyTorch released its free " +
			"segments before it gave up.")
	}
	if g.Unified() {
		f.Because("The driver reports more free memory (%v) than the device has (%v), as it does of GPUs that use the "+
			"machine's memory: neither is sure.", v.DeviceFree, v.DeviceTotal)
	}
	refused := g.Cause == oom.Room || g.Cause == oom.TooFew
	if g.Backend == "xpu" && refused && v.Requested >= 4<<30 && v.Requested < v.DeviceTotal {
		f.Because("Some Intel GPUs refuse a single allocation of 4 GiB or more, whatever is free.")
		f.Do("Split the tensor into parts below 4 GiB.")
	}
	if n, ok := outside(g); ok && g.Cause == oom.Capacity {
		f.Because("%v of this process is outside PyTorch's allocator, more than the CUDA context takes: NCCL, another "+
			"framework, or a library with memory of its own.", n)
		f.Do("Look for what else in this process allocates memory of the device.")
	}
	if g.Spilled() {
		f.Because("PyTorch uses %s on a device of %s: the driver moved the rest to the machine's memory, which is "+
			"slow.", sized(v.Reserved), sized(v.DeviceTotal))
	}
	if v.PrivatePools != oom.Unknown {
		f.Because("%v of what counts as allocated is free in private pools of CUDA graphs.", v.PrivatePools)
	}
	if g.Ledger != nil && g.Ledger.Guessed != 0 {
		f.Because("Process %d is assumed to be this one, by its size: inside a container process numbers differ.",
			g.Ledger.Guessed)
	}
}

// outside is this process's memory outside PyTorch's allocator, where it is a large part of the device.
func outside(g *oom.Group) (units.Size, bool) {
	if g.Ledger == nil {
		return 0, false
	}
	n, ok := g.Ledger.Get(oom.RowNonPyTorch)
	return units.Size(n), ok && n >= max(2<<30, g.Ledger.Total/10)
}
