package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/s3"
)

// noise is data in which no bytes are like others.
func noise(n int) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

func read(t *testing.T, name string) ([]byte, error) {
	t.Helper()
	o, err := Open(With(t.Context()), name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(o)
}

// plain wants an error that has no secret and no address in it.
func plain(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{s3.Secret, "AKIA", "said"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("an error tells %q: %v", secret, err)
		}
	}
}

// Sizes around the borders of parts are read as they are, in a row and at random.
func TestRead(t *testing.T) {
	s := s3.New(t)
	for _, n := range []int{0, 1, headBytes - 1, headBytes, headBytes + 1, headBytes + partBytes,
		headBytes + 5*partBytes + 7} {
		want := noise(n)
		s.Put(t, "a b/ü+%25 ?#.bin", want)
		got, err := read(t, "s3://bucket/a b/ü+%25 ?#.bin")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: got %d, %v", n, len(got), err)
		}
		o, err := Open(With(t.Context()), "s3://bucket/a b/ü+%25 ?#.bin")
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := o.Stat(); info.Size() != int64(n) || info.IsDir() || info.Name() != "ü+%25 ?#.bin" {
			t.Errorf("%v %d", info.Name(), info.Size())
		}
		if tail := min(n, 10); n > 0 {
			p := make([]byte, tail)
			if _, err := o.ReadAt(p, int64(n-tail)); err != nil || !bytes.Equal(p, want[n-tail:]) {
				t.Errorf("the end of %d: %v", n, err)
			}
		}
		o.Close()
	}
}

// What passes is no error: throttling, connections that drop, answers that break off, and both at listing and writing.
func TestPasses(t *testing.T) {
	s := s3.New(t)
	want := noise(headBytes + 2*partBytes + 100)
	s.Put(t, "x", want)
	for name, fault := range map[string]func(n int64, w http.ResponseWriter, r *http.Request, serve http.Handler) bool{
		"503": func(n int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			if n%2 == 1 {
				s3.Refuse(w, 503, "SlowDown")
			}
			return n%2 == 1
		},
		"dropped": func(n int64, _ http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			if n%2 == 1 {
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"truncated": func(n int64, w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
			if n%3 == 0 || r.Method != http.MethodGet {
				return false
			}
			s3.Cut(w, r, serve, 100<<10)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
				return fault(n.Add(1), w, r, serve)
			})
			got, err := read(t, "s3://bucket/x")
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if all, err := List(With(t.Context()), "s3://bucket/", true); err != nil || len(all) == 0 {
				t.Errorf("%d listed, %v", len(all), err)
			}
			if err := Put(With(t.Context()), "s3://bucket/y", strings.NewReader("why"), 3, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// What does not pass is an error that says so, with its class and no secret.
func TestErrors(t *testing.T) {
	s := s3.New(t)
	s.Put(t, "x", noise(headBytes+2*partBytes))
	s.Put(t, "small", []byte("small"))
	refuse := func(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			s3.Refuse(w, status, code)
			return true
		}
	}
	for _, c := range []struct {
		object, says string
		class        error
		fault        func(http.ResponseWriter, *http.Request, http.Handler) bool
	}{
		{"s3://bucket/absent", "no such object", fs.ErrNotExist, nil},
		{"s3://nosuchbucket/x", "no such bucket", fs.ErrNotExist, nil},
		{"s3://bucket/x", "access denied", fs.ErrPermission, refuse(403, "AccessDenied")},
		{"s3://bucket/x", "expired", fs.ErrPermission, refuse(400, "ExpiredToken")},
		{"s3://bucket/x", "does not accept the credentials", fs.ErrPermission, refuse(403, "SignatureDoesNotMatch")},
		{"s3://bucket/x", "does not accept the credentials", fs.ErrPermission, refuse(404, "XAdminUserNotFound")},
		{"s3://bucket/x", "refuses: 418", ErrUnavailable, refuse(418, s3.Secret+"<!")},
		{"s3://bucket/x", "changed while it was read", ErrChanged,
			func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
				if s3.Reads(r) && !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
					s.Put(t, "x", noise(headBytes+2*partBytes+1))
				}
				return false
			}},
		{"s3://bucket/small", "does not match its checksum", ErrUnavailable,
			func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
				serve.ServeHTTP(header{w, "Etag", `"` + strings.Repeat("0", 32) + `"`}, r)
				return true
			}},
		{"s3://bucket/x", "other bytes", ErrUnavailable,
			func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
				if s3.Reads(r) {
					serve.ServeHTTP(header{w, "Content-Range", fmt.Sprintf("bytes 0-262143/%d", headBytes+2*partBytes+1)}, r)
				}
				return s3.Reads(r)
			}},
		{"s3://bucket/x", "elsewhere", ErrUnavailable,
			func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
				w.Header().Set("Location", "file:///etc/passwd")
				w.WriteHeader(307)
				return true
			}},
	} {
		s.Fault(c.fault)
		_, err := read(t, c.object)
		if err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, c.class) {
			t.Errorf("%s: %v, want %q", c.object, err, c.says)
		}
		plain(t, err)
	}
}

// What answers HEAD cannot say why, and is asked for it.
func TestWhy(t *testing.T) {
	s := s3.New(t)
	for code, want := range map[string]struct {
		status int
		says   string
	}{"ExpiredToken": {400, "have expired"}, "RequestTimeTooSkewed": {403, "clock"}, "AccessDenied": {403, "access denied"}} {
		s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			s3.Refuse(w, want.status, code)
			return true
		})
		if _, err := Stat(With(t.Context()), "s3://bucket/x"); !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// Nothing that a server says in place of an answer is shown.
func TestNoHTTP(t *testing.T) {
	s := s3.New(t)
	for says, answer := range map[string]string{
		"damaged":   "said " + s3.Secret + "\r\n\r\n",
		"elsewhere": "HTTP/1.1 301 said\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
		"answers":   "HTTP/1.1 301 said\r\nLocation: http://[said\r\nContent-Length: 0\r\n\r\n",
		"break off": "",
		"a name":    "HTTP/1.1 407 said\r\nContent-Length: 4\r\n\r\nsaid",
	} {
		s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(conn, answer)
				conn.Close()
			}
			return true
		})
		st := from(With(t.Context()))
		c, err := st.in(t.Context(), "bucket")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.head(t.Context(), "bucket", "x", "")
		if err = st.explain(t.Context(), "open", "x", err); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		plain(t, err)
	}
}

// The bucket is in the host's name or in the path, as the store wants, and the host is that of the region.
func TestAddress(t *testing.T) {
	s3.New(t)
	for _, c := range []struct{ endpoint, region, bucket, key, want string }{
		{"", "", "bucket", "a b/ü+%25?", "https://bucket.s3.us-east-1.amazonaws.com/a%20b/%C3%BC%2B%2525%3F"},
		{"", "", "bucket", "/x//../", "https://bucket.s3.us-east-1.amazonaws.com//x//../"},
		{"", "eu-north-1", "bucket", "x", "https://bucket.s3.eu-north-1.amazonaws.com/x"},
		{"", "cn-north-1", "bucket", "x", "https://bucket.s3.cn-north-1.amazonaws.com.cn/x"},
		{"", "", "with.dots", "x", "https://s3.us-east-1.amazonaws.com/with.dots/x"},
		{"", "", "Old_Name", "x", "https://s3.us-east-1.amazonaws.com/Old_Name/x"},
		{"https://s3.amazonaws.com", "eu-west-1", "bucket", "x", "https://bucket.s3.eu-west-1.amazonaws.com/x"},
		{"https://S3.example.com:443/", "eu-west-1", "bucket", "x", "https://s3.example.com/bucket/x"},
		{"http://[::1]:9000", "", "bucket", "x", "http://[::1]:9000/bucket/x"},
		{"https://storage.googleapis.com", "", "bucket", "x", "https://bucket.storage.googleapis.com/x"},
		{"https://0af1.r2.cloudflarestorage.com", "auto", "bucket", "x", "https://0af1.r2.cloudflarestorage.com/bucket/x"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", c.endpoint)
		st := from(With(t.Context()))
		at, err := st.in(t.Context(), c.bucket)
		if err != nil {
			t.Fatal(err)
		}
		at.region = first(c.region, at.region)
		if u, err := at.address(c.bucket, c.key, nil); err != nil || u.String() != c.want {
			t.Errorf("%v, %v, want %s", u, err, c.want)
		}
	}
}

// A tag that a proxy has made weak tells whether an object changes, and is not asked for.
func TestWeak(t *testing.T) {
	s := s3.New(t)
	want := noise(headBytes + partBytes + 1)
	s.Put(t, "x", want)
	s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
		if r.Header.Get("If-Match") != "" {
			s3.Refuse(w, 412, "PreconditionFailed")
			return true
		}
		weak := header{w, "Etag", `W/"tag"`}
		if serve.ServeHTTP(weak, r); r.Method == http.MethodHead {
			weak.Write(nil)
		}
		return true
	})
	if got, err := read(t, "s3://bucket/x"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// header overrides a header.
type header struct {
	http.ResponseWriter
	key, value string
}

func (h header) WriteHeader(status int) {
	h.Header().Set(h.key, h.value)
	h.ResponseWriter.WriteHeader(status)
}

func (h header) Write(p []byte) (int, error) {
	h.Header().Set(h.key, h.value)
	return h.ResponseWriter.Write(p)
}

// A bucket of another region is found there.
func TestRegion(t *testing.T) {
	s := s3.New(t)
	s.Put(t, "x", []byte("data"))
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.Header.Get("Authorization"), "/eu-north-1/s3/") {
			return false
		}
		w.Header().Set("X-Amz-Bucket-Region", "eu-north-1")
		s3.Refuse(w, 301, "PermanentRedirect")
		return true
	})
	if got, err := read(t, "s3://bucket/x"); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		w.Header().Set("X-Amz-Bucket-Region", "evil.example/#")
		s3.Refuse(w, 301, "PermanentRedirect")
		return true
	})
	if _, err := read(t, "s3://bucket/x"); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// A store that stops in the middle is asked again.
func TestStalled(t *testing.T) {
	usual := stalled
	stalled = 100 * time.Millisecond
	t.Cleanup(func() { stalled = usual })
	s := s3.New(t)
	s.Put(t, "x", []byte("data"))
	var n atomic.Int64
	s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
		if n.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Length", "4")
		w.Header().Set("Content-Range", "bytes 0-3/4")
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", "Wed, 12 Oct 2009 17:50:00 GMT")
		w.WriteHeader(206)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	if got, err := read(t, "s3://bucket/x"); err != nil || string(got) != "data" {
		t.Errorf("%q, %v", got, err)
	}
}

// A listing that trickles in is given up, and so is one that nobody ends.
func TestTrickle(t *testing.T) {
	usual := stalled
	stalled = 50 * time.Millisecond
	t.Cleanup(func() { stalled = usual })
	s := s3.New(t)
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(stalled / 5)
		}
		return true
	})
	if _, err := List(With(t.Context()), "s3://bucket/run/", true); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// Ctrl-C ends whatever is going on, at once.
func TestStop(t *testing.T) {
	s := s3.New(t)
	s.Put(t, "x", noise(headBytes+2*partBytes))
	for _, fault := range []func(http.ResponseWriter, *http.Request, http.Handler) bool{
		func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			<-r.Context().Done()
			return true
		},
		func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			s3.Refuse(w, 503, "SlowDown")
			return true
		},
	} {
		s.Fault(fault)
		ctx, stop := context.WithCancel(With(t.Context()))
		go func() {
			for s.Requests() == 0 {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
		if _, err := Open(ctx, "s3://bucket/x"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// An object that is kept is fetched once, and no other is taken for it.
func TestKeep(t *testing.T) {
	s := s3.New(t)
	want := noise(headBytes + 3*partBytes)
	s.Put(t, "x", want)
	ctx, release := Keep(With(t.Context()))
	defer release()
	var bytesRead atomic.Int64
	s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
		serve.ServeHTTP(counting{w, &bytesRead}, r)
		return true
	})
	both := make(chan error, 2)
	for range 2 {
		go func() {
			o, err := Open(ctx, "s3://bucket/x")
			if err == nil {
				var got []byte
				if got, err = io.ReadAll(o); err == nil && !bytes.Equal(got, want) {
					err = fmt.Errorf("%d other bytes", len(got))
				}
				o.Close()
			}
			both <- err
		}()
	}
	for range 2 {
		if err := <-both; err != nil {
			t.Error(err)
		}
	}
	if n := bytesRead.Load(); n > int64(len(want))+headBytes+1000 {
		t.Errorf("%d bytes were fetched of %d", n, len(want))
	}
	s.Put(t, "x", want[1:])
	if _, err := Open(ctx, "s3://bucket/x"); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// A listing of several pages is whole; an empty folder is none; a listing without end is refused.
func TestList(t *testing.T) {
	s := s3.New(t)
	for i := range 2500 {
		s.Put(t, fmt.Sprintf("run/%d/rank %04d.pickle", i/1000, i), []byte("x"))
	}
	ctx := With(t.Context())
	all, err := List(ctx, "s3://bucket/run", true)
	if err != nil || len(all) != 2500 || all[2499].Name() != "2/rank 2499.pickle" {
		t.Errorf("%d, %v", len(all), err)
	}
	if dirs, err := List(ctx, "s3://bucket/run/", false); err != nil || len(dirs) != 3 || !dirs[0].IsDir() {
		t.Errorf("%v, %v", dirs, err)
	}
	var n atomic.Int64
	s.Fault(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		busy := n.Add(1)%2 == 0 // from each page it goes on, not from the first
		if busy {
			s3.Refuse(w, 503, "SlowDown")
		}
		return busy
	})
	if again, err := List(ctx, "s3://bucket/run", true); err != nil || !slices.Equal(again, all) {
		t.Errorf("%d, %v", len(again), err)
	}
	s.Fault(nil)
	for name, is := range map[string]bool{"s3://bucket": true, "s3://bucket/run": true, "s3://bucket/run/0/": true,
		"s3://bucket/ru": false, "s3://bucket/none/": false} {
		info, err := Stat(ctx, name)
		if is != (err == nil && info.IsDir()) || !is && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := List(ctx, "s3://bucket/none/", false); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		fmt.Fprint(w, "<ListBucketResult><IsTruncated>true</IsTruncated>"+
			"<NextContinuationToken>again</NextContinuationToken></ListBucketResult>")
		return true
	})
	if _, err := List(ctx, "s3://bucket/run/", true); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		io.WriteString(w, "<ListBucketResult><Contents><Key>")
		for {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return true
			}
		}
	})
	if _, err := List(ctx, "s3://bucket/run/", true); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// Of two that put what must be new, one does.
func TestPut(t *testing.T) {
	s := s3.New(t)
	ctx := With(t.Context())
	if err := Put(ctx, "s3://bucket/a/b.html", strings.NewReader("one"), 3, true); err != nil {
		t.Fatal(err)
	}
	if err := Put(ctx, "s3://bucket/a/b.html", strings.NewReader("two"), 3, true); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if got, err := read(t, "s3://bucket/a/b.html"); string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if err := Put(ctx, "s3://bucket/a/b.html", strings.NewReader("two"), 3, false); err != nil {
		t.Error(err)
	}
	if err := Put(ctx, "s3://bucket/a/", strings.NewReader(""), 0, false); err == nil {
		t.Error("a folder was written")
	}
	for range 2 {
		if err := Remove(ctx, "s3://bucket/a/b.html"); err != nil {
			t.Error(err)
		}
	}
	if err := Put(ctx, "s3://bucket/empty", strings.NewReader(""), 0, true); err != nil {
		t.Error(err)
	}
	Remove(ctx, "s3://bucket/empty")
	if left := s.Keys(t); len(left) != 0 {
		t.Error(left)
	}
}

// Settings come from where AWS's tools have them, and those that are wrong are said.
func TestSettings(t *testing.T) {
	s := s3.New(t)
	s.Put(t, "x", []byte("data"))
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	os.WriteFile(config, []byte("[profile lab]\nregion = eu-west-3\nservices = here\ns3 =\n  addressing_style = path\n"+
		"[services here]\ns3 =\n  endpoint_url = "+s.URL+"\n[profile plain]\nendpoint_url = "+s.URL+"\n"+
		"[profile keys]\naws_access_key_id = AKIAKEYS\naws_secret_access_key = x\nendpoint_url = "+s.URL+"\n"+
		"[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = lab\n[profile sso]\nsso_session = y\n"), 0o600)
	keys := filepath.Join(dir, "credentials")
	os.WriteFile(keys, []byte("[lab]\naws_access_key_id = AKIALAB\naws_secret_access_key = "+s3.Secret+"\n"), 0o600)
	for k, v := range map[string]string{"AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": keys,
		"AWS_PROFILE": "lab", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_REGION": "",
		"AWS_ENDPOINT_URL_S3": ""} {
		t.Setenv(k, v)
	}
	var signed atomic.Value
	s.Fault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		signed.Store(r.Header.Get("Authorization"))
		return false
	})
	if got, err := read(t, "s3://bucket/x"); err != nil || string(got) != "data" ||
		!strings.Contains(signed.Load().(string), "AKIALAB/") || !strings.Contains(signed.Load().(string), "/eu-west-3/") {
		t.Errorf("%q, %v, %v", got, err, signed.Load())
	}
	t.Setenv("AWS_PROFILE", "plain") // without credentials
	if got, err := read(t, "s3://bucket/x"); err != nil || string(got) != "data" || signed.Load() != "" {
		t.Errorf("%q, %v, %v", got, err, signed.Load())
	}
	t.Setenv("AWS_PROFILE", "keys") // in the file of settings
	if got, err := read(t, "s3://bucket/x"); err != nil || string(got) != "data" ||
		!strings.Contains(signed.Load().(string), "AKIAKEYS/") {
		t.Errorf("%q, %v, %v", got, err, signed.Load())
	}
	for _, name := range []string{"role", "sso"} { // else the bucket would be asked as somebody else
		t.Setenv("AWS_PROFILE", name)
		if _, err := read(t, "s3://bucket/x"); err == nil || !strings.Contains(err.Error(), "export-credentials") {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("AWS_PROFILE", "absent")
	if _, err := read(t, "s3://bucket/x"); err == nil || !strings.Contains(err.Error(), `no such profile`) {
		t.Error(err)
	}
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_ENDPOINT_URL", "http://user:"+s3.Secret+"@host")
	if _, err := read(t, "s3://bucket/x"); err == nil || strings.Contains(err.Error(), s3.Secret) {
		t.Error(err)
	}
}

// Other URLs are refused, without what is secret in them.
func TestOthers(t *testing.T) {
	for name, says := range map[string]string{"https://bucket.s3.amazonaws.com/x?X-Amz-Signature=abc": "download it first",
		"gs://bucket/x": "HMAC", "az://bucket/x": "Azure", "s3://": "no valid bucket",
		"s3://AKIA:secret@bucket/x": "no valid",
		"file:///etc/passwd":        "download it first"} {
		is, err := Is(name)
		if is || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abc") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]bool{"s3://b12/x": true, "x": false, "./a://b": false, `C:\x`: false} {
		if is, err := Is(name); is != want || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}

// What a store says to be packed stays so: only what is wanted to be unpacked is.
func TestNotUnpacked(t *testing.T) {
	s := s3.New(t)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, 1<<20))
	w.Close()
	s.Put(t, "x", b.Bytes())
	s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
		w.Header().Set("Content-Encoding", "gzip")
		return false
	})
	if got, err := read(t, "s3://bucket/x"); err != nil || !slices.Equal(got, b.Bytes()) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A store that gives more than it was asked for, or does not say how much there is, is not believed.
func TestHostile(t *testing.T) {
	s := s3.New(t)
	for of, says := range map[string]string{"bytes 0-3/4": "", "bytes 0-3/*": "how large", "bytes 0-3/-7": "how large",
		"bytes 0-3/9223372036854775807": "how large", "": "how large"} {
		s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if of != "" {
				w.Header().Set("Content-Range", of)
			}
			w.Header().Set("ETag", `"`+strings.Repeat("-", 32)+`"`)
			w.Header().Set("Last-Modified", "Fri, 01 Jan 2021 00:00:00 GMT")
			w.WriteHeader(206)
			for {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return true
				}
			}
		})
		got, err := read(t, "s3://bucket/x")
		if says == "" && (err != nil || string(got) != "xxxx") ||
			says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %q, %v", of, got, err)
		}
	}
}
