package quire_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBugReportsAreTested holds docs/bug-reports.md to the tree: each test and transcript it names exists, and each transcript
// of a bug report is named.
func TestBugReportsAreTested(t *testing.T) {
	doc, err := os.ReadFile("docs/bug-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !regexp.MustCompile(`^ \d+ $`).MatchString(cells[1]) {
			continue
		}
		rows++
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[4], -1)
		if len(names) == 0 {
			t.Errorf("row%sis held by nothing", cells[1])
		}
		for _, m := range names {
			if !testExists(t, m[1]) {
				t.Errorf("row%sis held by %s, which does not exist", cells[1], m[1])
			}
		}
	}
	if rows == 0 {
		t.Error("no rows were found")
	}
	transcripts, err := filepath.Glob("sched/testdata/bug*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range transcripts {
		if !strings.Contains(string(doc), "`"+filepath.ToSlash(name)+"`") {
			t.Errorf("docs/bug-reports.md does not name %s", name)
		}
	}
}

// testExists tells whether there is the transcript sched/testdata/name.txt, or the test function folder.name.
func testExists(t *testing.T, name string) bool {
	if strings.HasSuffix(name, ".txt") {
		_, err := os.Stat(name)
		return err == nil
	}
	dir, function, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(src), "\nfunc "+function+"(") {
			return true
		}
	}
	return false
}
