package serve

import (
	"os/exec"
	"runtime"
)

// Browse starts the system's browser with an address, and does not wait for it.
func Browse(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait() // else it stays a zombie
	return nil
}
