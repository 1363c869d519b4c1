package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/internal/tensor"
	"github.com/quire-ai/quire/internal/testmodel"
)

var rewriteBits = flag.Bool("rewrite-bits", false, "write testdata/bits.json anew, by the best level")

// bits are the results of a model that every level of every processor must give: greedy tokens after a prompt, and a
// hash over the bits of all logits on the way. Model is the hash of the file, without which the others say nothing.
type bits struct {
	Model  string `json:"model_sha256"`
	Tokens string `json:"tokens"`
	Logits string `json:"logits_sha256"`
}

// bitsCase is a model and a prompt.
type bitsCase struct {
	path   string
	prompt []int32
	tokens int // to generate
}

const bitsFile = "testdata/bits.json"

// TestBits holds every level to the committed results, on whatever processor this is: .ci/arm64 runs it on an emulated
// one of another kind. Chunks, threads and block sizes differ between levels, which must not matter.
func TestBits(t *testing.T) {
	checkBits(t, tinyBits(t))
}

// TestBitsOfRealModel is TestBits on a published model.
func TestBitsOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("a real model on the generic level")
	}
	checkBits(t, map[string]bitsCase{
		smolLM2: {testmodel.Path(t, smolLM2), []int32{504, 3575, 282, 4649, 314}, 4}, // The capital of France is
	})
}

// checkBits runs every case on every level.
func checkBits(t *testing.T, cases map[string]bitsCase) {
	data, err := os.ReadFile(bitsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]bits
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if *rewriteBits {
		rewrite(t, all, cases)
	}
	setups := []setup{{maxRows: 64}, {maxRows: 7, threads: 2, blockSize: 8}, {maxRows: 5, blockSize: 32}, {maxRows: 1, threads: 3}}
	for i, level := range cpu.Levels() {
		o := setups[i%len(setups)]
		o.level = level
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(fmt.Sprintf("%v/%s", level, name), func(t *testing.T) {
				if got, want := cases[name].run(t, o), all[name]; got != want {
					t.Errorf("got %+v; want %+v", got, want)
				}
			})
		}
	}
}

// rewrite replaces the results of the cases.
func rewrite(t *testing.T, all map[string]bits, cases map[string]bitsCase) {
	for name, c := range cases {
		all[name] = c.run(t, setup{level: fastest()})
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bitsFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c bitsCase) run(t *testing.T, o setup) bits {
	data, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	m, sum := newMachine(t, open(t, c.path), o), sha256.New()
	rows := m.run(t, c.prompt, m.maxRows)
	for _, row := range rows {
		hashFloats(sum, row)
	}
	var tokens []int32
	for last := rows[len(rows)-1]; ; {
		best := 0
		for i, v := range last {
			if v > last[best] {
				best = i
			}
		}
		tokens = append(tokens, int32(best))
		if len(tokens) == c.tokens {
			return bits{fmt.Sprintf("%x", sha256.Sum256(data)), fmt.Sprint(tokens), fmt.Sprintf("%x", sum.Sum(nil))}
		}
		rows, err = m.step(tokens[len(tokens)-1:], len(c.prompt)+len(tokens)-1, false)
		if err != nil {
			t.Fatal(err)
		}
		last = rows[0]
		hashFloats(sum, last)
	}
}

// hashFloats adds the bits of x to a hash.
func hashFloats(h hash.Hash, x []float32) {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	h.Write(b)
}

// tinyBits are the tiny models of testdata, one random model of each tensor type, and one of each way to stretch rope.
func tinyBits(t *testing.T) map[string]bitsCase {
	t.Helper()
	paths, err := filepath.Glob("testdata/tiny/*/*.gguf")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	cases := map[string]bitsCase{}
	for _, path := range paths {
		cases[filepath.Base(path)] = bitsCase{path, randomIDs(40), 8}
	}
	for typ := tensor.DType(0); typ < 64; typ++ {
		if cpu.CanPack(typ) {
			spec := modeltest.Spec{Type: typ, Hidden: 256, FFN: 256, HeadDim: 64, Layers: 1}
			cases["random-"+typ.String()] = bitsCase{modeltest.Write(t, spec), randomIDs(9), 3}
		}
	}
	type keys = map[string]any
	for name, spec := range map[string]modeltest.Spec{
		"yarn": {Arch: "qwen2", Keys: keys{
			"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.original_context_length": uint32(64),
		}},
		"longrope": {Arch: "phi3", Tensors: map[string][]float32{
			"rope_factors_short.weight": series(4, 1, 1.5), "rope_factors_long.weight": series(4, 1, 30),
		}, Keys: keys{
			"rope.dimension_count": uint32(8), "rope.scaling.original_context_length": uint32(64), "rope.scaling.attn_factor": float32(1.19),
		}},
		"caps": {Arch: "gemma3", Keys: keys{"attn_logit_softcapping": float32(3), "final_logit_softcapping": float32(5)}},
		"odd":  {Hidden: 40, FFN: 100, Vocab: 301, Heads: 3, KVHeads: 1},
	} {
		cases["random-"+name] = bitsCase{modeltest.Write(t, spec), randomIDs(90), 8}
	}
	return cases
}
