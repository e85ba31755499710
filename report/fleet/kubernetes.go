package fleet

import (
	"encoding/json"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

// Cluster is where the tasks of a Job run on Kubernetes.
type Cluster struct {
	Image    string
	Claims   []Claim
	Secret   string // whose keys are variables of the tasks, "" for none
	Parallel int    // tasks at once, at most
}

// Claim is a persistent volume, and where it is mounted.
type Claim struct{ Name, Path string }

// CompletionsMost is how many tasks an Indexed Job has at most here: Kubernetes takes 100,000, and keeps what came of
// each in the Job's status.
const CompletionsMost = 10000

// Kubernetes is the manifest of an Indexed Job with a task for each index, and of a Job that compares the digests, which
// is suspended: one Job cannot wait for another.
func (j *Job) Kubernetes(c Cluster) (string, error) {
	var b strings.Builder
	err := manifest.Execute(&b, map[string]any{
		"Name": j.Name, "Tasks": len(j.Plan.Tasks), "Parallel": min(len(j.Plan.Tasks), c.Parallel),
		"Task":  pod{c, append(escaped(j.task()), "$(JOB_COMPLETION_INDEX)"), mebibytes(j.Plan.Memory())},
		"Merge": pod{c, escaped(j.merge()), mebibytes(max(mergeMemory, j.Plan.Memory()))},
	})
	return b.String(), err
}

// pod is one that runs a command in so many mebibytes.
type pod struct {
	Cluster
	Command []string
	Memory  int64
}

// escaped is a command in which Kubernetes puts no variable in the place of $(NAME).
func escaped(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ReplaceAll(w, "$", "$$")
	}
	return out
}

// manifest is YAML: texts are quoted as in JSON, which YAML reads.
var manifest = template.Must(template.New("").Funcs(template.FuncMap{
	"text": func(v any) (string, error) {
		data, err := json.Marshal(v)
		return string(data), err
	},
}).Parse(`{{define "pod"}}
      restartPolicy: Never
      automountServiceAccountToken: false
      containers:
      - name: snapana
        image: {{text .Image}}
        command: {{text .Command}}
        resources:
          requests: {cpu: "1", memory: {{.Memory}}Mi}
          limits: {memory: {{.Memory}}Mi}
{{- if .Secret}}
        envFrom:
        - secretRef: {name: {{text .Secret}}}
{{- end}}
{{- if .Claims}}
        volumeMounts:
{{- range $i, $c := .Claims}}
        - {name: volume-{{$i}}, mountPath: {{text $c.Path}}}
{{- end}}
      volumes:
{{- range $i, $c := .Claims}}
      - name: volume-{{$i}}
        persistentVolumeClaim: {claimName: {{text $c.Name}}}
{{- end}}
{{- end}}
{{- end -}}
# kubectl apply -f FILE, and once the first Job has ended, whatever came of it, let the second begin:
#   until kubectl get job {{.Name}} -o jsonpath='{.status.conditions[*].type}' | grep -E 'Complete|Failed'; do sleep 10; done
#   kubectl patch job {{.Name}}-merge -p '{"spec":{"suspend":false}}'
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}
spec:
  completionMode: Indexed
  completions: {{.Tasks}}
  parallelism: {{.Parallel}}
  backoffLimitPerIndex: 2
  podFailurePolicy:
    rules:
    - action: Ignore # of a node that drains or is lost
      onPodConditions:
      - {type: DisruptionTarget, status: "True"}
    - action: FailIndex # a file that cannot be read, which the digests say
      onExitCodes: {containerName: snapana, operator: In, values: [2]}
  template:
    spec:{{template "pod" .Task}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}-merge
spec:
  suspend: true
  backoffLimit: 2
  podFailurePolicy:
    rules:
    - action: FailJob # ranks that are missing, or could not be read: the comparison says which
      onExitCodes: {containerName: snapana, operator: In, values: [2]}
  template:
    spec:{{template "pod" .Merge}}
`))
