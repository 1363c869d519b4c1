package model

import (
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/model/modeltest"
)

// TestConfigRefusesByName feeds files that ask for what cannot be run: the error names the thing and the numbers.
func TestConfigRefusesByName(t *testing.T) {
	type keys = map[string]any
	cases := []struct {
		name string
		spec modeltest.Spec
		want []string // parts of the error
	}{
		{"architecture", modeltest.Spec{Arch: "mamba"}, []string{`architecture "mamba" is not supported`, `"llama"`, `"phi3"`}},
		{"rope scaling", modeltest.Spec{Keys: keys{"rope.scaling.type": "su"}}, []string{`rope scaling type "su"`, `"yarn"`}},
		{"missing key", modeltest.Spec{Keys: keys{"block_count": nil}}, []string{"llama.block_count"}},
		{"wrong kind", modeltest.Spec{Keys: keys{"block_count": "two"}}, []string{"llama.block_count", "string"}},
		{"many layers", modeltest.Spec{Keys: keys{"block_count": uint32(1 << 30)}}, []string{"block_count is 1073741824, limit 1024"}},
		{"no heads", modeltest.Spec{Keys: keys{"attention.head_count": uint32(0)}}, []string{"attention.head_count 0"}},
		{"uneven heads", modeltest.Spec{Keys: keys{"attention.head_count_kv": uint32(3)}}, []string{"4 query heads", "3 key-value heads"}},
		{"head sizes", modeltest.Spec{Keys: keys{"attention.value_length": uint32(32)}}, []string{"key_length 16", "value_length 32"}},
		{"unlike layers", modeltest.Spec{Keys: keys{"attention.head_count_kv": []uint32{2, 1}}}, []string{"is 1 in layer 1 and 2 in layer 0"}},
		{"odd rope", modeltest.Spec{Keys: keys{"rope.dimension_count": uint32(7)}}, []string{"rope.dimension_count 7"}},
		{"wide rope", modeltest.Spec{Keys: keys{"rope.dimension_count": uint32(18)}}, []string{"rope.dimension_count 18", "head size 16"}},
		{"epsilon", modeltest.Spec{Keys: keys{"attention.layer_norm_rms_epsilon": float32(0)}}, []string{"layer_norm_rms_epsilon 0"}},
		{"window", modeltest.Spec{Arch: "gemma3", Keys: keys{"attention.sliding_window": nil}}, []string{"sliding_window is missing"}},
		{"yarn", modeltest.Spec{Context: 64, Keys: keys{
			"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.original_context_length": uint32(0),
		}}, []string{"yarn needs rope.scaling.original_context_length"}},
		{"experts", modeltest.Spec{Keys: keys{"expert_count": uint32(8)}}, []string{"llama.expert_count is 8", "not supported"}},
		{"logit scale", modeltest.Spec{Keys: keys{"logit_scale": float32(0.5)}}, []string{"llama.logit_scale is 0.5"}},
		{"embeddings", modeltest.Spec{Keys: keys{"attention.causal": false}}, []string{"attention.causal is false"}},
		{"odd kind", modeltest.Spec{Keys: keys{"expert_count": "many"}}, []string{"expert_count is a string"}},
		{"vocabulary", modeltest.Spec{Tensors: map[string][]float32{"token_embd.weight": nil}}, []string{"token_embd.weight is missing"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseConfig(open(t, modeltest.Write(t, c.spec)))
			if err == nil {
				t.Fatalf("accepted; want an error with %q", c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// TestConfigWindowedLayers checks which layers of gemma3 look through the window: all but every sixth.
func TestConfigWindowedLayers(t *testing.T) {
	c, err := ParseConfig(open(t, modeltest.Write(t, modeltest.Spec{Arch: "gemma3", Layers: 13})))
	if err != nil {
		t.Fatal(err)
	}
	for l := range c.Layers {
		if got, want := c.Windowed(l), l != 5 && l != 11; got != want {
			t.Errorf("Windowed(%d) = %v, want %v", l, got, want)
		}
	}
	if c.local.base != 10000 || c.global.base != 10000 {
		t.Errorf("rope bases: local %g, global %g, want the defaults", c.local.base, c.global.base)
	}
}
