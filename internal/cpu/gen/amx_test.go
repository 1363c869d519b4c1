package main

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tileInstructions are emitted instructions with the bytes and the text of GNU binutils 2.40.
var tileInstructions = []struct {
	emit        func(*file)
	bytes, text string
}{
	{func(f *file) { f.tileConfig("AX", 0) }, "c4e278490420", "ldtilecfg (%rax,%riz,1)"},
	{func(f *file) { f.tileConfig("R14", 0x40) }, "c4c27849442640", "ldtilecfg 0x40(%r14,%riz,1)"},
	{func(f *file) { f.tileRelease() }, "c4e27849c0", "tilerelease"},
	{func(f *file) { f.tileZero(3) }, "c4e27b49d8", "tilezero %tmm3"},
	{func(f *file) { f.tileLoad(rowsAt{"SI", 0, "R15", 2}, 6) }, "c4a27b4b347e", "tileloadd (%rsi,%r15,2),%tmm6"},
	{func(f *file) { f.tileLoad(rowsAt{"R8", 0x80, "R15", 1}, 5) }, "c4827b4bac3880000000", "tileloadd 0x80(%r8,%r15,1),%tmm5"},
	{func(f *file) { f.tileLoad(rowsAt{"R13", 0, "DX", 1}, 7) }, "c4c27b4b7c1500", "tileloadd 0x0(%r13,%rdx,1),%tmm7"},
	{func(f *file) { f.tileStore(1, rowsAt{"R14", 0x400, "R15", 2}) }, "c4827a4b8c7e00040000", "tilestored %tmm1,0x400(%r14,%r15,2)"},
	{func(f *file) { f.tileDot(5, 7, 1) }, "c4e2425ecd", "tdpbsud %tmm7,%tmm5,%tmm1"},
}

// emitted returns the bytes of what emit writes.
func emitted(t *testing.T, emit func(*file)) []byte {
	t.Helper()
	f := &file{}
	emit(f)
	var code []byte
	for _, m := range regexp.MustCompile(`BYTE \$0x([0-9a-f]{2})`).FindAllStringSubmatch(f.String(), -1) {
		b, err := hex.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, b...)
	}
	return code
}

func TestTileInstructions(t *testing.T) {
	var all []byte
	for _, c := range tileInstructions {
		code := emitted(t, c.emit)
		all = append(all, code...)
		if got := hex.EncodeToString(code); got != c.bytes {
			t.Errorf("%s: bytes %s, want %s", c.text, got, c.bytes)
		}
	}
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("the bytes are as recorded; there is no objdump to read them anew")
	}
	name := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "i386:x86-64", name).Output()
	if err != nil {
		t.Skipf("objdump does not read amd64: %v", err)
	}
	read := strings.Join(strings.Fields(string(text)), " ")
	for _, c := range tileInstructions {
		if !strings.Contains(read, c.text) {
			t.Errorf("objdump does not read %s:\n%s", c.text, text)
		}
	}
}
