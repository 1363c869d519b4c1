package quire_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/quire-ai/quire"

// layers is Quire's import policy, in the notation of the Go project's own go/build/deps_test.go: "a < b" says that b
// may import a, and whatever a may import. A chain "a < b < c" and lists "a, b < c" are allowed; a rule ends with a
// semicolon. "a !< b" says that b must never import a. Packages are named by their path below internal/, or below the
// module; the root is "quire".
//
// This is policy, not data to edit when a build fails: a new edge is a design decision and is argued in the commit.
const layers = `
	# The pure core: which block holds which tokens, and which tokens run now.
	invariant < kv < sched;

	# Numbers and files.
	tensor < gguf;
	gguf < tokenizer;
	catalog;
	chat;

	# Computing a plan.
	tensor < cpu;
	cpu, gguf, tensor < model;
	gguf, tensor < model/modeltest;
	golden;
	testmodel;
	invariant, cpu < sample;
	sched, sample, model < executor;
	sched, sample, cpu < executor/executortest;

	# Where KV goes that leaves the pool. The engine says what it needs of a connector, llm puts the two together.
	kv < connector/chunk;
	kv, invariant, cpu < connector/ram;
	sched, invariant, cpu, connector/chunk, connector/ram < connector;
	connector, connector/chunk < connector/disk, connector/valkey;
	connector/valkey/valkeytest;

	# What routers are told.
	zmtp < zmtp/zmtptest;
	kv, zmtp < kvevent;

	# Around the core: one owner, thin shells.
	sched < record < cmd/quire;
	sched, sample, tokenizer, invariant, record < engine;
	catalog, chat, executor, engine, tokenizer, connector/disk, connector/valkey < llm;
	llm < quire;
	workload;
	sched, invariant, workload < sim;

	# Speaking to people and programs.
	openai;
	engine, connector, kvevent < metric;
	engine, zmtp < config;
	openai, llm, metric, config < server;
	openai, server < bench;
	bench, server, sched, tokenizer, record < bench/pressure;
	bench, server, sample, workload < bench/cache;
	bench, bench/pressure, bench/cache, golden, server, sim, quire, config < cmd/quire;
	tensor < cpu/gen;
	cpu/amxemu/tile < cpu/amxemu;

	# The core decides and never acts: no goroutine, clock, random source, I/O or logging (DESIGN: purity).
	time, sync, sync/atomic, context, os, io, io/fs, net, net/http, log, log/slog, math/rand, math/rand/v2, crypto/rand,
	bufio, runtime, unsafe, reflect !< kv, sched;

	# Command-line and web libraries stay at the edge.
	github.com/alecthomas/kong !< quire, llm, engine, server;
	net/http !< engine, executor, model, cpu;
`

// policy is layers, parsed: for each package of this module, what it may import, and for each, what it never may.
type policy struct {
	allowed map[string]map[string]bool
	never   map[string]map[string]bool
}

func parsePolicy(text string) (policy, error) {
	p := policy{allowed: map[string]map[string]bool{}, never: map[string]map[string]bool{}}
	var clean strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		clean.WriteString(code + " ")
	}
	for rule := range strings.SplitSeq(clean.String(), ";") {
		rule = strings.TrimSpace(rule)
		if rule == "" {
			continue
		}
		if left, right, ok := strings.Cut(rule, "!<"); ok {
			for _, to := range names(right) {
				add(p.never, to, names(left))
			}
			continue
		}
		sides := strings.Split(rule, "<")
		for _, side := range sides {
			if len(names(side)) == 0 {
				return p, fmt.Errorf("rule %q has an empty side", rule)
			}
		}
		for _, name := range names(sides[0]) {
			add(p.allowed, name, nil)
		}
		for i := 1; i < len(sides); i++ {
			for _, to := range names(sides[i]) {
				add(p.allowed, to, names(sides[i-1]))
			}
		}
	}
	p.close()
	return p, nil
}

// close makes allowed transitive: what a may import, whoever may import a may import too.
func (p policy) close() {
	for changed := true; changed; {
		changed = false
		for to, from := range p.allowed {
			for mid := range maps.Clone(from) {
				for low := range p.allowed[mid] {
					if !from[low] {
						p.allowed[to][low], changed = true, true
					}
				}
			}
		}
	}
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

func add(set map[string]map[string]bool, key string, values []string) {
	if set[key] == nil {
		set[key] = map[string]bool{}
	}
	for _, v := range values {
		set[key][v] = true
	}
}

// check returns one line for each import that breaks the policy.
func (p policy) check(pkg string, imports []string) []string {
	var faults []string
	allowed, known := p.allowed[pkg]
	if !known {
		return []string{fmt.Sprintf("package %s is not in the policy of layers_test.go: say where it stands", pkg)}
	}
	for _, imp := range imports {
		name, local := imp, false
		if imp == modulePath || strings.HasPrefix(imp, modulePath+"/") {
			name, local = shortName(strings.TrimPrefix(strings.TrimPrefix(imp, modulePath), "/")), true
		}
		if local && !allowed[name] {
			faults = append(faults, fmt.Sprintf("package %s imports %s: not allowed by layers_test.go", pkg, name))
		}
		if p.never[pkg][name] {
			faults = append(faults, fmt.Sprintf("package %s imports %s: forbidden by layers_test.go", pkg, name))
		}
	}
	return faults
}

// shortName turns a folder below the module into the policy's name for it.
func shortName(dir string) string {
	if dir == "" || dir == "." {
		return "quire"
	}
	return strings.TrimPrefix(dir, "internal/")
}

// goFile is one parsed Go file of the module.
type goFile struct {
	path string // slash-separated, below the module root
	fset *token.FileSet
	ast  *ast.File
}

func (f goFile) pkg() string  { return shortName(path.Dir(f.path)) }
func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) imports() []string {
	var list []string
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			list = append(list, name)
		}
	}
	return list
}

// goFiles parses every Go file of the module. The tree is walked in this process, since go test caches a result by the
// files that the test itself opens: one that ran "go list" would go on saying "ok (cached)".
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range treeFiles(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{path: name, fset: fset, ast: parsed})
	}
	return files
}

// treeFiles lists the files of the module's tree, other modules in it and hidden folders apart.
func treeFiles(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "." && entry.Name() != ".ci"
		if entry.IsDir() && (hidden || name == "tools" || entry.Name() == "fuzz" || name == "dist") {
			return filepath.SkipDir
		}
		if entry.Type().IsRegular() && !hidden {
			list = append(list, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLayers(t *testing.T) {
	p, err := parsePolicy(layers)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		for _, fault := range p.check(f.pkg(), f.imports()) {
			t.Errorf("%s: %s", f.path, fault)
		}
	}
}

func TestLayersHaveNoCycle(t *testing.T) {
	p, err := parsePolicy(layers)
	if err != nil {
		t.Fatal(err)
	}
	for pkg, from := range p.allowed {
		if from[pkg] {
			t.Errorf("policy lets %s import itself through others", pkg)
		}
	}
}

// The rule's own test: each kind of fault is found, and what is allowed passes.
func TestLayersPolicyFindsFaults(t *testing.T) {
	p, err := parsePolicy("a < b < c; d; time !< a, b; # note\n a < d;")
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) []string {
		for i, n := range names {
			if len(n) == 1 {
				names[i] = modulePath + "/internal/" + n
			}
		}
		return names
	}
	cases := []struct {
		pkg     string
		imports []string
		faults  int
	}{
		{"c", in("a", "b"), 0}, // through b
		{"d", in("a"), 0},
		{"a", in("b"), 1},
		{"d", in("b"), 1},
		{"b", in("time"), 1},
		{"c", in("time"), 0},
		{"x", nil, 1}, // unknown package
	}
	for _, c := range cases {
		if got := p.check(c.pkg, slices.Clone(c.imports)); len(got) != c.faults {
			t.Errorf("check(%s, %v) = %v, want %d faults", c.pkg, c.imports, got, c.faults)
		}
	}
}

// impurities returns what a pure package must not contain besides forbidden imports: goroutines, channels and
// selects.
func impurities(file *ast.File) []ast.Node {
	var found []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
			found = append(found, n)
		}
		return true
	})
	return found
}

func TestCoreIsPure(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.isTest() || (f.pkg() != "kv" && f.pkg() != "sched") {
			continue
		}
		for _, n := range impurities(f.ast) {
			t.Errorf("%s: %T in a pure package", f.fset.Position(n.Pos()), n)
		}
	}
}

// parseSource parses a Go file given as text.
func parseSource(t *testing.T, src string) goFile {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{path: "p.go", fset: fset, ast: parsed}
}

func TestCoreIsPureFindsFaults(t *testing.T) {
	f := parseSource(t, "package p\nfunc f(c chan int) { go f(nil); select {}; c <- 1 }")
	if got := len(impurities(f.ast)); got != 4 {
		t.Errorf("impurities found %d faults, want 4", got)
	}
}
