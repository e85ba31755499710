package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// settings are those that AWS's tools have, found in the same places.
type settings struct {
	endpoint  *url.URL
	region    string
	style     string // of addresses: "path", "virtual", or what the endpoint wants
	creds     *credentials.Credentials
	anonymous bool
	client    *http.Client
}

const (
	firstWait  = 100 * time.Millisecond
	tries      = 8 // a wait each, twice as long as the one before, together some ten seconds
	longest    = 4 * time.Second
	maxAnswer  = 8 << 20 // of anything but an object: a page of a listing is at most 6 MiB
	linkLocal  = "169.254."
	usualPlace = "us-east-1"
)

// stalled is how long a store may give nothing.
var stalled = 30 * time.Second

// profile is a section of ~/.aws/config, with what is named in it.
func profile() (get func(key, below string) string, name string, err error) {
	name = first(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	asked := name != ""
	if !asked {
		name = "default"
	}
	home, _ := os.UserHomeDir()
	paths := []string{first(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
		first(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials"))}
	file, err := ini.LoadSources(ini.LoadOptions{Loose: true, AllowNestedValues: true, SkipUnrecognizableLines: true},
		paths[0], paths[1])
	if err != nil {
		return nil, "", errors.New("the settings of AWS's tools in " + paths[0] + " cannot be read")
	}
	section, err := file.GetSection("profile " + name)
	if err != nil {
		section, err = file.GetSection(name)
	}
	if err != nil && asked {
		return nil, "", fmt.Errorf("AWS_PROFILE is %q, and there is no such profile in %s", name, paths[0])
	}
	return func(key, below string) string {
		if section == nil {
			return ""
		}
		if below == "" {
			return section.Key(key).String()
		}
		from := section
		if key == "services" {
			if from, err = file.GetSection("services " + section.Key(key).String()); err != nil {
				return ""
			}
			key = "s3"
		}
		for _, line := range from.Key(key).NestedValues() {
			if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == below {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}, name, nil
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

var plainRegion = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// find looks for the settings.
func find(ctx context.Context) (*settings, error) {
	get, name, err := profile()
	if err != nil {
		return nil, err
	}
	s := &settings{style: get("s3", "addressing_style")}
	s.region = first(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), get("region", ""), usualPlace)
	if !plainRegion.MatchString(s.region) {
		return nil, fmt.Errorf("the region %.40q is none", s.region)
	}
	where := first(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), get("services", "endpoint_url"),
		get("endpoint_url", ""))
	if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		where = ""
	}
	if where != "" {
		s.endpoint, err = url.Parse(where)
		if err != nil || s.endpoint.Scheme != "http" && s.endpoint.Scheme != "https" || s.endpoint.Host == "" ||
			s.endpoint.User != nil || strings.Trim(s.endpoint.Path, "/") != "" {
			return nil, errors.New("AWS_ENDPOINT_URL, or endpoint_url, is not like https://HOST:PORT")
		}
		usual := map[string]string{"http": ":80", "https": ":443"}[s.endpoint.Scheme] // which proxies drop, signed or not
		s.endpoint.Host = strings.TrimSuffix(strings.ToLower(s.endpoint.Host), usual)
	} else {
		s.endpoint = &url.URL{Scheme: "https", Host: amazon(s.region)}
	}
	transport, err := newTransport()
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Transport: transport, CheckRedirect: stay}
	if how := foreign(get); how != "" && os.Getenv("AWS_ACCESS_KEY_ID") == "" && get("aws_access_key_id", "") == "" {
		return nil, fmt.Errorf("the profile %q has credentials by %s, which is not supported: run `aws configure "+
			"export-credentials` for it, and set the variables that it prints", name, how)
	}
	s.login(ctx, name)
	return s, nil
}

// amazon is the host of a region.
func amazon(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "s3." + region + ".amazonaws.com.cn"
	}
	return "s3." + region + ".amazonaws.com"
}

// stay follows no redirects: what is signed for one goes nowhere else, and no tokens do.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// foreign is a way to credentials that a profile names and that is not gone here; else they would be those of somebody
// else, as of the machine, or none.
func foreign(get func(key, below string) string) string {
	switch {
	case get("role_arn", "") != "" && os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") == "":
		return "role_arn"
	case get("sso_session", "") != "" || get("sso_start_url", "") != "":
		return "SSO"
	case get("login_session", "") != "":
		return "login_session"
	}
	return ""
}

// login finds credentials where AWS's tools do. Without any, requests are not signed, which public buckets allow.
func (s *settings) login(ctx context.Context, profile string) {
	cloud := &credentials.IAM{Region: s.region,
		Client: &http.Client{Timeout: 10 * time.Second, Transport: s.client.Transport, CheckRedirect: stay}}
	home, _ := os.UserHomeDir()
	section := profile // of the file of settings, which may have keys too
	if profile != "default" {
		section = "profile " + profile
	}
	files := &credentials.Chain{Providers: []credentials.Provider{&credentials.FileAWSCredentials{Profile: profile},
		&credentials.FileAWSCredentials{Filename: first(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
			Profile: section}}}
	chain := []credentials.Provider{&credentials.EnvAWS{}, files, cloud}
	offered := first(os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
	if os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" {
		chain[1], chain[2] = chain[2], chain[1]
	} else if offered == "" && strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		chain = chain[:2]
	}
	s.creds = credentials.NewChainCredentials(chain)
	done := make(chan error, 1)
	go func() {
		v, err := s.creds.GetWithContext(&credentials.CredContext{Client: cloud.Client})
		if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
			err = errors.New("none")
		}
		done <- err
	}()
	select {
	case err := <-done:
		s.anonymous = err != nil
	case <-ctx.Done():
		s.anonymous = true
	}
}

// newTransport makes connections that end when nothing comes, with answers that are bounded.
func newTransport() (http.RoundTripper, error) {
	plain := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	near := &net.Dialer{Timeout: time.Second} // what is only there inside of a cloud
	t := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if strings.HasPrefix(r.URL.Host, linkLocal) {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dial := plain
			if strings.HasPrefix(addr, linkLocal) {
				dial = near
			}
			conn, err := dial.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return patient{conn}, nil
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
			if res.StatusCode/100 != 2 {
				return proxied(res.StatusCode)
			}
			return nil
		},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  stalled,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    2 * ahead,
		MaxResponseHeaderBytes: 1 << 20,
		DisableCompression:     true,
	}
	if path := os.Getenv("AWS_CA_BUNDLE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("AWS_CA_BUNDLE: the file has no certificate")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return bounded{t}, nil
}

const noPass = "the proxy wants a name and a password, and HTTP_PROXY or HTTPS_PROXY has none that it takes"

// proxied is the error of a proxy that does not let a request through.
func proxied(status int) error {
	switch {
	case status == http.StatusProxyAuthRequired:
		return &fault{noPass, ErrUnavailable}
	case status/100 == 4:
		return &fault{fmt.Sprintf("the proxy refuses to connect to it (status %d)", status), ErrUnavailable}
	}
	return fmt.Errorf("proxy: status %d", status)
}

// patient is a connection on which writing ends when nobody takes what is written.
type patient struct{ net.Conn }

func (c patient) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(stalled))
	return c.Conn.Write(p)
}

// bounded bounds what a store answers, but for objects, of which readers take what they asked for.
type bounded struct{ http.RoundTripper }

type pages struct{}

// RoundTrip is that of http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if left, ok := r.Context().Value(pages{}).(*atomic.Int64); ok && left.Add(-1) < 0 {
		return nil, &fault{"the listing has no end", ErrUnavailable}
	}
	ctx, stop := context.WithCancel(r.Context())
	res, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		stop()
		return nil, err
	}
	a := &answer{ReadCloser: res.Body, left: math.MaxInt, stop: stop}
	if r.Header.Get("Range") == "" || res.StatusCode/100 != 2 {
		a.left, a.late = maxAnswer, time.AfterFunc(2*stalled, stop)
	}
	res.Body = a
	return res, nil
}

// answer is what a store answers, up to a limit, and, but for objects, within a time.
type answer struct {
	io.ReadCloser
	left int
	stop context.CancelFunc
	late *time.Timer // nil for objects
}

// Close is that of io.Closer.
func (a *answer) Close() error {
	if a.late != nil {
		a.late.Stop()
	}
	defer a.stop()
	return a.ReadCloser.Close()
}

func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, &fault{"its answer has no end", ErrUnavailable}
	}
	n, err := a.ReadCloser.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

// in is the store in the region that a bucket is known to be in.
func (s *Store) in(ctx context.Context, bucket string) (*service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings == nil {
		found, err := find(ctx)
		if err != nil {
			return nil, &fault{err.Error(), nil}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.settings, s.regions = found, map[string]string{}
	}
	return &service{s.settings, first(s.regions[bucket], s.settings.region)}, nil
}

// do makes requests of a bucket: again where that may help, and in the region that the store names.
func (s *Store) do(ctx context.Context, bucket string, request func(*service) error) error {
	moved := false
	for try := 0; ; try++ {
		c, err := s.in(ctx, bucket)
		if err != nil {
			return err
		}
		if err = request(c); err == nil || ctx.Err() != nil {
			return err
		}
		if to := refused(err).Region; !moved && to != c.region && plainRegion.MatchString(to) {
			moved = true
			s.mu.Lock()
			s.regions[bucket] = to
			s.mu.Unlock()
			continue
		}
		if !passes(err, try) {
			return err
		}
		wait(ctx, try)
	}
}

// passes reports whether an error may be gone at the next of so many tries.
func passes(err error, try int) bool {
	r := refused(err)
	switch {
	case try+1 >= tries, errors.As(err, new(*fault)):
		return false
	case r.Status != 0:
		return r.Status == 408 || r.Status == 429 || r.Status >= 500 && r.Status != 501 || r.Code == "RequestTimeout"
	case errors.As(err, new(*net.DNSError)), errors.As(err, new(*net.OpError)) && strings.Contains(err.Error(), "dial"):
		return try < 2
	}
	return !errors.As(err, new(*tls.CertificateVerificationError)) && !errors.As(err, new(x509.UnknownAuthorityError))
}

// wait waits between tries, not as long as others that began at the same time.
func wait(ctx context.Context, try int) {
	d := min(firstWait<<try, longest)
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// network says what is wrong with a connection, in words that have no address with secrets in it, and none of the store.
func network(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var u *url.Error
	switch {
	case errors.As(err, &dns):
		return "the name " + dns.Name + " is not known"
	case errors.As(err, new(x509.HostnameError)):
		return "its certificate is for other hosts"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "nobody that is trusted here has signed its certificate; AWS_CA_BUNDLE names a file of those to trust"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "its certificate is not valid, or not at this time"
	case errors.As(err, &op):
		return op.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "its answers break off"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "it has not answered for a while"
	case errors.As(err, &u) && strings.Contains(u.Err.Error(), "proxy"):
		return "the proxy that HTTP_PROXY or HTTPS_PROXY names is not reached, or its address is not valid"
	case errors.As(err, &u) && !strings.Contains(u.Err.Error(), `"`): // net/http quotes what was answered
		return u.Err.Error()
	}
	return "its answers are damaged"
}
