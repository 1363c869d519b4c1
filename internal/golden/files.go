package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Real is a golden file of a published model: one prompt.
type Real struct {
	Model        string     `json:"model"`
	Name         string     `json:"name"`
	IDs          []int32    `json:"ids"` // token ids fed to the model, position 0 first
	Positions    []Position `json:"positions"`
	Greedy       Greedy     `json:"greedy"`
	MeanKLOfPeer *float64   `json:"mean_kl_llamacpp"` // llama.cpp's, full vocabulary, all positions; nil when not recorded
}

// Position is the reference's distribution after one token of a real prompt.
type Position struct {
	Pos          int       `json:"pos"`
	TopIDs       []int32   `json:"top_ids"` // the likeliest tokens in falling order
	TopLogprobs  []float64 `json:"top_logprobs"`
	TailIDs      []int32   `json:"tail_ids"` // drawn from the rest of the distribution, with repetition
	TailLogprobs []float64 `json:"tail_logprobs"`
	LlamaCPP     *struct {
		KLEstimate float64 `json:"kl_estimate"`
	} `json:"llamacpp"` // the peer's figures; nil when not recorded
}

// Greedy is a continuation that always takes the highest logit. It does not stop at an end token.
type Greedy struct {
	Prompt  int       `json:"prompt"` // index into the prompts of a tiny file
	IDs     []int32   `json:"ids"`
	Margins []float64 `json:"margins"` // best logit minus second best at each step
}

// Tiny is a golden file of a small random model: three prompts and their logits.
type Tiny struct {
	Name         string      `json:"name"`
	Architecture string      `json:"architecture"`
	Prompts      [][]int32   `json:"prompts"`
	Rows         [][2]int    `json:"rows"` // the rows [from, to) of logits_f32.npy of each prompt
	Argmax       [][]int32   `json:"argmax"`
	ArgmaxMargin [][]float64 `json:"argmax_margin"`
	Greedy       []Greedy    `json:"greedy"`
	Q8           struct {
		Argmax [][]int32 `json:"argmax"`
		Greedy []Greedy  `json:"greedy"`
	} `json:"q8_0"`

	dir string // folder of the file, where the .npy files lie
}

// File is a golden file of either kind; exactly one of the pointers is set.
type File struct {
	Path string
	Real *Real
	Tiny *Tiny
}

// Open reads a golden file and finds out its kind by its fields. A folder stands for the golden.json in it.
func Open(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, "golden.json")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read golden file: %w", err)
	}
	var kind struct {
		Positions json.RawMessage `json:"positions"`
		Prompts   json.RawMessage `json:"prompts"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("read golden file %s: %w", path, err)
	}
	f := &File{Path: path}
	switch {
	case kind.Positions != nil:
		f.Real = new(Real)
		err = errors.Join(json.Unmarshal(data, f.Real), f.Real.check())
	case kind.Prompts != nil:
		f.Tiny = &Tiny{dir: filepath.Dir(path)}
		err = errors.Join(json.Unmarshal(data, f.Tiny), f.Tiny.check())
	default:
		err = errors.New(`neither "positions" (a real file) nor "prompts" (a tiny file) is there`)
	}
	if err != nil {
		return nil, fmt.Errorf("read golden file %s: %w", path, err)
	}
	return f, nil
}

// LongestSequence returns the number of tokens a model must be able to hold to be compared with the file.
func (f *File) LongestSequence() int {
	if f.Real != nil {
		return len(f.Real.IDs) + len(f.Real.Greedy.IDs)
	}
	longest := 0
	for i, p := range f.Tiny.Prompts {
		longest = max(longest, len(p))
		for _, g := range append(f.Tiny.Greedy[:len(f.Tiny.Greedy):len(f.Tiny.Greedy)], f.Tiny.Q8.Greedy...) {
			if g.Prompt == i {
				longest = max(longest, len(p)+len(g.IDs))
			}
		}
	}
	return longest
}

// checkVocab refuses a file with token ids outside a vocabulary: it belongs to another model.
func (f *File) checkVocab(vocab int) error {
	var lists [][]int32
	if r := f.Real; r != nil {
		lists = append(lists, r.IDs, r.Greedy.IDs)
		for i := range r.Positions {
			lists = append(lists, r.Positions[i].TopIDs, r.Positions[i].TailIDs)
		}
	} else {
		lists = f.Tiny.Prompts
	}
	for _, ids := range lists {
		for _, id := range ids {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("it holds token %d, the model's vocabulary has %d: is it another model's?", id, vocab)
			}
		}
	}
	return nil
}

func (r *Real) check() error {
	if len(r.IDs) == 0 {
		return errors.New("ids is empty")
	}
	for i, p := range r.Positions {
		if p.Pos < 0 || p.Pos >= len(r.IDs) {
			return fmt.Errorf("positions[%d].pos %d is outside the %d ids", i, p.Pos, len(r.IDs))
		}
		if len(p.TopIDs) == 0 || len(p.TopIDs) != len(p.TopLogprobs) || len(p.TailIDs) != len(p.TailLogprobs) {
			return fmt.Errorf("positions[%d] has %d top ids, %d top logprobs, %d tail ids, %d tail logprobs",
				i, len(p.TopIDs), len(p.TopLogprobs), len(p.TailIDs), len(p.TailLogprobs))
		}
	}
	return r.Greedy.check()
}

func (g *Greedy) check() error {
	if len(g.IDs) != len(g.Margins) {
		return fmt.Errorf("greedy has %d ids and %d margins", len(g.IDs), len(g.Margins))
	}
	return nil
}

func (t *Tiny) check() error {
	if len(t.Rows) != len(t.Prompts) || len(t.Argmax) != len(t.Prompts) || len(t.ArgmaxMargin) != len(t.Prompts) {
		return fmt.Errorf("%d prompts have %d rows, %d argmax and %d argmax_margin",
			len(t.Prompts), len(t.Rows), len(t.Argmax), len(t.ArgmaxMargin))
	}
	for i, p := range t.Prompts {
		if len(p) == 0 || t.Rows[i][1]-t.Rows[i][0] != len(p) || len(t.Argmax[i]) != len(p) || len(t.ArgmaxMargin[i]) != len(p) {
			return fmt.Errorf("prompt %d of %d ids has rows %v, %d argmax and %d argmax_margin",
				i, len(p), t.Rows[i], len(t.Argmax[i]), len(t.ArgmaxMargin[i]))
		}
	}
	for _, list := range [][]Greedy{t.Greedy, t.Q8.Greedy} {
		for i := range list {
			if list[i].Prompt < 0 || list[i].Prompt >= len(t.Prompts) {
				return fmt.Errorf("greedy[%d].prompt %d is none of the %d prompts", i, list[i].Prompt, len(t.Prompts))
			}
			if err := list[i].check(); err != nil {
				return err
			}
		}
	}
	return nil
}
