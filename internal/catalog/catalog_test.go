package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is the file that the tests pull: 1 MB that does not repeat.
func content() []byte {
	data := make([]byte, 1<<20)
	x := uint32(1)
	for i := range data {
		x = x*1664525 + 1013904223 // Numerical Recipes
		data[i] = byte(x >> 24)
	}
	return data
}

// recorder keeps what it is told.
type recorder struct {
	mu       sync.Mutex
	notes    []string
	progress int64
}

func (r *recorder) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

func (r *recorder) Progress(done, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = done
}

// has tells whether a note contains text.
func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.notes, func(note string) bool { return strings.Contains(note, text) })
}

// testModel is a model of the content above.
func testModel(sources ...Source) Model {
	data := content()
	return Model{
		Name: "test:1m", Aliases: []string{"test"}, License: "MIT", SHA256: hashOf(string(data)), Size: int64(len(data)),
		Sources: sources,
	}
}

// checkPulled makes sure that the file is in its place, whole and alone.
func checkPulled(t *testing.T, c *Catalog, l *Local) {
	t.Helper()
	data, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(data, content()) || l.Size != int64(len(data)) {
		t.Errorf("%s holds %d other bytes", l.Path, len(data))
	}
	for _, name := range folder(t, c) {
		switch strings.TrimPrefix(name, l.SHA256) {
		case ".gguf", ".json", ".lock":
		default:
			if !strings.HasSuffix(name, ".lock") {
				t.Errorf("%s was left in the cache folder", name)
			}
		}
	}
}

// folder lists the cache folder.
func folder(t *testing.T, c *Catalog) []string {
	t.Helper()
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestModelsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Models() {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if seen[name] || name != strings.ToLower(name) || strings.ContainsAny(name, "/ ") {
				t.Errorf("name %q is taken or not plain", name)
			}
			seen[name] = true
		}
		if !isSHA256(m.SHA256) || m.Size <= 0 || m.License == "" || m.About == "" || len(m.Sources) == 0 {
			t.Errorf("model %s is incomplete: %+v", m.Name, m)
		}
		for _, s := range m.Sources {
			if hf, ok := s.(HF); ok {
				if _, err := parseHF(hf.String()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if m, ok := find(Models(), DefaultModel); !ok || m.Name != DefaultModel {
		t.Errorf("the default model %s is not in the catalogue", DefaultModel)
	}
}

func TestParseHF(t *testing.T) {
	got, err := parseHF("hf:org/repo/sub/dir/m.Q4_K_M.gguf")
	if want := (HF{Repo: "org/repo", File: "sub/dir/m.Q4_K_M.gguf"}); err != nil || got != want {
		t.Errorf("parseHF = %v, %v; want %v", got, err, want)
	}
	if got, want := got.url("https://host"), "https://host/org/repo/resolve/main/sub/dir/m.Q4_K_M.gguf"; got != want {
		t.Errorf("url = %s, want %s", got, want)
	}
	for _, ref := range []string{
		"hf:", "hf:org", "hf:org/repo", "hf:org/repo/", "hf:/repo/m.gguf", "hf:org//m.gguf",
		"hf:org/../m.gguf", "hf:org/repo/../../m.gguf", "hf:org/repo/m.gguf?x=.gguf", "hf:org/repo/model.safetensors",
	} {
		if _, err := parseHF(ref); err == nil {
			t.Errorf("parseHF(%q) gave no error", ref)
		}
	}
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	c := New(Config{Dir: filepath.Join(dir, "cache")})
	file := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, c2 := range []struct {
		ref, path string
		err       error
		text      string
	}{
		{file, file, nil, ""},
		{"m.gguf", "m.gguf", nil, ""},
		{"./m.gguf", "./m.gguf", nil, ""},
		{"smollm2:135m", "", ErrNotPulled, `model "smollm2:135m": not pulled`},
		{"SmolLM2", "", ErrNotPulled, `model "smollm2:135m": not pulled`},
		{"hf:o/r/m.gguf", "", ErrNotPulled, `model "hf:o/r/m.gguf": not pulled`},
		{"hf:o/r", "", nil, `"hf:o/r": want hf:org/repo/file.gguf`},
		{"smolm2:135m", "", ErrUnknown, `unknown model "smolm2:135m"; did you mean "smollm2:135m"?`},
		{"gema3", "", ErrUnknown, `unknown model "gema3"; did you mean "gemma3"?`},
		{"gemm", "", ErrUnknown, `unknown model "gemm"; did you mean "gemma3:270m"?`},
		{
			"gpt-7", "", ErrUnknown,
			`unknown model "gpt-7"; quire list shows the names; a path to a .gguf file or hf:org/repo/file.gguf works too`,
		},
		{"none.gguf", "none.gguf", os.ErrNotExist, "stat none.gguf: no such file or directory"},
		{
			"~/m.gguf", "~/m.gguf", os.ErrNotExist,
			"stat ~/m.gguf: no such file or directory (the shell did not expand ~; write $HOME)",
		},
		{dir, dir, nil, dir + ": not a regular file"},
	} {
		path, err := c.Locate(c2.ref)
		if c2.text == "" && (err != nil || path != c2.path) {
			t.Errorf("Locate(%q) = %q, %v; want %q", c2.ref, path, err, c2.path)
		}
		if c2.text != "" && (err == nil || err.Error() != c2.text || c2.err != nil && !errors.Is(err, c2.err)) {
			t.Errorf("Locate(%q) = %v, want %s", c2.ref, err, c2.text)
		}
	}
	if _, err := c.Pull(context.Background(), file); err == nil || !strings.Contains(err.Error(), "is a file already") {
		t.Errorf("Pull of a path = %v", err)
	}
	if _, err := c.Pull(context.Background(), "gema3"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Pull of an unknown name = %v", err)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestConfigFromEnv(t *testing.T) {
	env := map[string]string{"QUIRE_HOME": "/data/quire", "HF_ENDPOINT": "https://mirror/", "HF_TOKEN": "secret\n"}
	cfg, err := ConfigFromEnv(func(name string) string { return env[name] })
	if err != nil || cfg.Dir != "/data/quire/models" || cfg.HFEndpoint != "https://mirror/" || cfg.HFToken != "secret" {
		t.Errorf("ConfigFromEnv = %+v, %v", cfg, err)
	}
	t.Setenv("XDG_CACHE_HOME", "/x")
	cfg, err = ConfigFromEnv(func(string) string { return "" })
	if err != nil || !strings.HasSuffix(cfg.Dir, filepath.Join("quire", "models")) {
		t.Errorf("ConfigFromEnv without QUIRE_HOME = %+v, %v", cfg, err)
	}
}

// given is a source that has the bytes at hand.
type given struct {
	data []byte
	err  error
}

func (given) String() string { return "given" }
func (given) kind() string   { return "given" }
func (g given) fetch(t *transfer) error {
	if _, err := t.part.Write(g.data); err != nil {
		return err
	}
	return g.err
}

// TestSourcesInTurn goes on to the next source after each kind of failure, and says why.
func TestSourcesInTurn(t *testing.T) {
	r := &recorder{}
	wrong := content()
	wrong[7]++
	c := newCatalog(Config{Dir: t.TempDir(), Reporter: r}, []Model{testModel(
		given{err: errors.New("no answer")}, given{data: wrong}, given{data: content()[:100]}, given{data: content()})})
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	for _, want := range []string{
		"skipping given: no answer", "skipping given: wrong file: sha256 is ",
		"skipping given: wrong file: 100 bytes, want 1048576",
	} {
		if !r.has(want) {
			t.Errorf("no note says %q: %q", want, r.notes)
		}
	}
}

// TestNoSourceWorks names each source and its reason.
func TestNoSourceWorks(t *testing.T) {
	c := newCatalog(Config{Dir: t.TempDir()}, []Model{testModel(given{err: errors.New("one")}, given{err: errors.New("two")})})
	_, err := c.Resolve(context.Background(), "test:1m")
	if want := "pull test:1m: no source worked:\ngiven: one\ngiven: two"; err == nil || err.Error() != want {
		t.Errorf("Resolve = %v, want %s", err, want)
	}
}

// TestDiskFull stops at once, since another source would not fit either.
func TestDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	p, err := openPart(filepath.Join(t.TempDir(), "x.part"))
	if err != nil {
		t.Fatal(err)
	}
	p.file.Close()
	p.file = full
	_, err = p.Write([]byte("x"))
	_, ok := errors.AsType[*localError](err)
	if !ok || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("Write to a full disk = %v", err)
	}

	model := testModel(given{err: err}, given{data: content()})
	c := newCatalog(Config{Dir: t.TempDir()}, []Model{model})
	if _, err := c.Pull(context.Background(), "test"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Pull on a full disk = %v", err)
	}

	model.Size = 1 << 60
	c = newCatalog(Config{Dir: t.TempDir()}, []Model{model})
	if _, err := c.Pull(context.Background(), "test"); err == nil || !strings.Contains(err.Error(), "MB free; set QUIRE_HOME") {
		t.Errorf("Pull of more than the disk has = %v", err)
	}
}

// TestDamagedFile finds a file that changed after it was pulled.
func TestDamagedFile(t *testing.T) {
	c := newCatalog(Config{Dir: t.TempDir()}, []Model{testModel(given{data: content()})})
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Pull(context.Background(), "test"); err != nil || again.Path != l.Path || again.Source != "given" {
		t.Errorf("second Pull = %+v, %v", again, err)
	}
	wrong := content()
	wrong[0]++
	if err := os.WriteFile(l.Path, wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pull(context.Background(), "test"); err == nil || !strings.Contains(err.Error(), "is damaged: its sha256 is") {
		t.Errorf("Pull of a damaged file = %v", err)
	}
}

func TestList(t *testing.T) {
	c := newCatalog(Config{Dir: t.TempDir()}, []Model{testModel(given{data: content()}), {Name: "other:1b", SHA256: hashOf("x"), Size: 5}})
	check := func(want string) {
		t.Helper()
		entries, err := c.List()
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%s %d %v %s", e.Name, e.Size, e.Path != "", e.Source))
		}
		if got := strings.Join(lines, "; "); got != want {
			t.Errorf("List = %s, want %s", got, want)
		}
	}
	check("test:1m 1048576 false ; other:1b 5 false ")
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	check("test:1m 1048576 true given; other:1b 5 false ")
	l.Names = append(l.Names, "hf:o/r/m.gguf")
	if err := c.writeDescription(*l); err != nil {
		t.Fatal(err)
	}
	check("test:1m 1048576 true given; other:1b 5 false ; hf:o/r/m.gguf 1048576 true given")
	if path, err := c.Locate("hf:o/r/m.gguf"); err != nil || path != l.Path {
		t.Errorf("Locate = %s, %v; want %s", path, err, l.Path)
	}
	if err := os.Remove(l.Path); err != nil {
		t.Fatal(err)
	}
	check("test:1m 1048576 false ; other:1b 5 false ")
}
