package analyze_test

import (
	"context"
	"fmt"
	"log"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/snapshot/load"
)

// Opens a snapshot, analyzes it, and prints the verdict and who allocated what was live at the peak.
func Example() {
	ctx := context.Background()
	s, err := load.Open(ctx, "../fixtures/ghost.pickle", load.Options{})
	if err != nil {
		log.Fatal(err)
	}
	r, err := analyze.Run(ctx, s, analyze.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verdict.Status)
	gpu := &r.Devices[0]
	sites := attribution.Hold(s, gpu.Timeline, gpu.Moment("peak").State, attribution.Query{By: attribution.BySite})
	for _, row := range sites.Rows[:3] {
		fmt.Printf("%4d MiB in %2d blocks  %s\n", row.Rounded>>20, row.Count, row.Name)
	}
	// Output:
	// ghost
	//  960 MiB in 288 blocks  model.py:39 forward
	//  288 MiB in 96 blocks  model.py:26 forward
	//  256 MiB in 24 blocks  scenarios.py:28 lm_loss
}
