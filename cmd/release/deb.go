package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"strings"
)

// deb packs the program for Debian and Ubuntu (deb(5)): an ar archive of two tars. It needs no other package.
// Tried: nfpm, which brings a hundred modules into go.mod for these lines.
func (r *release) deb(p *program, bill file) (file, error) {
	if p.os != "linux" {
		return file{}, nil
	}
	const doc = "usr/share/doc/snapana/"
	files := []file{{name: "usr/bin/snapana", data: p.data, exec: true}}
	for _, f := range r.docs.shared(p.os, "share/zsh/vendor-completions/_snapana") {
		f.name = "usr/" + f.name
		if strings.HasPrefix(f.name, "usr/share/man/") {
			packed, err := gzipped(f.data, gzip.BestCompression)
			if err != nil {
				return file{}, err
			}
			f.name, f.data = f.name+".gz", packed
		}
		files = append(files, f)
	}
	changes, err := gzipped(fmt.Appendf(nil, "snapana (%s) unstable; urgency=medium\n\n  * Built of commit %s.\n\n -- %s  %s\n",
		r.version.debian, r.commit, r.author, r.time.Format("Mon, 02 Jan 2006 15:04:05 -0700")), gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	notice, err := gzipped(r.legal.notice(p), gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	files = append(files,
		file{name: doc + "changelog.gz", data: changes},
		file{name: doc + "copyright", data: fmt.Appendf(nil, debCopyright, r.time.Year())},
		file{name: doc + "THIRD_PARTY_LICENSES.gz", data: notice},
		file{name: doc + billName, data: bill.data},
		file{name: "usr/share/lintian/overrides/snapana", data: []byte(debOverrides)})

	var sums bytes.Buffer
	size := 0
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
	}
	about := fmt.Appendf(nil, `Package: snapana
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Section: devel
Priority: optional
Description: %s
%s`, r.version.debian, p.arch, r.author, size, debSummary, debDescription)
	control, err := tarGz([]file{{name: "control", data: about}, {name: "md5sums", data: sums.Bytes()}}, r)
	if err != nil {
		return file{}, err
	}
	content, err := tarGz(files, r)
	if err != nil {
		return file{}, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []file{{name: "debian-binary", data: []byte("2.0\n")}, {name: "control.tar.gz", data: control},
		{name: "data.tar.gz", data: content}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, r.time.Unix(), 0, 0, 0o100644, len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return file{name: "snapana_" + r.version.debian + "_" + p.arch + ".deb", data: b.Bytes()}, nil
}

// tarGz is a tar of a package, whose names begin with "./" as dpkg-deb's do.
func tarGz(files []file, r *release) ([]byte, error) {
	for i := range files {
		files[i].name = "./" + files[i].name
	}
	data, err := tarred(files, r.time)
	if err != nil {
		return nil, err
	}
	return gzipped(data, gzip.DefaultCompression)
}

const debSummary = "explains what fills the GPU, from PyTorch memory snapshots"

const debDescription = ` snapana reads a memory snapshot of PyTorch's CUDA caching allocator and says
 what filled the GPU, why, and what to do next: leaks, fragmentation, genuine
 out-of-memory. It writes a report with a page that needs no network.
 .
 It needs no GPU and no Python, and never runs code from the file.
`

const debCopyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: snapana

Files: *
Copyright: %d the snapana authors
License: Apache-2.0
Comment: The program has other modules linked into it, whose licenses are in
 THIRD_PARTY_LICENSES.gz, in this folder.

License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`

// The program is static so that it runs on any Linux; without a C library there is nothing to harden.
const debOverrides = `snapana: statically-linked-binary [usr/bin/snapana]
`
