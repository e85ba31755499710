package ranks

import (
	"context"
	"runtime"
	"sync"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/snapshot"
)

// maxReaders bounds how many snapshots are in memory at a time.
const maxReaders = 4

// Read opens the snapshots of a run, some at a time, analyzes each without a replay, and compares
// them. Those that cannot be read are ranks of which nothing is known; the error is that of a
// canceled ctx.
func Read(ctx context.Context, files []string, open func(file string) (*snapshot.Snapshot, error),
	opt analyze.Options) (*Comparison, error) {
	opt.NoReplay = true
	read := func(file string) Rank {
		s, err := open(file)
		if err != nil {
			return Unread(file, err)
		}
		r, err := analyze.Run(ctx, s, opt)
		if err != nil {
			return Unread(file, err)
		}
		return Reduce(file, r)
	}
	list := make([]Rank, len(files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, min(runtime.NumCPU(), maxReaders))
	for i, file := range files {
		slots <- struct{}{}
		wg.Go(func() {
			list[i] = read(file)
			<-slots
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return Compare(list), nil
}
