package phase

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

var unknown = Lap{Step: -1, Start: -1, Peak: -1, End: -1, Left: -1, AtMost: -1, Reserved: -1, First: -1, Last: -1, At: -1}

// fromRun pairs the ends of the laps that the recorder noted.
func fromRun(run *sidecar.Run) []lap {
	if run == nil {
		return nil
	}
	var out []lap
	byID := map[int64]int{}
	for i := range run.Phases {
		p := &run.Phases[i]
		if p.ID == nil {
			continue
		}
		if p.Stage == sidecar.PhaseEnd {
			if at, ok := byID[*p.ID]; ok && out[at].end == nil {
				l := &out[at]
				l.end, l.to, l.ended, l.error, l.Ended = p, p.Time/1000, true, p.Error, true
			}
			continue
		}
		if _, twice := byID[*p.ID]; twice || p.Stage != sidecar.PhaseBegin || p.Lap == nil || *p.Lap < 0 ||
			*p.Lap >= 1<<62 || len(out) == maxLaps {
			continue
		}
		byID[*p.ID] = len(out)
		l := lap{name: p.Name, source: Recorder, number: *p.Lap, step: -1, begin: p, from: p.Time / 1000,
			begun: -1, finished: -1, Lap: unknown}
		l.Number = l.number + 1
		if p.Step != nil {
			l.Step = *p.Step
		}
		out = append(out, l)
	}
	return out
}

// fromAnnotations takes laps from record_function scopes, of kinds that the recorder does not name.
func fromAnnotations(s *snapshot.Snapshot, t *timeline.Timeline, recorded []lap) []lap {
	scopes := steps.Scopes(s)
	sorting.Stable(scopes, func(a, b steps.Scope) int { return int(max(min(began(a)-began(b), 1), -1)) })
	named := map[string]bool{}
	for i := range recorded {
		named[recorded[i].name] = true
	}
	var out []lap
	count := map[string]int64{}
	for _, sc := range scopes {
		name := steps.KindOf(s.Strings.Get(sc.Name))
		if name == "" || named[name] || len(out) == maxLaps || sc.Start != 0 && sc.End != 0 && sc.End < sc.Start {
			continue
		}
		l := lap{name: name, source: Annotation, number: count[name], from: sc.Start, to: sc.End, ended: sc.End != 0,
			begun: -1, finished: -1, Lap: unknown}
		count[name]++
		l.Number, l.Ended = l.number+1, l.ended
		out = append(out, l)
	}
	return out
}

// torchs are how the names of torch's own scopes begin: of optimizers and loaders (torch/optim/optimizer.py,
// torch/utils/data/dataloader.py), its profiler, its compiler (torch/_dynamo, torch/_inductor) and its ways to
// distribute work (torch/nn/parallel, torch/csrc/distributed/c10d), 2.5 to 2.15.
var torchs = []string{"Optimizer.", "enumerate(DataLoader)", "enumerate(DataPipe)", "ProfilerStep", "PROFILER_",
	"Torch-Compiled Region", "TorchDynamo ", "CompiledFunction", "AOTDispatcher", "Pregraph ", "## ", "DataParallel.",
	"DistributedDataParallel.", "FSDP", "FullyShardedDataParallel.", "nccl:", "gloo:", "c10d::", "record_param_comms",
	"autograd::", "torch::", "torch.distributed."}

// byLibrary reports whether a scope is torch's own.
func byLibrary(name string) bool {
	return slices.ContainsFunc(torchs, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// began is when a scope began, or before its end.
func began(sc steps.Scope) int64 {
	if sc.Start == 0 {
		return sc.End
	}
	return sc.Start
}
