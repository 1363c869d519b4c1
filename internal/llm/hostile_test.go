package llm_test

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

// lie is a change to a sound model file: another value for a key, or another tensor.
type lie struct {
	what   string
	key    string // "" changes no key
	value  any    // nil drops the key
	tensor string // "" changes no tensor
	change func(*gguf.Tensor) (keep bool)
}

// lies returns what a file may claim wrongly: each key with values at the edges and of other kinds, each tensor missing,
// of another shape, of another type.
func lies(f *gguf.File) []lie {
	values := []any{
		nil, uint32(0), uint32(1), uint32(7), uint32(math.MaxUint32), int32(-1), uint64(1) << 40, uint64(math.MaxUint64),
		float32(0), float32(math.NaN()), float32(math.Inf(-1)), "", "x", true,
		[]string{},
		[]uint32{1, 2},
		[]int32{-1},
		[]float32{0},
	}
	var all []lie
	for key := range f.Metadata.All() {
		for _, v := range values {
			all = append(all, lie{what: fmt.Sprintf("%s = %T %v", key, v, v), key: key, value: v})
		}
	}
	for _, t := range f.Tensors {
		for what, change := range map[string]func(*gguf.Tensor) bool{
			"missing": func(*gguf.Tensor) bool { return false },
			"transposed": func(t *gguf.Tensor) bool {
				t.Shape = []uint64{t.Shape[len(t.Shape)-1], t.Elements() / t.Shape[len(t.Shape)-1]}
				return true
			},
			"one row":     func(t *gguf.Tensor) bool { t.Shape = []uint64{t.Elements()}; return true },
			"of type 99":  func(t *gguf.Tensor) bool { t.Type = 99; return true },
			"of type I16": func(t *gguf.Tensor) bool { t.Type = 25; t.Data = t.Data[:2*t.Elements()]; return true },
		} {
			all = append(all, lie{what: t.Name + " " + what, tensor: t.Name, change: change})
		}
	}
	return all
}

// tell writes the file with the lie in it. It returns false where the lie cannot be put into a file.
func (l lie) tell(f *gguf.File, path string) bool {
	var b gguf.Builder
	for key, v := range f.Metadata.All() {
		switch {
		case key != l.key:
			b.SetValue(key, v)
		case l.value != nil:
			b.Set(key, l.value)
		}
	}
	for _, t := range f.Tensors {
		if t.Name != l.tensor || l.change(&t) {
			b.AddTensor(t.Name, t.Type, t.Shape, t.Data)
		}
	}
	return b.WriteFile(path) == nil
}

// TestHostileModels loads files that lie. Each gives an error that names the file or the thing, or a model that still
// answers requests; none takes much memory or ends the process.
func TestHostileModels(t *testing.T) {
	if testing.Short() {
		t.Skip("loads thousands of small files")
	}
	for _, name := range []string{"llama_gqa", "gemma3"} {
		f, err := gguf.Open(filepath.Join("..", "model", "testdata", "tiny", name, name+"-f16.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		path := filepath.Join(t.TempDir(), "hostile.gguf")
		loaded, refused := 0, 0
		for _, l := range lies(f) {
			if !l.tell(f, path) {
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := loadAndAsk(t, path)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
				t.Errorf("%s: %s: loading allocated %d MB", name, l.what, got)
			}
			if err == nil {
				loaded++
				continue
			}
			refused++
			if !strings.HasPrefix(err.Error(), "load "+path+": ") {
				t.Errorf("%s: %s: %v does not name the file", name, l.what, err)
			}
		}
		t.Logf("%s: %d refused, %d loaded", name, refused, loaded)
	}
}

// loadAndAsk loads a model and lets it write a few tokens. It returns the error of loading; a request may end in any
// way, but it must end.
func loadAndAsk(t *testing.T, path string) error {
	t.Helper()
	m, err := llm.Load(t.Context(), llm.Options{Model: path, KVCacheTokens: 256, Threads: 1})
	if err != nil {
		return err
	}
	params := sample.Default()
	h, err := m.Engine.Submit(t.Context(), &engine.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 3, Sampling: params})
	if err == nil {
		for range h.All(t.Context()) {
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	return nil
}
