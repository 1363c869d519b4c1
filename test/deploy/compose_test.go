package deploy

import (
	"bufio"
	"bytes"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

func newReader(data []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(data)) }

// TestCompose: the file is a Compose project by the specification's own schema, and Quire's flags exist.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{filepath.Join("..", "..", "deploy", "compose", "compose.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"quire", "valkey", "prometheus"} {
		if _, err := project.GetService(name); err != nil {
			t.Error(err)
		}
	}
	quire := project.Services["quire"]
	checkArgs(t, "compose", quire.Command)
	if len(quire.Ports) != 1 || quire.Ports[0].HostIP != "127.0.0.1" || quire.Ports[0].Target != 8000 {
		t.Errorf("quire's ports are %+v: want 8000, on the loopback only", quire.Ports)
	}
}
