package store

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// service is a store in one of its regions. Its requests are those of the S3 API's reference, version 2006-03-01.
type service struct {
	*settings
	region string
}

// refusal is an answer that is none.
type refusal struct {
	XMLName xml.Name `xml:"Error"`
	Status  int      `xml:"-"` // of HTTP
	Code    string   // what the store calls it
	Region  string   // in which the bucket is, "" where it does not say
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d, %s", r.Status, r.Code) }

// refused is the refusal that an error is, or one of nothing.
func refused(err error) *refusal {
	r := new(refusal)
	errors.As(err, &r)
	return r
}

// codes are those of answers that tell none, as those to HEAD do.
var codes = map[int]string{403: "AccessDenied", 404: "NoSuchKey", 409: "Conflict", 412: "PreconditionFailed"}

// refusalOf reads what a store refuses with.
func refusalOf(res *http.Response, key string) error {
	r := new(refusal)
	if err := xml.NewDecoder(res.Body).Decode(r); err != nil {
		if errors.As(err, new(*fault)) {
			return err
		}
		if r.Code = codes[res.StatusCode]; res.StatusCode == 404 && key == "" {
			r.Code = "NoSuchBucket"
		}
	}
	r.Status, r.Region = res.StatusCode, first(strings.TrimSpace(r.Region), res.Header.Get("X-Amz-Bucket-Region"))
	return r
}

// address is that of an object, or of a bucket, in the style that the store wants: the bucket is in the name of the
// host or the first part of the path.
func (s *service) address(bucket, key string, query url.Values) (*url.URL, error) {
	if !utf8.ValidString(key) {
		return nil, &fault{"not a valid name in a store", nil}
	}
	at := url.URL{Scheme: s.endpoint.Scheme, Host: s.endpoint.Host}
	if s.region != s.settings.region && s3utils.IsAmazonEndpoint(*s.endpoint) &&
		!s3utils.IsAmazonFIPSEndpoint(*s.endpoint) && !s3utils.IsAmazonPrivateLinkEndpoint(*s.endpoint) {
		at.Host = amazon(s.region)
	}
	inHost := s.style != "path" && hostable.MatchString(bucket) &&
		(s.style == "virtual" || s3utils.IsVirtualHostSupported(at, bucket))
	path := "/" + s3utils.EncodePath(key)
	if inHost {
		at.Host = bucket + "." + at.Host
	} else {
		path = "/" + bucket + path
	}
	where := at.Scheme + "://" + at.Host + path
	if query != nil {
		where += "?" + s3utils.QueryEncode(query)
	}
	u, err := url.Parse(where)
	if err != nil {
		return nil, &fault{"no store can be at this endpoint", nil}
	}
	return u, nil
}

// hostable are names of buckets that can be a part of a host's.
var hostable = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// nothing is the SHA-256 of no bytes.
var nothing = hex.EncodeToString(sha256.New().Sum(nil))

// ask makes a request without a body, with further headers by name and value. The answer has a status of success.
func (s *service) ask(ctx context.Context, method, bucket, key string, query url.Values, headers ...string,
) (*http.Response, error) {
	at, err := s.address(bucket, key, query)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Content-Sha256", nothing)
	return s.do(r, key, headers)
}

// do signs a request and makes it.
func (s *service) do(r *http.Request, key string, headers []string) (*http.Response, error) {
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	r.Header.Set("User-Agent", "snapana")
	if !s.anonymous {
		has, err := s.creds.GetWithContext(&credentials.CredContext{Client: s.client})
		if err != nil {
			return nil, &fault{"no credentials can be had any more", fs.ErrPermission}
		}
		r = signer.SignV4(*r, has.AccessKeyID, has.SecretAccessKey, has.SessionToken, s.region)
	}
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		return nil, refusalOf(res, key)
	}
	return res, nil
}

// meta is what a store tells of an object.
type meta struct {
	header http.Header
	size   int64 // of the object or of the part of it that was asked for, -1 where it does not say
	etag   string
	time   time.Time // zero where it does not say
}

func metaOf(res *http.Response) meta {
	modified, _ := http.ParseTime(res.Header.Get("Last-Modified"))
	return meta{res.Header, res.ContentLength, strings.Trim(res.Header.Get("ETag"), `"`), modified}
}

// head asks what an object is. With an etag it is that version of it, or none.
func (s *service) head(ctx context.Context, bucket, key, etag string) (meta, error) {
	res, err := s.ask(ctx, http.MethodHead, bucket, key, nil, "If-Match", quoted(etag), "X-Amz-Checksum-Mode", "ENABLED")
	if status := refused(err).Status; status == 400 || status == 403 {
		// What answers HEAD has no body to say why, as that credentials have expired.
		body, _, why := s.get(ctx, bucket, key, etag, 0, 0)
		if why == nil {
			body.Close()
		} else if refused(why).Status == status {
			err = why
		}
	}
	if err != nil {
		return meta{}, err
	}
	res.Body.Close()
	return metaOf(res), nil
}

// get asks for the bytes of an object from one up to another, both included. With an etag they are of that version;
// without, the store may tell checksums.
func (s *service) get(ctx context.Context, bucket, key, etag string, from, to int64) (io.ReadCloser, meta, error) {
	sums := ""
	if etag == "" {
		sums = "ENABLED"
	}
	res, err := s.ask(ctx, http.MethodGet, bucket, key, nil, "Range", fmt.Sprintf("bytes=%d-%d", from, to),
		"If-Match", quoted(etag), "X-Amz-Checksum-Mode", sums)
	if err != nil {
		return nil, meta{}, err
	}
	return res.Body, metaOf(res), nil
}

// quoted is a tag as If-Match has it, which weak tags never match.
func quoted(etag string) string {
	if etag == "" || strings.HasPrefix(etag, "W/") {
		return ""
	}
	return `"` + etag + `"`
}

// put writes an object as a whole. With fresh, nothing may be there.
func (s *service) put(ctx context.Context, bucket, key string, data io.ReaderAt, size int64, fresh bool) error {
	at, err := s.address(bucket, key, nil)
	if err != nil {
		return err
	}
	sum, old := sha256.New(), md5.New()
	if _, err := io.Copy(io.MultiWriter(sum, old), io.NewSectionReader(data, 0, size)); err != nil {
		return &fault{err.Error(), nil}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, at.String(), io.NewSectionReader(data, 0, size))
	if err != nil {
		return err
	}
	if r.ContentLength = size; size == 0 {
		r.Body = http.NoBody
	}
	none := ""
	if fresh {
		none = "*"
	}
	res, err := s.do(r, key, []string{"Content-Type", kind(key), "If-None-Match", none,
		"Content-Md5", base64.StdEncoding.EncodeToString(old.Sum(nil)),
		"X-Amz-Content-Sha256", hex.EncodeToString(sum.Sum(nil))})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// remove removes an object, if it is there.
func (s *service) remove(ctx context.Context, bucket, key string) error {
	res, err := s.ask(ctx, http.MethodDelete, bucket, key, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// listing is a page of what a bucket has.
type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	Encoding    string   `xml:"EncodingType"`
	IsTruncated bool
	Next        string `xml:"NextContinuationToken"`
	Contents    []struct {
		Key          string
		Size         int64
		LastModified string
	}
	CommonPrefixes []struct{ Prefix string }
}

// page asks for a page of a listing.
func (s *service) page(ctx context.Context, bucket string, query url.Values) (*listing, error) {
	res, err := s.ask(ctx, http.MethodGet, bucket, "", query)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	page := new(listing)
	if err := xml.NewDecoder(res.Body).Decode(page); err != nil {
		return nil, err
	}
	if page.IsTruncated && page.Next == "" {
		return nil, &fault{"the listing does not say how it goes on", ErrUnavailable}
	}
	return page, nil
}

// each gives what is on a page, folders last, until it is enough.
func (l *listing) each(give func(name string, size int64, modified time.Time) (more bool)) (more bool) {
	plain := func(name string) string {
		if is, err := url.QueryUnescape(name); err == nil && l.Encoding == "url" {
			return is
		}
		return name
	}
	for _, o := range l.Contents {
		modified, _ := time.Parse(time.RFC3339, o.LastModified)
		if !give(plain(o.Key), o.Size, modified) {
			return false
		}
	}
	for _, dir := range l.CommonPrefixes {
		if !give(plain(dir.Prefix), 0, time.Time{}) {
			return false
		}
	}
	return true
}
