package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/golden"
	"github.com/quire-ai/quire/internal/model"
	"github.com/quire-ai/quire/internal/tensor"
)

// verifyCmd compares a model's numbers with recorded ones.
type verifyCmd struct {
	Model  string   `arg:"" help:"Name from quire list, hf:owner/repo/file, or path of a GGUF file."`
	Golden []string `arg:"" help:"Golden files, or folders that hold a golden.json." type:"path"`

	JSON    bool   `name:"json" help:"Print one JSON object instead of a table."`
	Threads int    `placeholder:"N" help:"Threads that compute; all the process may use by default."`
	CPU     string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use; auto takes the fastest."`
}

// Help says what is compared and when the command fails.
func (verifyCmd) Help() string {
	return `Feeds the prompts of golden files to the model and compares what it computes with the recorded logits and greedy
continuations. Fails when a bound is broken:

  tiny models   logits within 0.03 of the record (float weights) or 0.8 and a mean KL below 0.006 (quantised),
                the best token equal wherever its margin exceeds the bound
  real models   mean KL estimate over all files given no more than llama.cpp's over the same positions plus the
                10 % that it varies by itself
  all           greedy tokens equal up to the first step whose margin is below 0.03 (float) or 0.5 (quantised)`
}

// maxBroken is how many broken bounds of a file the table names; --json has all.
const maxBroken = 5

// verifyChunk is how many tokens are computed in a step; any number gives the same bits.
const verifyChunk = 512

// Run compares every file and prints what it found.
func (c *verifyCmd) Run(ctx context.Context, con *console) error {
	files := make([]*golden.File, len(c.Golden))
	longest := 0
	for i, path := range c.Golden {
		f, err := golden.Open(path)
		if err != nil {
			return err
		}
		files[i] = f
		longest = max(longest, f.LongestSequence())
	}
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	path, err := catalog.New(cfg).Resolve(ctx, c.Model)
	if err != nil {
		return err
	}
	v, err := c.load(path, longest)
	if err != nil {
		return err
	}
	defer v.close()
	result := verifyResult{Model: path, Level: v.device.Level().String(), Threads: v.device.Threads()}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := golden.Compare(f, v, v.precision)
		if err != nil {
			return err
		}
		result.Files = append(result.Files, r)
	}
	result.Summary = golden.Summarize(result.Files)
	result.OK = result.Summary.OK()
	for _, r := range result.Files {
		result.OK = result.OK && len(r.Broken) == 0
	}
	if err := result.print(con.Out, c.JSON); err != nil {
		return err
	}
	if !result.OK {
		return errors.New("verify: a bound is broken")
	}
	return nil
}

// verifyResult is what --json prints.
type verifyResult struct {
	Model   string           `json:"model"`
	Level   string           `json:"level"`
	Threads int              `json:"threads"`
	OK      bool             `json:"ok"`
	Files   []*golden.Report `json:"files"`
	Summary *golden.Summary  `json:"summary,omitempty"` // of the real files together
}

func (r *verifyResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "golden file\tpositions\tmean_kl_estimate\tllama.cpp\ttop1_agreement\tmax_abs_diff\tgreedy_equal\t")
	peer := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.6f", *v)
	}
	for _, f := range r.Files {
		fmt.Fprintf(t, "%s\t%d\t%.6f\t%s\t%.4f\t%.5f\t%t (%d steps)\t\n",
			f.Name, f.Positions, f.MeanKL, peer(f.MeanKLOfPeer), f.Top1Agreement, f.MaxAbsDiff, f.GreedyEqual, f.GreedySteps)
	}
	if s := r.Summary; s != nil {
		fmt.Fprintf(t, "all real files\t%d\t%.6f\t%s\t\t\t\t\n", s.Positions, s.MeanKL, peer(s.MeanKLOfPeer))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Files {
		for i, b := range f.Broken {
			if i == maxBroken {
				fmt.Fprintf(w, "%s: and %d more\n", f.Name, len(f.Broken)-i)
				break
			}
			fmt.Fprintf(w, "%s: %s\n", f.Name, b)
		}
	}
	if s := r.Summary; !s.OK() {
		fmt.Fprintf(w, "all real files: %s\n", strings.Join(s.Broken, "; "))
	}
	return nil
}

// verifier runs a model without a scheduler: one sequence, whose blocks lie in order. It is a golden.Runner.
type verifier struct {
	file      *gguf.File
	device    *cpu.Device
	kv        *cpu.KV
	step      *model.Stepper
	vocab     int
	precision golden.Precision
	batch     model.Batch
	tables    [][]int32 // block table of each cache group
}

// load opens a model for sequences of up to longest tokens.
func (c *verifyCmd) load(path string, longest int) (v *verifier, err error) {
	v = &verifier{}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	if v.file, err = gguf.Open(path); err != nil {
		return v, err
	}
	level, err := cpu.Detect(c.CPU)
	if err != nil {
		return v, err
	}
	if v.device, err = cpu.NewDevice(cpu.Options{Level: level, Threads: c.Threads}); err != nil {
		return v, err
	}
	m, err := model.Load(v.file, model.Options{Device: v.device, MaxModelLen: longest})
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	shape := m.KVShape(16)
	count := (longest + shape.BlockSize - 1) / shape.BlockSize
	groups := len(m.CacheGroups)
	if v.kv, err = cpu.NewKV(shape, groups*count); err != nil {
		return v, err
	}
	if v.step, err = m.NewStepper(v.kv, min(verifyChunk, longest)); err != nil {
		return v, err
	}
	v.tables, v.batch.Seqs = make([][]int32, groups), make([][]cpu.Seq, groups)
	for i := range groups * count {
		v.tables[i%groups] = append(v.tables[i%groups], int32(i))
	}
	v.vocab = m.Vocab
	if quantised(v.file) {
		v.precision = golden.Blocks
	}
	return v, nil
}

// quantised tells whether any matrix of the file has weights in blocks, so that activations are quantised too.
func quantised(f *gguf.File) bool {
	for i := range f.Tensors {
		switch t := &f.Tensors[i]; t.Type {
		case tensor.F32, tensor.F16, tensor.BF16:
		default:
			return true
		}
	}
	return false
}

func (v *verifier) close() error {
	var errs []error
	if v.kv != nil {
		errs = append(errs, v.kv.Close())
	}
	if v.device != nil {
		errs = append(errs, v.device.Close())
	}
	if v.file != nil {
		errs = append(errs, v.file.Close())
	}
	return errors.Join(errs...)
}

// Vocab is the number of logits in a row.
func (v *verifier) Vocab() int { return v.vocab }

// Logits feeds a sequence and visits the logits after the positions that are wanted.
func (v *verifier) Logits(ids []int32, want func(pos int) bool, visit func(pos int, logits []float32)) error {
	for from := 0; from < len(ids); from += verifyChunk {
		chunk := ids[from:min(from+verifyChunk, len(ids))]
		v.batch.Want = v.batch.Want[:0]
		for i := range chunk {
			if want(from + i) {
				v.batch.Want = append(v.batch.Want, int32(i))
			}
		}
		v.batch.Tokens = chunk
		v.locate(from, len(chunk))
		if err := v.step.Forward(&v.batch); err != nil {
			return err
		}
		for i := 0; i < len(v.batch.Want); i += model.LogitRows {
			n := min(model.LogitRows, len(v.batch.Want)-i)
			logits := v.step.Logits(i, n)
			for k := range n {
				visit(from+int(v.batch.Want[i+k]), logits[k*v.vocab:][:v.vocab])
			}
		}
	}
	return nil
}

// locate says where the rows of the batch stand.
func (v *verifier) locate(pos, rows int) {
	for g, blocks := range v.tables {
		v.batch.Seqs[g] = append(v.batch.Seqs[g][:0], cpu.Seq{Blocks: blocks, Rows: rows, Pos: pos})
	}
}

// Greedy continues a sequence with the highest logits, the lowest id first among equals.
func (v *verifier) Greedy(ids []int32, n int) ([]int32, error) {
	all := ids[:len(ids):len(ids)]
	best := func(_ int, logits []float32) { all = append(all, argmax(logits)) }
	if err := v.Logits(ids, func(pos int) bool { return pos == len(ids)-1 }, best); err != nil {
		return nil, err
	}
	for len(all) < len(ids)+n {
		v.batch.Tokens, v.batch.Want = all[len(all)-1:], append(v.batch.Want[:0], 0)
		v.locate(len(all)-1, 1)
		if err := v.step.Forward(&v.batch); err != nil {
			return nil, err
		}
		best(0, v.step.Logits(0, 1))
	}
	return all[len(ids):], nil
}

// argmax returns the lowest id among those with the highest logit.
func argmax(logits []float32) int32 {
	best := int32(0)
	for i, l := range logits {
		if l > logits[best] {
			best = int32(i)
		}
	}
	return best
}
