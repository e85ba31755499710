package mcp_test

import "io"

func pipe() (io.ReadCloser, io.WriteCloser) { return io.Pipe() }
