package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The words of instructions that Go's assembler lacks are what their comments say: a disassembler reads them so.
func TestWordsDisassemble(t *testing.T) {
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("NOT TESTED: no aarch64-linux-gnu-objdump (Debian: apt-get install binutils-aarch64-linux-gnu)")
	}
	word := regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.*)`)
	said := map[uint32]string{}
	var code []byte
	for name, text := range generate() {
		if !strings.HasSuffix(name, "_arm64.s") {
			continue
		}
		for _, m := range word.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.ParseUint(m[1], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			said[uint32(n)] = m[2]
			code = binary.LittleEndian.AppendUint32(code, uint32(n))
		}
	}
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, code, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "aarch64", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ *[0-9a-f]+:\t([0-9a-f]{8}) \t(.*)$`)
	read := 0
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.ReplaceAll(m[2], "\t", " "), said[uint32(n)]; got != want {
			t.Errorf("%08x is %q, said to be %q", n, got, want)
		}
		read++
	}
	if len(said) == 0 || read*4 != len(code) {
		t.Errorf("%d words, %d instructions read back", len(code)/4, read)
	}
}
