package main

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/report/text"
)

func TestLook(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		columns  int
		env      map[string]string
		want     text.Options
	}{
		{false, 0, nil, text.Options{}},
		{true, 90, nil, text.Options{Color: true, Width: 90}},
		{true, 90, map[string]string{"NO_COLOR": "1"}, text.Options{Width: 90}},
		{true, 90, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, text.Options{Width: 90}},
		{false, 0, map[string]string{"CLICOLOR_FORCE": "1"}, text.Options{Color: true}},
		{false, 0, map[string]string{"CLICOLOR_FORCE": "0"}, text.Options{}},
	} {
		if got := lookOn(c.terminal, c.columns, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := look(new(bytes.Buffer)); got.Width != 0 {
		t.Errorf("a buffer is %d columns wide", got.Width)
	}
}
