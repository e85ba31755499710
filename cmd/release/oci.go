package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The forms of https://github.com/opencontainers/image-spec v1.1: what is read here and no more.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	imageIndex struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []descriptor      `json:"manifests"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	imageManifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	imageConfig struct {
		Created time.Time `json:"created"`
		platform
		Config  runConfig   `json:"config"`
		RootFS  rootFS      `json:"rootfs"`
		History []layerMade `json:"history"`
	}
	runConfig struct {
		User       string
		Env        []string
		Entrypoint []string
		Labels     map[string]string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	layerMade struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}
	// dockerImage is a row of manifest.json, by which `docker load` of releases before 25 finds its image.
	dockerImage struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// nobody runs the container: no root, and no user that a host would know.
const nobody = "65532:65532"

// layout collects the files of an image, which are named by their checksums.
type layout struct{ files []file }

func (l *layout) add(mediaType string, data []byte) descriptor {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	l.files = append(l.files, file{name: blob(digest), data: data})
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(data)}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.add(mediaType, data), err
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// image packs the Linux programs as container images with one file each, in a tar that skopeo, podman and docker read.
// It is no file where no such program is built.
func (r *release) image() ([]file, error) {
	var l layout
	tag := strings.ReplaceAll(r.version.plain, "+", "_") // a tag has no plus
	labels := map[string]string{"org.opencontainers.image.title": "snapana", "org.opencontainers.image.version": r.version.plain,
		"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.description": summary}
	all := imageIndex{SchemaVersion: 2, MediaType: indexType, Annotations: labels}
	var docker []dockerImage
	for _, p := range r.programs {
		if p.os != "linux" {
			continue
		}
		made, loaded, err := l.platform(r, p, labels)
		if err != nil {
			return nil, err
		}
		all.Manifests = append(all.Manifests, made)
		name := "snapana:" + tag
		if p.arch != "amd64" {
			name += "-" + p.arch // docker load has no index of platforms
		}
		loaded.RepoTags = []string{name}
		docker = append(docker, loaded)
	}
	if len(docker) == 0 {
		return nil, nil
	}
	index, err := l.addJSON(indexType, all)
	if err != nil {
		return nil, err
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "snapana:" + tag}
	var outer, old bytes.Buffer
	top := imageIndex{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{index}}
	if err := json.NewEncoder(&outer).Encode(top); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(&old).Encode(docker); err != nil {
		return nil, err
	}
	files := append([]file{{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}` + "\n")},
		{name: "index.json", data: outer.Bytes()}, {name: "manifest.json", data: old.Bytes()}}, l.files...)
	data, err := tarred(files, r.time)
	return []file{{name: "snapana-" + r.version.plain + "-oci.tar", data: data}}, err
}

// platform adds the image of one program.
func (l *layout) platform(r *release, p *program, labels map[string]string) (descriptor, dockerImage, error) {
	var none dockerImage
	root, err := tarred([]file{{name: "snapana", data: p.data, exec: true}}, r.time)
	if err != nil {
		return descriptor{}, none, err
	}
	packed, err := gzipped(root, gzip.DefaultCompression)
	if err != nil {
		return descriptor{}, none, err
	}
	layer := l.add(layerType, packed)
	on := platform{p.arch, p.os}
	config, err := l.addJSON(configType, imageConfig{Created: r.time, platform: on,
		Config:  runConfig{User: nobody, Env: []string{"PATH=/"}, Entrypoint: []string{"/snapana"}, Labels: labels},
		RootFS:  rootFS{"layers", []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}},
		History: []layerMade{{r.time, "go run ./cmd/release"}}})
	if err != nil {
		return descriptor{}, none, err
	}
	manifest, err := l.addJSON(manifestType, imageManifest{SchemaVersion: 2, MediaType: manifestType, Config: config,
		Layers: []descriptor{layer}, Annotations: labels})
	manifest.Platform = &on
	return manifest, dockerImage{Config: blob(config.Digest), Layers: []string{blob(layer.Digest)}}, err
}
