package quire_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// House rules, held by reading the files. Each rule has its reason beside it, and a test of the rule below.
const (
	maxLineLength   = 140     // columns: two files side by side
	maxFuncLength   = 70      // lines: a function fits a screen
	maxFileLength   = 600     // lines of code: above, ask which idea is the second
	maxFileSizeByte = 1 << 20 // no blobs in the tree
)

func TestTidyText(t *testing.T) {
	for _, name := range treeFiles(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range textFaults(name, data) {
			t.Error(fault)
		}
	}
}

// textFaults checks what holds for every file of the tree.
func textFaults(name string, data []byte) []string {
	var faults []string
	report := func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
	}
	if len(data) > maxFileSizeByte {
		report(1, "%d bytes, limit %d: generate it or fetch it", len(data), maxFileSizeByte)
	}
	if !isSource(name) || strings.Contains(name, "testdata/") {
		return faults
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		report(bytes.Count(data, []byte{'\n'})+1, "no newline at the end of the file")
	}
	titles := 0
	inCode := false
	for i, line := range strings.Split(string(data), "\n") {
		if width := utf8.RuneCountInString(line); width > maxLineLength && path.Ext(name) == ".go" {
			report(i+1, "%d columns, limit %d", width, maxLineLength)
		}
		if strings.TrimRight(line, " \t\r") != line {
			report(i+1, "white space at the end of the line")
		}
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if strings.HasPrefix(line, "# ") && !inCode {
			titles++
		}
		for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"} {
			if path.Ext(name) == ".go" && strings.Contains(line, mark) {
				report(i+1, "unfinished mark %s: finish it or name what is missing in the README", mark)
			}
		}
	}
	if path.Ext(name) == ".md" && titles != 1 {
		report(1, "%d titles (lines that begin with one #), want one", titles)
	}
	return faults
}

// isSource says whether people write and read the file as text.
func isSource(name string) bool {
	return slices.Contains([]string{".go", ".md", ".s", ".mod", ".yaml", ".py", ".html", ".js", ".css"}, path.Ext(name))
}

func TestTidyTextFindsFaults(t *testing.T) {
	cases := []struct {
		name, data string
		faults     int
	}{
		{"a.go", "package a\n", 0},
		{"a.go", "package a", 1},
		{"a.go", "package a \n", 1},
		{"a.go", "package a // " + strings.Repeat("x", maxLineLength) + "\n", 1},
		{"a.go", "package a // TO" + "DO\n", 1},
		{"a.md", "# One\n\n# Two\n", 1},
		{"a.md", "# One\n```\n# comment\n```\n", 0},
		{"a.bin", strings.Repeat("x", maxFileSizeByte+1), 1},
		{"testdata/a.go", "package a // TO" + "DO", 0},
	}
	for _, c := range cases {
		if got := textFaults(c.name, []byte(c.data)); len(got) != c.faults {
			t.Errorf("textFaults(%s, %.20q) = %v, want %d faults", c.name, c.data, got, c.faults)
		}
	}
}

func TestTidyGo(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.ast.Doc != nil && !f.isTest() {
			documented[path.Dir(f.path)] = true
		}
	}
	for _, f := range goFiles(t) {
		if !documented[path.Dir(f.path)] && !f.isTest() && !strings.Contains(f.path, "testdata/") {
			t.Errorf("%s: package %s has no package comment", f.path, f.ast.Name.Name)
		}
		for _, fault := range goFaults(f) {
			t.Error(fault)
		}
	}
}

// goFaults checks the rules for Go code: names of packages, length, documentation, hidden start-up work.
func goFaults(f goFile) []string {
	var faults []string
	report := func(n ast.Node, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s", f.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	banned := []string{"util", "utils", "common", "types", "helpers", "helper", "misc", "base", "lib"}
	if slices.Contains(banned, f.ast.Name.Name) {
		report(f.ast.Name, "package %s: name what it gives", f.ast.Name.Name)
	}
	if ast.IsGenerated(f.ast) {
		return faults
	}
	if lines := f.fset.Position(f.ast.FileEnd).Line; lines > maxFileLength && !f.isTest() {
		report(f.ast.Name, "%d lines, limit %d: which idea is the second?", lines, maxFileLength)
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			length := f.fset.Position(d.End()).Line - f.fset.Position(d.Pos()).Line + 1
			if length > maxFuncLength && !f.isTest() {
				report(d, "function %s has %d lines, limit %d", d.Name.Name, length, maxFuncLength)
			}
			if d.Name.Name == "init" && d.Recv == nil {
				report(d, "init: no work hidden in imports")
			}
			if !f.isTest() && d.Doc == nil && exportedFunc(d) {
				report(d, "exported %s has no doc comment", d.Name.Name)
			}
		case *ast.GenDecl:
			if !f.isTest() {
				undocumented(d, report)
			}
		}
	}
	return faults
}

// exportedFunc says whether d is a function, or a method of an exported type, that other packages can call. Methods that
// only satisfy a well-known interface explain themselves.
func exportedFunc(d *ast.FuncDecl) bool {
	selfEvident := []string{"String", "Error", "Unwrap", "Len", "Less", "Swap", "Push", "Pop", "Close", "Help"}
	if !d.Name.IsExported() || slices.Contains(selfEvident, d.Name.Name) {
		return false
	}
	if d.Recv == nil {
		return true
	}
	recv := d.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if index, ok := recv.(*ast.IndexExpr); ok {
		recv = index.X
	}
	name, ok := recv.(*ast.Ident)
	return ok && name.IsExported()
}

// undocumented reports exported types, constants and variables without a comment of their own or of their group.
func undocumented(d *ast.GenDecl, report func(ast.Node, string, ...any)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				report(s, "exported type %s has no doc comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					report(s, "exported %s has no doc comment", name.Name)
				}
			}
		}
	}
}

func TestTidyGoFindsFaults(t *testing.T) {
	long := "func f() {\n" + strings.Repeat("\tf()\n", maxFuncLength) + "}\n"
	cases := []struct {
		src    string
		faults int
	}{
		{"// Package p is documented.\npackage p\n", 0},
		{"package util\n", 1},
		{"package p\n" + long, 1},
		{"package p\nfunc init() {}\n", 1},
		{"package p\nfunc F() {}\ntype T int\nvar V int\n", 3},
		{"package p\n// F is.\nfunc F() {}\n// T is.\ntype T int\nfunc (T) String() string { return \"\" }\n", 0},
		{"package p\ntype t int\nfunc (t) M() {}\n", 0},
	}
	for _, c := range cases {
		if got := goFaults(parseSource(t, c.src)); len(got) != c.faults {
			t.Errorf("goFaults(%.30q) = %v, want %d faults", c.src, got, c.faults)
		}
	}
}

func TestChangelogShape(t *testing.T) {
	data, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "\n## Unreleased\n") {
		t.Error("CHANGELOG.md: no section \"## Unreleased\"")
	}
}
