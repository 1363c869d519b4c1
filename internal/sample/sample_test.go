package sample

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quire-ai/quire/internal/cpu"
)

// plain is plain Go, which says what the levels must give.
var plain = cpu.LogitsAt(cpu.Generic)

// Vectors of Random123 1.14, tests/kat_vectors, philox4x32 10.
func TestPhiloxVectors(t *testing.T) {
	const ones = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x; want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestExpLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := -rng.ExpFloat64() * 20
		if got, want := exp(x), math.Exp(x); x > -700 && math.Abs(got-want) > 5e-16*want {
			t.Fatalf("exp(%v) = %v; want %v", x, got, want)
		}
		y := math.Exp(rng.NormFloat64() * 5)
		if got, want := log(y), math.Log(y); math.Abs(got-want) > 3e-16*max(1, math.Abs(want)) {
			t.Fatalf("log(%v) = %v; want %v", y, got, want)
		}
	}
	if exp(0) != 1 || exp(-1000) != 0 || exp(math.Inf(-1)) != 0 || log(1) != 0 {
		t.Errorf("exp(0), exp(-1000), exp(-Inf), log(1) = %v, %v, %v, %v; want 1, 0, 0, 0",
			exp(0), exp(-1000), exp(math.Inf(-1)), log(1))
	}
}

// draws samples n positions of the same row and counts the ids.
func draws(t *testing.T, p Params, probabilities []float64, n int) []int {
	t.Helper()
	logits := make([]float32, len(probabilities))
	for i, q := range probabilities {
		logits[i] = float32(math.Log(q))
	}
	s := New(&p, len(logits), nil, plain)
	got := make([]int, len(logits))
	for i := range n {
		tok, err := s.Sample(logits, i)
		if err != nil {
			t.Fatal(err)
		}
		got[tok.ID]++
	}
	return got
}

// The counts are exact: they change only if the random function, the order of summation or the meaning of a parameter does.
func TestDistribution(t *testing.T) {
	probabilities := []float64{0.125, 0.5, 0.25, 0.0625, 0.0625}
	const n = 16_000
	for _, c := range []struct {
		name   string
		change func(*Params)
		want   []int
		share  []float64 // the ideal
	}{
		{"plain", func(*Params) {}, []int{1943, 7924, 4124, 1012, 997}, []float64{0.125, 0.5, 0.25, 0.0625, 0.0625}},
		{"another seed", func(p *Params) { p.Seed = 8 }, []int{1964, 8034, 4033, 1001, 968}, []float64{0.125, 0.5, 0.25, 0.0625, 0.0625}},
		{"top_k 2", func(p *Params) { p.TopK = 2 }, []int{0, 10545, 5455, 0, 0}, []float64{0, 2. / 3, 1. / 3, 0, 0}},
		{"top_p 0.8", func(p *Params) { p.TopP = 0.8 }, []int{2215, 9107, 4678, 0, 0}, []float64{1. / 7, 4. / 7, 2. / 7, 0, 0}},
		{"top_p 0.9", func(p *Params) { p.TopP = 0.9 }, []int{2065, 8480, 4394, 1061, 0}, []float64{2. / 15, 8. / 15, 4. / 15, 1. / 15, 0}},
		{"min_p 0.2", func(p *Params) { p.MinP = 0.2 }, []int{2215, 9107, 4678, 0, 0}, []float64{1. / 7, 4. / 7, 2. / 7, 0, 0}},
		{
			"temperature 0.5", func(p *Params) { p.Temperature = 0.5 },
			[]int{737, 11880, 3026, 178, 179},
			[]float64{4. / 86, 64. / 86, 16. / 86, 1. / 86, 1. / 86},
		},
		{"greedy", func(p *Params) { p.Temperature = 0 }, []int{0, n, 0, 0, 0}, []float64{0, 1, 0, 0, 0}},
		{"allowed", func(p *Params) { p.AllowedTokenIDs = []int32{3, 0, 3} }, []int{10545, 0, 0, 5455, 0}, []float64{2. / 3, 0, 0, 1. / 3, 0}},
		{
			"bias", func(p *Params) { p.LogitBias = map[int32]float32{1: -100, 2: float32(math.Log(2))} },
			[]int{2608, 0, 10708, 1355, 1329},
			[]float64{1. / 6, 0, 4. / 6, 1. / 12, 1. / 12},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Default()
			p.Seed = 7
			c.change(&p)
			got := draws(t, p, probabilities, n)
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			for i, share := range c.share {
				sigma := math.Sqrt(n * share * (1 - share))
				if off := math.Abs(float64(got[i]) - n*share); off > 4*sigma+1e-9 {
					t.Errorf("id %d drawn %d times; want %.0f ± %.0f", i, got[i], n*share, 4*sigma)
				}
			}
		})
	}
}

func TestGreedyTiesGoToTheLowestID(t *testing.T) {
	p := Default()
	p.Temperature = 0
	s := New(&p, 4, nil, plain)
	if tok, err := s.Sample([]float32{1, 3, 3, 3}, 0); err != nil || tok.ID != 1 {
		t.Errorf("Sample = %v, %v; want id 1", tok, err)
	}
}

func TestEdits(t *testing.T) {
	greedy := Default()
	greedy.Temperature = 0
	for _, c := range []struct {
		name   string
		change func(*Params)
		prompt []int32
		logits []float32
		want   []int32
	}{
		{"frequency", func(p *Params) { p.FrequencyPenalty = 1 }, []int32{0}, []float32{2.5, 1, 0}, []int32{0, 0, 1, 0, 1}},
		{"presence", func(p *Params) { p.PresencePenalty = 1 }, nil, []float32{2, 1.5, 0}, []int32{0, 1, 0, 0}},
		{"repetition counts the prompt", func(p *Params) { p.RepetitionPenalty = 2 }, []int32{0}, []float32{3, 2, 1.8}, []int32{1, 2, 0}},
		{"repetition of negative logits", func(p *Params) { p.RepetitionPenalty = 2 }, []int32{0}, []float32{-1, -1.5, -9}, []int32{1, 0, 0}},
		{"bad word of one", func(p *Params) { p.BadWords = [][]int32{{0}} }, nil, []float32{2, 1, 0}, []int32{1, 1}},
		{"bad word of two", func(p *Params) { p.BadWords = [][]int32{{0, 0}} }, nil, []float32{2, 1, 0}, []int32{0, 1, 0, 1}},
		{"bad words look at the output only", func(p *Params) { p.BadWords = [][]int32{{0, 0}} }, []int32{0}, []float32{2, 1, 0}, []int32{0, 1}},
		{"min_tokens", func(p *Params) { p.MinTokens, p.StopIDs = 2, []int32{0, 1} }, nil, []float32{2, 1, 0}, []int32{2, 2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := greedy
			c.change(&p)
			s := New(&p, len(c.logits), c.prompt, plain)
			row := slices.Clone(c.logits)
			var got []int32
			for i := range c.want {
				tok, err := s.Sample(row, len(c.prompt)+i)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tok.ID)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("ids %v; want %v", got, c.want)
			}
			if !slices.Equal(row, c.logits) {
				t.Errorf("logits left as %v; want %v", row, c.logits)
			}
		})
	}
}

// A step may be computed again, after a fault beside it: the sampler then forgets what it chose.
func TestRewind(t *testing.T) {
	p := Default()
	p.FrequencyPenalty, p.RepetitionPenalty, p.BadWords, p.MinTokens, p.StopIDs = 0.5, 1.2, [][]int32{{1, 2}, {3, 3}}, 4, []int32{5}
	row := randomRow(8)
	prompt := []int32{1, 2}
	s := New(&p, len(row), prompt, plain)
	sample := func(s *Sampler, position int) int32 {
		tok, err := s.Sample(row, position)
		if err != nil {
			t.Fatal(err)
		}
		return tok.ID
	}
	var want []int32
	for position := 2; position < 30; position++ {
		want = append(want, sample(s, position))
	}
	for _, from := range []int{29, 20, 3, 2} {
		for position := from; position < 30; position++ {
			if got := sample(s, position); got != want[position-2] {
				t.Fatalf("position %d, sampled anew from %d, gave %d; want %d", position, from, got, want[position-2])
			}
		}
	}
}

func TestLogprobsAreRaw(t *testing.T) {
	p := Default()
	p.Temperature, p.Logprobs = 0, 2
	p.LogitBias = map[int32]float32{2: 100}
	s := New(&p, 4, nil, plain)
	logits := []float32{float32(math.Log(4)), float32(math.Log(2)), 0, 0}
	got, err := s.Sample(logits, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Token{ID: 2, Logprob: float32(math.Log(1. / 8)), Rank: 3, Top: []TokenLogprob{
		{0, float32(math.Log(1. / 2))}, {1, float32(math.Log(1. / 4))},
	}}
	near := gocmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) // logits are float32
	if diff := gocmp.Diff(want, got, near); diff != "" {
		t.Errorf("Sample (-want +got):\n%s", diff)
	}
	p.PromptLogprobs = 9
	score, err := s.Score(logits, 3)
	if err != nil || score.ID != 3 || score.Rank != 4 || len(score.Top) != 4 {
		t.Errorf("Score = %+v, %v; want id 3 of rank 4 and all 4 tokens", score, err)
	}
}

func TestBadRows(t *testing.T) {
	p := Default()
	s := New(&p, 3, nil, plain)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		row  []float32
		want string
	}{
		{[]float32{0, nan, 0}, "sample position 0: logit of token 1 is NaN"},
		{[]float32{nan, 0, 0}, "sample position 0: logit of token 0 is NaN"},
		{[]float32{0, 0, inf}, "sample position 0: logit of token 2 is +Inf"},
		{[]float32{0, -inf, 0}, "sample position 0: logit of token 1 is -Inf"},
	} {
		if _, err := s.Sample(c.row, 0); err == nil || err.Error() != c.want {
			t.Errorf("Sample(%v) error %v; want %s", c.row, err, c.want)
		}
	}
	if _, err := s.Sample([]float32{0, 1, 2}, 0); err != nil {
		t.Errorf("after bad rows: %v", err)
	}
	p.AllowedTokenIDs, p.BadWords = []int32{1}, [][]int32{{1}}
	_, err := New(&p, 3, nil, plain).Sample([]float32{0, 1, 2}, 0)
	if want := "sample position 0: every token is masked"; err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Params)
		want   string
	}{
		{func(*Params) {}, ""},
		{func(p *Params) { p.Temperature = 2.5 }, "temperature must be in [0, 2], got 2.5"},
		{func(p *Params) { p.Temperature = math.NaN() }, "temperature must be in [0, 2], got NaN"},
		{func(p *Params) { p.TopP = 0 }, "top_p must be in (0, 1], got 0"},
		{func(p *Params) { p.TopK = -2 }, "top_k must be 0 (off) or at least 1, got -2"},
		{func(p *Params) { p.MinP = -0.1 }, "min_p must be in [0, 1], got -0.1"},
		{func(p *Params) { p.RepetitionPenalty = 0 }, "repetition_penalty must be greater than zero, got 0"},
		{func(p *Params) { p.PresencePenalty = 3 }, "presence_penalty must be in [-2, 2], got 3"},
		{func(p *Params) { p.FrequencyPenalty = -3 }, "frequency_penalty must be in [-2, 2], got -3"},
		{func(p *Params) { p.LogitBias = map[int32]float32{12: 1, 11: 1} }, "logit_bias names token 11 outside the vocabulary of 10"},
		{
			func(p *Params) { p.LogitBias = map[int32]float32{3: float32(math.Inf(1))} },
			"logit_bias of token 3 must be a finite number, got +Inf",
		},
		{func(p *Params) { p.AllowedTokenIDs = []int32{-1} }, "allowed_token_ids names token -1 outside the vocabulary of 10"},
		{func(p *Params) { p.BadWords = [][]int32{{}} }, "bad_words must not contain an empty word"},
		{func(p *Params) { p.StopIDs = []int32{10} }, "stop_token_ids names token 10 outside the vocabulary of 10"},
	} {
		p := Default()
		c.change(&p)
		got := ""
		if err := p.Validate(10); err != nil {
			got = err.Error()
			if bad, ok := errors.AsType[*ParamError](err); !ok || !strings.HasPrefix(got, bad.Param+" ") {
				t.Errorf("%q is a %T; want a *ParamError", got, err)
			}
		}
		if got != c.want {
			t.Errorf("Validate = %q; want %q", got, c.want)
		}
	}
}

// naive is the obvious sampler: sort everything, cut, sum. It returns the interval of u that belongs to each index, and
// whether top-p falls so near to a border between two tokens that the rounding of weights decides which is the last.
func naive(row []float32, p *Params) (low, high []float64, undecided bool) {
	items := make([]item, len(row))
	for i, v := range row {
		items[i] = item{index: int32(i), value: v}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.index, b.index))
	})
	weight := make([]float64, len(row))
	total := 0.0
	for n, it := range items {
		w := math.Exp((float64(it.value) - float64(items[0].value)) / p.Temperature)
		if w < p.MinP || p.TopK > 0 && n >= p.TopK {
			continue
		}
		weight[it.index] = w
		total += w
	}
	sum, kept := 0.0, 0.0
	for _, it := range items {
		target := p.TopP * total
		undecided = undecided || p.TopP < 1 && weight[it.index] > 0 && math.Abs(sum-target) < 1e-5*target
		if sum >= target {
			weight[it.index] = 0
		}
		sum += weight[it.index]
	}
	for _, w := range weight {
		kept += w
	}
	low, high = make([]float64, len(row)), make([]float64, len(row))
	sum = 0
	for i, w := range weight {
		low[i] = sum / kept
		sum += w
		high[i] = sum / kept
	}
	return low, high, undecided
}

func FuzzPickAgainstNaive(f *testing.F) {
	f.Add(uint64(1), uint16(1000), 1.0, uint16(40), 0.9, 0.05, false)
	f.Add(uint64(2), uint16(300), 0.3, uint16(0), 0.5, 0.0, false)
	f.Add(uint64(3), uint16(900), 2.0, uint16(0), 0.99, 0.0, true)
	f.Add(uint64(4), uint16(1), 1.0, uint16(5), 0.5, 0.5, false)
	f.Add(uint64(5), uint16(700), 1.0, uint16(0), 1.0, 0.0, false)
	f.Fuzz(func(t *testing.T, seed uint64, size uint16, temperature float64, topK uint16, topP, minP float64, coarse bool) {
		p := Default()
		p.Temperature, p.TopK, p.TopP, p.MinP, p.Seed = temperature, int(topK), topP, minP, seed
		n := int(size)%2000 + 1
		if p.Validate(n) != nil || p.Temperature < 0.05 {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		row := make([]float32, n)
		for i := range row {
			row[i] = float32(rng.NormFloat64() * 3)
			if coarse { // many ties
				row[i] = float32(math.Round(float64(row[i])))
			}
		}
		low, high, undecided := naive(row, &p)
		if undecided {
			t.Skip()
		}
		s := New(&p, n, nil, plain)
		for position := range 20 {
			tok, err := s.Sample(row, position)
			if err != nil {
				t.Fatal(err)
			}
			u := Uniform(seed, position)
			// The two sum in different orders, so their borders may differ in the last digits.
			const rounding = 1e-6
			if u < low[tok.ID]-rounding || u > high[tok.ID]+rounding {
				t.Errorf("u %v gave %d, whose interval is [%v, %v)", u, tok.ID, low[tok.ID], high[tok.ID])
			}
		}
	})
}

// Every level of the processor chooses the same tokens; the rows end within a vector, within a chunk and on a border.
func TestLevelsChooseAlike(t *testing.T) {
	for _, n := range []int{7, 256, 5000} {
		logits := randomRow(n)
		for i := range logits {
			logits[i] = float32(math.Round(float64(logits[i])*8) / 8) // ties
		}
		for _, c := range loads() {
			want := New(&c.params, n, nil, plain)
			for _, level := range cpu.Levels()[1:] {
				got := New(&c.params, n, nil, cpu.LogitsAt(level))
				for position := range 50 {
					w, err := want.Sample(logits, position)
					g, err2 := got.Sample(logits, position)
					if err != nil || err2 != nil || g.ID != w.ID {
						t.Fatalf("%s of %d at level %v: position %d gave %d, %v; want %d, %v", c.name, n, level, position, g.ID, err2, w.ID, err)
					}
				}
			}
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	row := randomRow(5000)
	for _, c := range loads() {
		p := c.params
		s := New(&p, len(row), []int32{1, 2, 3}, plain)
		position := 3
		got := testing.AllocsPerRun(200, func() {
			if _, err := s.Sample(row, position); err != nil {
				t.Fatal(err)
			}
			position++
		})
		if got > 0 {
			t.Errorf("%s: %v allocations a token; want 0", c.name, got)
		}
	}
}

func randomRow(n int) []float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	row := make([]float32, n)
	for i := range row {
		row[i] = float32(rng.NormFloat64() * 4)
	}
	return row
}

type load struct {
	name   string
	params Params
}

func loads() []load {
	with := func(change func(*Params)) Params {
		p := Default()
		change(&p)
		return p
	}
	return []load{
		{"greedy", with(func(p *Params) { p.Temperature = 0 })},
		{"temperature", with(func(*Params) {})},
		{"top_p", with(func(p *Params) { p.TopP = 0.95 })},
		{"top_k", with(func(p *Params) { p.TopK, p.TopP = 40, 0.95 })},
		{"penalties", with(func(p *Params) { p.Temperature, p.RepetitionPenalty = 0, 1.1 })},
	}
}

// The real load: one token of Qwen2.5, whose rows are 151,936 logits.
func BenchmarkSample(b *testing.B) {
	row := randomRow(151_936)
	for _, c := range loads() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			s := New(&c.params, len(row), nil, cpu.LogitsAt(cpu.Levels()[len(cpu.Levels())-1]))
			position := 0
			for b.Loop() {
				if _, err := s.Sample(row, position); err != nil {
					b.Fatal(err)
				}
				position++
			}
		})
	}
}
