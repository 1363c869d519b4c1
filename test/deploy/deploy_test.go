// Package deploy checks the files of the folder deploy: that Kubernetes and Compose would take them, and that what they say of
// Quire is so. It is a module of its own, so that Quire does not depend on the schemas.
package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// schemas are of the kinds for which there is no Go module: those of gateways, inference pools and the Prometheus operator.
//
//go:embed schemas/*.json
var schemas embed.FS

// object is one document of a manifest.
type object struct {
	file, kind, name string
	raw              []byte
	typed            any // nil for kinds that a schema describes
}

// newTyped returns an empty value of a kind that Kubernetes itself defines, nil for others.
func newTyped(kind string) any {
	switch kind {
	case "v1/Service":
		return &corev1.Service{}
	case "v1/ConfigMap":
		return &corev1.ConfigMap{}
	case "v1/ServiceAccount":
		return &corev1.ServiceAccount{}
	case "apps/v1/Deployment":
		return &appsv1.Deployment{}
	case "apps/v1/StatefulSet":
		return &appsv1.StatefulSet{}
	case "policy/v1/PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "rbac.authorization.k8s.io/v1/Role":
		return &rbacv1.Role{}
	case "rbac.authorization.k8s.io/v1/RoleBinding":
		return &rbacv1.RoleBinding{}
	}
	return nil
}

// manifests reads the documents of a folder strictly: an unknown or repeated field is a fault.
func manifests(t *testing.T, folder string) []object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s: %v", folder, err)
	}
	var all []object
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLReader(newReader(data))
		for {
			raw, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o, err := decode(raw)
			o.file = file
			if err != nil {
				t.Errorf("%s: %s %s: %v", file, o.kind, o.name, err)
				continue
			}
			all = append(all, o)
		}
	}
	return all
}

func decode(raw []byte) (object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := strict.Unmarshal(raw, &head); err != nil {
		return object{}, err
	}
	o := object{kind: head.APIVersion + "/" + head.Kind, name: head.Metadata.Name, raw: raw}
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(o.name) {
		return o, fmt.Errorf("name %q is not one", o.name)
	}
	if o.typed = newTyped(o.kind); o.typed != nil {
		return o, strict.UnmarshalStrict(raw, o.typed)
	}
	return o, validate(raw, strings.ReplaceAll(o.kind, "/", "_")+".json")
}

// validate checks a document against one of the schemas here.
func validate(raw []byte, schema string) error {
	text, err := schemas.ReadFile("schemas/" + schema)
	if err != nil {
		return fmt.Errorf("kind without a schema: %w", err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schema, parsed); err != nil {
		return err
	}
	compiled, err := c.Compile(schema)
	if err != nil {
		return err
	}
	asJSON, err := strict.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// pods returns the pod templates of the objects by name of what owns them.
func pods(objects []object) map[string]*corev1.PodTemplateSpec {
	all := map[string]*corev1.PodTemplateSpec{}
	for _, o := range objects {
		switch v := o.typed.(type) {
		case *appsv1.Deployment:
			all[o.name] = &v.Spec.Template
		case *appsv1.StatefulSet:
			all[o.name] = &v.Spec.Template
		}
	}
	return all
}

// TestManifests: every document is what its kind allows, services and selectors meet pods, and ports have the names they are
// asked for by.
func TestManifests(t *testing.T) {
	for _, folder := range []string{"kubernetes", "llm-d"} {
		objects := manifests(t, folder)
		for _, o := range objects {
			var selector map[string]string
			switch v := o.typed.(type) {
			case *corev1.Service:
				selector = v.Spec.Selector
				for _, p := range v.Spec.Ports {
					if !anyPod(objects, selector, func(pod *corev1.PodSpec) bool { return hasPort(pod, p.TargetPort.StrVal) }) {
						t.Errorf("%s: service %s: no pod of its has the port %s", o.file, o.name, p.TargetPort.StrVal)
					}
				}
			case *appsv1.Deployment:
				selector = v.Spec.Selector.MatchLabels
			case *appsv1.StatefulSet:
				selector = v.Spec.Selector.MatchLabels
			case *policyv1.PodDisruptionBudget:
				selector = v.Spec.Selector.MatchLabels
			default:
				continue
			}
			if !anyPod(objects, selector, func(*corev1.PodSpec) bool { return true }) {
				t.Errorf("%s: %s %s selects no pod", o.file, o.kind, o.name)
			}
		}
	}
}

func anyPod(objects []object, selector map[string]string, ok func(*corev1.PodSpec) bool) bool {
	for _, pod := range pods(objects) {
		match := len(selector) > 0
		for k, v := range selector {
			match = match && pod.Labels[k] == v
		}
		if match && ok(&pod.Spec) {
			return true
		}
	}
	return false
}

func hasPort(pod *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// flags are those of quire serve, as its own document lists them.
func flags(t *testing.T) map[string]bool {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(--[a-z0-9-]+)`").FindAllSubmatch(doc, -1) {
		all[string(m[1])] = true
	}
	return all
}

// checkArgs reports arguments that quire serve does not know.
func checkArgs(t *testing.T, where string, args []string) {
	t.Helper()
	known := flags(t)
	if len(args) < 2 || args[0] != "serve" {
		t.Fatalf("%s: arguments %q do not serve", where, args)
	}
	for _, arg := range args[2:] {
		if name, _, _ := strings.Cut(arg, "="); !known[name] {
			t.Errorf("%s: quire serve has no flag %s", where, name)
		}
	}
}

// TestQuireContainers: the flags exist, and the probes are those that routers count on: ready when /v1/models answers, alive as
// /health says; a pod has longer to end than its requests have.
func TestQuireContainers(t *testing.T) {
	for _, folder := range []string{"kubernetes", "llm-d"} {
		pod := pods(manifests(t, folder))["quire"]
		if pod == nil {
			t.Fatalf("%s has no quire", folder)
		}
		c := &pod.Spec.Containers[0]
		checkArgs(t, folder, c.Args)
		for name, p := range map[string]struct {
			probe *corev1.Probe
			path  string
		}{
			"startup": {c.StartupProbe, "/v1/models"}, "readiness": {c.ReadinessProbe, "/v1/models"}, "liveness": {c.LivenessProbe, "/health"},
		} {
			if p.probe == nil || p.probe.HTTPGet == nil || p.probe.HTTPGet.Path != p.path || p.probe.HTTPGet.Port.StrVal != "http" {
				t.Errorf("%s: %s probe is %+v, want GET %s", folder, name, p.probe, p.path)
			}
		}
		if s := pod.Spec.TerminationGracePeriodSeconds; s == nil || *s <= 25 {
			t.Errorf("%s: a pod has %v s to end, requests have 25", folder, s)
		}
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: quire does not say what it needs: %v", folder, c.Resources)
		}
	}
}

// TestRouterMeetsQuire: the pool, the router's configuration and the replicas speak of the same labels, ports and block size.
func TestRouterMeetsQuire(t *testing.T) {
	objects := manifests(t, "llm-d")
	quire := pods(objects)["quire"]
	args := strings.Join(quire.Spec.Containers[0].Args, "\n") + "\n"
	env := quire.Spec.Containers[0].Env
	if len(env) != 1 || env[0].Name != "POD_IP" || env[0].ValueFrom == nil || env[0].ValueFrom.FieldRef.FieldPath != "status.podIP" {
		t.Errorf("the events' topic needs POD_IP; the environment is %+v", env)
	}
	for _, o := range objects {
		switch o.name + " " + filepath.Base(o.kind) {
		case "quire InferencePool":
			var pool struct {
				Spec struct {
					Selector struct {
						MatchLabels map[string]string `json:"matchLabels"`
					} `json:"selector"`
					TargetPorts []struct {
						Number int32 `json:"number"`
					} `json:"targetPorts"`
				} `json:"spec"`
			}
			if err := strict.Unmarshal(o.raw, &pool); err != nil {
				t.Fatal(err)
			}
			for k, v := range pool.Spec.Selector.MatchLabels {
				if quire.Labels[k] != v {
					t.Errorf("the pool selects %s=%s, quire has %v", k, v, quire.Labels)
				}
			}
			if port := quire.Spec.Containers[0].Ports[0].ContainerPort; pool.Spec.TargetPorts[0].Number != port {
				t.Errorf("the pool's port is %v, quire's %d", pool.Spec.TargetPorts, port)
			}
		case "quire-epp ConfigMap":
			config := o.typed.(*corev1.ConfigMap).Data["config.yaml"]
			if err := validate([]byte(config), "llm-d.ai_v1alpha1_EndpointPickerConfig.json"); err != nil {
				t.Error(err)
			}
			for router, server := range map[string]string{
				"modelName: qwen2.5-0.5b": "--served-model-name=qwen2.5-0.5b\n", "blockSize: 16": "--block-size=16\n",
				" socketPort: 5556": "--kv-events=tcp://*:5556\n", "replaySocketPort: 5557": "--kv-events-replay=tcp://*:5557\n",
			} {
				if !strings.Contains(config, router+"\n") || !strings.Contains(args, server) {
					t.Errorf("the router is told %q, quire %q: one is missing", router, server)
				}
			}
		}
	}
}

// TestFaultsAreFound: the checks see what they are for.
func TestFaultsAreFound(t *testing.T) {
	for name, text := range map[string]string{
		"a field that is none": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selektor: {}}",
		"a field given twice":  "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: A, type: B}",
		"a value of no type":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: three}",
		"a kind of no schema":  "apiVersion: v1\nkind: Unknown\nmetadata: {name: a}",
		"a name that is none":  "apiVersion: v1\nkind: Service\nmetadata: {name: A_b}",
		"a pool without a port": "apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: a}\n" +
			"spec: {selector: {matchLabels: {a: b}}}",
		"an objective of old": "apiVersion: inference.networking.x-k8s.io/v1alpha2\nkind: InferenceObjective\nmetadata: {name: a}\n" +
			"spec: {criticality: 1}",
	} {
		if _, err := decode([]byte(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if len(flags(t)) < 20 || flags(t)["--nonsense"] {
		t.Errorf("flags read: %v", slices.Sorted(maps.Keys(flags(t))))
	}
}
