package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/snapana/snapana/report/text"
)

// tunnel is the command that brings the address of a listener to the machine that the user came from by ssh, "" for who
// did not.
func tunnel(l net.Listener) string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	addr, _ := l.Addr().(*net.TCPAddr)
	if addr == nil {
		return ""
	}
	return sshCommand(os.Getenv("SSH_CONNECTION"), name, host, addr.Port)
}

// sshCommand forwards a port of this host. connection is what sshd says in SSH_CONNECTION (sshd(8)): the client's address
// and port, and the server's. The latter is where ssh reached this host, unless that means something else, or nothing, on
// the user's machine: then it is the host's name.
func sshCommand(connection, name, host string, port int) string {
	fields := strings.Fields(connection)
	if len(fields) != 4 {
		return ""
	}
	server, err := netip.ParseAddr(fields[2])
	ssh, err2 := strconv.ParseUint(fields[3], 10, 16)
	if err != nil || err2 != nil {
		return ""
	}
	if server = server.Unmap(); server.Zone() == "" && !server.IsLoopback() && !server.IsUnspecified() || host == "" {
		host = server.WithZone("").String()
	}
	if name != "" {
		host = name + "@" + host
	}
	command := fmt.Sprintf("ssh -N -L %d:127.0.0.1:%d ", port, port)
	if ssh != 22 {
		command += fmt.Sprintf("-p %d ", ssh)
	}
	return command + text.Arg(host)
}
