package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// table is a model that looks its logits up by the last token, plus an offset on one id: enough to be right or wrong.
type table struct {
	rows  [][]float32 // [token][vocab]
	shift float32     // added to the logit of token 3
}

func (m *table) Vocab() int { return len(m.rows[0]) }

func (m *table) row(token int32) []float32 {
	row := append([]float32(nil), m.rows[token]...)
	row[3] += m.shift
	return row
}

func (m *table) Logits(ids []int32, want func(int) bool, visit func(int, []float32)) error {
	for pos, id := range ids {
		if want(pos) {
			visit(pos, m.row(id))
		}
	}
	return nil
}

func (m *table) Greedy(ids []int32, n int) ([]int32, error) {
	all := append([]int32(nil), ids...)
	for range n {
		all = append(all, argmax(m.row(all[len(all)-1])))
	}
	return all[len(ids):], nil
}

func newTable() *table {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &table{}
	for range 8 {
		row := make([]float32, 8)
		for i := range row {
			row[i] = float32(2 * rng.NormFloat64())
		}
		m.rows = append(m.rows, row)
	}
	return m
}

// greedy records the model's own greedy continuation, with margins.
func (m *table) greedy(ids []int32, n int) Greedy {
	out, _ := m.Greedy(ids, n)
	g := Greedy{IDs: out}
	last := ids[len(ids)-1]
	for _, id := range out {
		row := m.row(last)
		second := math.Inf(-1)
		for i, v := range row {
			if int32(i) != id {
				second = max(second, float64(v))
			}
		}
		g.Margins = append(g.Margins, float64(row[id])-second)
		last = id
	}
	return g
}

// writeTiny records a model as a tiny golden file.
func writeTiny(t *testing.T, m *table, prompts ...[]int32) string {
	t.Helper()
	g := Tiny{Name: "table", Prompts: prompts}
	var logits []float32
	for i, p := range prompts {
		from := len(logits) / m.Vocab()
		var best []int32
		var margins []float64
		for _, id := range p {
			row := m.row(id)
			logits = append(logits, row...)
			one := m.greedy([]int32{id}, 1)
			best, margins = append(best, one.IDs[0]), append(margins, one.Margins[0])
		}
		g.Rows = append(g.Rows, [2]int{from, from + len(p)})
		g.Argmax, g.ArgmaxMargin = append(g.Argmax, best), append(g.ArgmaxMargin, margins)
		greedy := m.greedy(p, 4)
		greedy.Prompt = i
		g.Greedy = append(g.Greedy, greedy)
	}
	dir := t.TempDir()
	save(t, filepath.Join(dir, "golden.json"), g)
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(logits)/m.Vocab(), m.Vocab())
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	npy := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	npy = append(npy, header...)
	for _, v := range logits {
		npy = binary.LittleEndian.AppendUint32(npy, math.Float32bits(v))
	}
	if err := os.WriteFile(filepath.Join(dir, "logits_f32.npy"), npy, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func save(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, path string, m Runner, p Precision) *Report {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compare(f, m, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTinyFile(t *testing.T) {
	m := newTable()
	dir := writeTiny(t, m, []int32{1}, []int32{2, 5, 7, 0})
	r := compare(t, dir, m, Float)
	if r.Positions != 5 || r.MeanKL != 0 || r.MaxAbsDiff != 0 || r.Top1Agreement != 1 || !r.GreedyEqual || len(r.Broken) > 0 {
		t.Errorf("the model that made the file: %+v; want no difference over 5 positions", r)
	}
	m.shift = 0.02
	if r = compare(t, dir, m, Float); len(r.Broken) > 0 || math.Abs(r.MaxAbsDiff-0.02) > 1e-6 {
		t.Errorf("off by 0.02: broken %q, max abs diff %g; want none, 0.02", r.Broken, r.MaxAbsDiff)
	}
	m.shift = 20
	r = compare(t, dir, m, Float)
	if r.GreedyEqual || r.Top1Agreement > 0.5 || len(r.Broken) < 2 {
		t.Errorf("token 3 always best: %+v; want greedy unequal and bounds broken", r)
	}
	m.rows[5][0] = float32(math.NaN())
	if r = compare(t, dir, m, Float); !strings.Contains(strings.Join(r.Broken, "; "), "prompt 1 position 1: logit of token 0 is NaN") {
		t.Errorf("a logit is NaN: broken %q", r.Broken)
	}
}

// realFile records the model as a real file: the two likeliest ids, and every other id once as the sample.
func realFile(m *table, ids []int32) *Real {
	g := &Real{Model: "table", Name: "prompt", IDs: ids, Greedy: m.greedy(ids, 5)}
	for pos, id := range ids {
		row := m.row(id)
		logp := logSoftmax(row)
		p := Position{Pos: pos, TopIDs: []int32{argmax(row)}, TopLogprobs: []float64{logp(argmax(row))}}
		for i := range row {
			if int32(i) != p.TopIDs[0] {
				p.TailIDs = append(p.TailIDs, int32(i))
				p.TailLogprobs = append(p.TailLogprobs, logp(int32(i)))
			}
		}
		g.Positions = append(g.Positions, p)
	}
	return g
}

func TestRealFile(t *testing.T) {
	m := newTable()
	path := filepath.Join(t.TempDir(), "prompt.json")
	save(t, path, realFile(m, []int32{1, 2, 3, 6}))
	r := compare(t, path, m, Blocks)
	if r.Positions != 4 || math.Abs(r.MeanKL) > 1e-12 || r.MaxAbsDiff > 1e-12 || !r.GreedyEqual || len(r.Broken) > 0 {
		t.Errorf("the model that made the file: %+v; want no difference over 4 positions", r)
	}
	if s := Summarize([]*Report{r}); s.Positions != 4 || s.MeanKLOfPeer != nil || !s.OK() {
		t.Errorf("summary %+v; want 4 positions and no peer", s)
	}
	m.shift = -15
	if r = compare(t, path, m, Blocks); r.GreedyEqual || len(r.Broken) == 0 || r.MeanKL < 1 {
		t.Errorf("token 3 never best: %+v; want greedy unequal and a large divergence", r)
	}
}

// TestEstimateIsUnbiased draws tails as the golden files do and compares the mean estimate with the exact divergence.
func TestEstimateIsUnbiased(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	want := make([]float32, 50)
	got := make([]float32, 50)
	for i := range want {
		want[i] = float32(2 * rng.NormFloat64())
		got[i] = want[i] + float32(0.2*rng.NormFloat64())
	}
	p, q := logSoftmax(want), logSoftmax(got)
	mean, draws := 0.0, 2000
	for range draws {
		pos := Position{TopIDs: []int32{argmax(want)}, TopLogprobs: []float64{p(argmax(want))}}
		for len(pos.TailIDs) < 64 {
			id := int32(rng.IntN(50))
			if id != pos.TopIDs[0] && rng.Float64() < math.Exp(p(id)) {
				pos.TailIDs, pos.TailLogprobs = append(pos.TailIDs, id), append(pos.TailLogprobs, p(id))
			}
		}
		kl, _ := estimateKL(&pos, q)
		mean += kl / float64(draws)
	}
	exact := exactKL(want, got)
	if math.Abs(mean-exact) > 0.02*exact { // the mean's own deviation is below 1 percent
		t.Errorf("mean estimate %g, exact %g", mean, exact)
	}
}

func TestSummaryHoldsTheBound(t *testing.T) {
	peer := 0.002
	r := &Report{Kind: "real", Positions: 10, MeanKLOfPeer: &peer, klSum: 0.021, klSumOfPeer: 0.020}
	if s := Summarize([]*Report{r}); !s.OK() || math.Abs(s.MeanKL-0.0021) > 1e-9 {
		t.Errorf("5 %% above the peer: %+v; want OK", s)
	}
	r.klSum = 0.023
	if s := Summarize([]*Report{r, {Kind: "tiny"}}); s.OK() {
		t.Errorf("15 %% above the peer: %+v; want broken", s)
	}
	if Summarize([]*Report{{Kind: "tiny"}}) != nil {
		t.Error("a summary of no real file")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ data, want string }{
		"neither kind":   {`{"a":1}`, "neither"},
		"no json":        {`[`, "unexpected end"},
		"no ids":         {`{"positions":[],"ids":[]}`, "ids is empty"},
		"outside":        {`{"positions":[{"pos":3,"top_ids":[1],"top_logprobs":[0]}],"ids":[1]}`, "positions[0].pos 3"},
		"uneven":         {`{"positions":[{"pos":0,"top_ids":[1],"top_logprobs":[]}],"ids":[1]}`, "1 top ids, 0 top logprobs"},
		"uneven margins": {`{"positions":[],"ids":[1],"greedy":{"ids":[1],"margins":[]}}`, "1 ids and 0 margins"},
		"rows":           {`{"prompts":[[1]],"rows":[]}`, "1 prompts have 0 rows"},
		"empty prompt":   {`{"prompts":[[]],"rows":[[0,0]],"argmax":[[]],"argmax_margin":[[]]}`, "prompt 0 of 0 ids"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".json")
		if err := os.WriteFile(path, []byte(c.data), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want one with %q", name, err, c.want)
		}
	}
}

func TestAnotherModelsFile(t *testing.T) {
	m := newTable()
	path := filepath.Join(t.TempDir(), "prompt.json")
	g := realFile(m, []int32{1, 2})
	g.IDs[1] = 8
	save(t, path, g)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(f, m, Blocks); err == nil || !strings.Contains(err.Error(), "token 8") {
		t.Errorf("error %v; want one that names token 8", err)
	}
}

func TestNPYRefuses(t *testing.T) {
	for _, data := range []string{
		"", "\x93NUMPY", "\x93NUMPY\x01\x00\xff\xff{}",
		"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}",
		"\x93NUMPY\x01\x00\x47\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 288), }\n",
	} {
		if _, err := parseNPY([]byte(data)); err == nil {
			t.Errorf("parseNPY(%q) accepted", data)
		}
	}
}
