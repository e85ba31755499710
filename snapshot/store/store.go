// Package store reads and writes objects of S3 stores, which names like s3://bucket/run/rank3.pickle stand for.
//
// A store is hostile as a file is: what it answers is bounded, redirects are not followed, and nothing that it says is
// shown but for the code of an error. Requests are tried again where that may help. No request is made, and no
// credentials are looked for, before such a name is opened.
//
// There are no folders in a store. What names have in common up to a slash is shown as one.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
)

const scheme = "s3://"

// ErrURL is the class of errors about names that are URLs of another kind.
var ErrURL = errors.New("URL that cannot be read")

type urlError struct{ why string }

func (e *urlError) Error() string        { return e.why }
func (e *urlError) Is(target error) bool { return target == ErrURL }

var address = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+)://`)

// Is reports whether a name is of an object, or of a folder of them. Of other URLs the error says why they are none.
func Is(name string) (bool, error) {
	m := address.FindStringSubmatch(name)
	if m == nil {
		return false, nil
	}
	why := "is a URL, and only files and s3://BUCKET/NAME can be read and written: download it first"
	switch strings.ToLower(m[1]) {
	case "s3":
		_, _, err := split(name)
		return err == nil, err
	case "gs", "gcs":
		why = "is of Google Cloud Storage, which is reached as s3://BUCKET/NAME: with HMAC keys as credentials, and " +
			"AWS_ENDPOINT_URL_S3=https://storage.googleapis.com"
	case "az", "abfs", "abfss", "wasb", "wasbs":
		why = "is of Azure Blob Storage, which does not speak the protocol of S3: copy the file first"
	}
	return false, &fs.PathError{Op: "open", Path: Shown(name), Err: &urlError{why}}
}

// Shown is a URL without what may be secret in it: names, passwords and signatures.
func Shown(name string) string {
	m := address.FindString(name)
	if m == "" || strings.EqualFold(m, scheme) && !strings.Contains(name, "@") {
		return name
	}
	rest, _, _ := strings.Cut(name[len(m):], "?")
	host, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if slash {
		host += "/"
	}
	return m + host + path
}

// split gives the bucket of a name, and the key in it, which may be empty.
func split(name string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(name[len(scheme):], "/")
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$`).MatchString(bucket) {
		err = &fs.PathError{Op: "open", Path: Shown(name), Err: errors.New("has no valid bucket; expected s3://BUCKET/NAME")}
	}
	return bucket, key, err
}

// Join is the name of what is called so in a folder.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// Parent is the name of the folder that something is in.
func Parent(name string) string {
	name = strings.TrimSuffix(name, "/")
	return name[:max(strings.LastIndexByte(name, '/'), len(scheme)-1)+1]
}

// What errors of stores are, beside fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
var (
	ErrChanged     = errors.New("changed while it was read; wait until its program has written it")
	ErrUnavailable = errors.New("the store does not answer as it should")
)

// fault is an error of a class.
type fault struct {
	msg   string
	class error
}

func (f *fault) Error() string { return f.msg }
func (f *fault) Unwrap() error { return f.class }

// Store is what one command has to do with stores: connections, credentials, and what is kept of objects.
type Store struct {
	mu       sync.Mutex
	settings *settings
	regions  map[string]string // by bucket, of those that are not in the settings'
}

type key struct{}

// With gives a context in which stores are reached with the same connections.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, new(Store)) }

func from(ctx context.Context) *Store {
	if s, ok := ctx.Value(key{}).(*Store); ok {
		return s
	}
	return new(Store)
}

var plainCode = regexp.MustCompile(`^[A-Za-z0-9. ]{1,64}$`)

// explain says what an error of a request is about. What a store says itself may have secrets in it, and is not shown.
func (s *Store) explain(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	if stopped := ctx.Err(); stopped != nil {
		return stopped
	}
	if errors.As(err, new(*fs.PathError)) {
		return err
	}
	var f *fault
	if !errors.As(err, &f) {
		f = s.judge(err)
	}
	return &fs.PathError{Op: op, Path: name, Err: f}
}

func (s *Store) judge(err error) *fault {
	answer := refused(err)
	if answer.Status == 0 {
		return &fault{"the store cannot be reached: " + network(err), ErrUnavailable}
	}
	code := answer.Code
	if !plainCode.MatchString(code) {
		code = fmt.Sprint(answer.Status)
	}
	switch code {
	case "NoSuchKey":
		return &fault{"no such object", fs.ErrNotExist}
	case "NoSuchBucket":
		return &fault{"no such bucket", fs.ErrNotExist}
	case "PreconditionFailed", "ConditionalRequestConflict":
		return &fault{ErrChanged.Error(), ErrChanged}
	case "InvalidBucketName", "InvalidURI", "XMinioInvalidObjectName":
		return &fault{"not a valid name in a store", nil}
	case "InvalidObjectState":
		return &fault{"the object is archived; restore it first", nil}
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired":
		return &fault{"the credentials have expired (" + code + ")", fs.ErrPermission}
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken",
		"XAdminUserNotFound": // versitygw's, with status 404, of a key that is nobody's
		return &fault{"the store does not accept the credentials (" + code + ")", fs.ErrPermission}
	case "RequestTimeTooSkewed":
		return &fault{"this machine's clock is wrong (" + code + ")", fs.ErrPermission}
	}
	switch status := answer.Status; {
	case status == 407:
		return &fault{noPass, ErrUnavailable}
	case status == 401 || status == 403:
		hint := ""
		if s.settings != nil && s.settings.anonymous {
			hint = "; no credentials were found in the environment or in ~/.aws"
		}
		return &fault{"access denied" + hint, fs.ErrPermission}
	case status/100 == 3:
		return &fault{"the store is elsewhere and does not say in which region; set AWS_REGION or AWS_ENDPOINT_URL_S3",
			ErrUnavailable}
	case status == 404:
		return &fault{"no such object", fs.ErrNotExist}
	}
	return &fault{fmt.Sprintf("the store refuses: %s", code), ErrUnavailable}
}
