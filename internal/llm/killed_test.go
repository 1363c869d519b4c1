package llm_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

// childDir names the folder that a child process of TestKilled works on.
const childDir = "QUIRE_TEST_KILLED_DIR"

func loadKilled(t *testing.T, tiers llm.Tiers) *llm.Model {
	t.Helper()
	path := filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf")
	m, err := llm.Load(t.Context(), llm.Options{Model: path, KVCacheTokens: 256, Threads: 1, Tiers: tiers})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func killedTiers(dir string) llm.Tiers {
	return llm.Tiers{RAM: -1, Disk: dir, DiskBytes: 1 << 20} // room for some of the blocks: slots are used again
}

// TestKilledChild is what TestKilled kills: it answers prompts until then.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("run by TestKilled")
	}
	m := loadKilled(t, killedTiers(dir))
	fmt.Println("ready")
	for i := 0; ; i++ {
		answer(t, m, ids(i%8, 150, m.Engine.Vocab()), 8)
	}
}

// TestKilled: a process is killed at random moments while it stores and loads; after each restart every answer has the bits of
// a cold run.
func TestKilled(t *testing.T) {
	cold := loadKilled(t, llm.Tiers{RAM: -1})
	var want [8][]sample.Token
	for i := range want {
		want[i], _ = answer(t, cold, ids(i, 150, cold.Engine.Vocab()), 8)
	}
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}
	kills, loaded, dir := 20, 0, t.TempDir()
	if testing.Short() {
		kills = 3
	}
	random := rand.New(rand.NewPCG(1, 1))
	for k := range kills {
		killChild(t, dir, time.Duration(random.IntN(60))*time.Millisecond)
		m := loadKilled(t, killedTiers(dir))
		for i := range want {
			got, f := answer(t, m, ids(i, 150, m.Engine.Vocab()), 8)
			if !slices.EqualFunc(got, want[i], func(a, b sample.Token) bool { return a.ID == b.ID && a.Logprob == b.Logprob }) {
				t.Errorf("after kill %d prompt %d gives %v, cold %v", k, i, got, want[i])
			}
			loaded += f.LoadedTokens
		}
		if n := m.Tiers.Stats()[0].Failures["corrupt"]; n > 0 {
			t.Errorf("after kill %d %d chunks in the index are corrupt", k, n)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if loaded == 0 {
		t.Error("nothing was loaded: the test shows nothing")
	}
	t.Logf("%d kills, %d tokens loaded afterwards", kills, loaded)
}

// killChild starts the child, and kills it a while after it has begun to answer.
func killChild(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	time.Sleep(after)
	_ = child.Process.Kill()
	_ = child.Wait()
}
