package chat

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// goldenNow is the clock of the recorded renders.
var goldenNow = time.Date(2025, 3, 9, 14, 5, 6, 0, time.UTC)

// sharedDir is the folder of golden data that several packages use, beside the module; tests that need it are skipped
// where it is absent.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for filepath.Dir(root) != root {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared golden data: %v", err)
	}
	return dir
}

// goldenCase is one line of a golden file: a render and what Python made of it.
type goldenCase struct {
	Name         string          `json:"name"`
	ID           int             `json:"id"`
	Template     string          `json:"template"`
	File         string          `json:"file"`
	Conversation string          `json:"conversation"`
	Variables    json.RawMessage `json:"variables"`
	Output       *string         `json:"output"`
	ErrorType    string          `json:"error_type"`
	Error        string          `json:"error"`
}

func readGolden(t *testing.T, path string) []goldenCase {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []goldenCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c goldenCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

func decodeVars(t *testing.T, data []byte) *Dict {
	t.Helper()
	v, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

// render parses and renders in one go.
func render(t *testing.T, src string, vars *Dict) (string, error) {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		return "", err
	}
	return tmpl.Render(t.Context(), vars, Options{Now: goldenNow})
}

// checkGolden renders one case and compares it with Python's result.
func checkGolden(t *testing.T, c goldenCase, src string, vars *Dict) {
	t.Helper()
	got, err := render(t, src, vars)
	switch {
	case c.Output != nil && err != nil:
		t.Errorf("%s %d: %q\n error %v\n want %q", c.Name, c.ID, src, err, *c.Output)
	case c.Output != nil && got != *c.Output:
		t.Errorf("%s %d: %q\n got  %q\n want %q", c.Name, c.ID, src, got, *c.Output)
	case c.Output == nil && err == nil:
		t.Errorf("%s %d: %q\n got %q\n want %s: %s", c.Name, c.ID, src, got, c.ErrorType, c.Error)
	case c.Output == nil:
		checkError(t, c, src, err)
	}
}

// checkError compares the kind of an error with Python's, and of TemplateError the message.
func checkError(t *testing.T, c goldenCase, src string, err error) {
	t.Helper()
	kind := ""
	switch e := err.(type) {
	case *RuntimeError:
		kind = e.Type
	case *SyntaxError:
		kind = e.Type
	case *TemplateError:
		kind = "TemplateError"
		if e.Message != c.Error {
			t.Errorf("%s %d: %q\n refused with %q\n want %q", c.Name, c.ID, src, e.Message, c.Error)
		}
	case *LimitError:
		return // Python has no such limits
	}
	if kind != c.ErrorType {
		t.Errorf("%s %d: %q\n error %v\n want %s: %s", c.Name, c.ID, src, err, c.ErrorType, c.Error)
	}
}

func TestSharedSnippets(t *testing.T) {
	cases := readGolden(t, filepath.Join(sharedDir(t), "golden", "chat", "snippets.jsonl"))
	vars := decodeVars(t, cases[0].Variables)
	for _, c := range cases[1:] {
		checkGolden(t, c, c.Template, vars)
	}
}

// TestSnippets compares short templates with what Python makes of them; testdata/oracle.py recorded that.
func TestSnippets(t *testing.T) {
	for _, name := range []string{"values", "methods", "statements", "idioms"} {
		t.Run(name, func(t *testing.T) {
			cases := readGolden(t, filepath.Join("testdata", name+".jsonl"))
			vars := decodeVars(t, cases[0].Variables)
			for i, c := range cases[1:] {
				c.Name, c.ID = name, i+2
				checkGolden(t, c, c.Template, vars)
			}
		})
	}
}

// TestTemplates renders templates in the manner of published models' with many kinds of conversation.
func TestTemplates(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "conversations.json"))
	if err != nil {
		t.Fatal(err)
	}
	conversations := decodeVars(t, data)
	for _, c := range readGolden(t, filepath.Join("testdata", "renders.jsonl")) {
		src, err := os.ReadFile(filepath.Join("testdata", "templates", c.File))
		if err != nil {
			t.Fatal(err)
		}
		vars, ok := conversations.Get(c.Conversation)
		if !ok {
			t.Fatalf("no conversation %q", c.Conversation)
		}
		c.Name = c.File + " " + c.Conversation
		checkGolden(t, c, string(src), vars.(*Dict))
	}
}
