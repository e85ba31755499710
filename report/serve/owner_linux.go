package serve

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// tellsOwners says that the system tells whose a connection is.
const tellsOwners = true

// owner is the user whose socket is at one end of a connection of this machine: Linux lists all TCP sockets, each with
// both its ends and the user (proc_pid_net(5)).
func owner(local, remote *net.TCPAddr) (uid int, ok bool) {
	const mapped = "0000000000000000FFFF0000" // before an IPv4 address that is used as one of IPv6
	ends := fmt.Sprintf("%s %s", proc(local), proc(remote))
	ends6 := fmt.Sprintf("%s%s %s%s", mapped, proc(local), mapped, proc(remote))
	for range 3 { // what is listed shifts while it is read
		for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
			f, err := os.Open(name)
			if err != nil {
				continue
			}
			for lines := bufio.NewScanner(f); lines.Scan() && !ok; {
				// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
				field := strings.Fields(lines.Text())
				if len(field) < 8 || field[3] != "01" { // established
					continue
				}
				if both := field[1] + " " + field[2]; both == ends || both == ends6 {
					uid, err = strconv.Atoi(field[7])
					ok = err == nil
				}
			}
			f.Close()
			if ok {
				return uid, true
			}
		}
	}
	return 0, false
}

// proc is an address as Linux lists it: the four bytes as one number of this machine.
func proc(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip), a.Port)
}
