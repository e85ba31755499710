// Command snapana turns a PyTorch CUDA memory snapshot into a verdict.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is how long a command may take to end in order once it was told to stop: longer than a
// server waits for its last answers.
const patience = 3 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := make(chan int, 1)
	go func() { code <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case c := <-code:
		os.Exit(c)
	case <-ctx.Done():
	}
	stop() // from now on a signal kills
	select {
	case c := <-code:
		os.Exit(c)
	case <-time.After(patience):
		os.Exit(exitStopped)
	}
}
