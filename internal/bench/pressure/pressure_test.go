package pressure

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/llm"
)

// tinyModel is a small model with random weights.
const tinyModel = "../../model/testdata/tiny/llama_gqa/llama_gqa-q8_0.gguf"

// TestRun is the whole test, an eighth of its size, on a model that computes in no time.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	report, err := Run(t.Context(), Options{
		Model: llm.Options{Model: tinyModel, Threads: 1}, Waves: 2, Scale: 8,
		BlockSizes: []int{16, 32}, Budgets: []int{512}, PrefixCaching: []bool{true, false},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 2*2*2*11 || len(report.Settings) != 4 {
		t.Errorf("%d waves, %d settings", len(report.Rows), len(report.Settings))
	}
	if report.Faults() > 0 {
		var b bytes.Buffer
		if err := report.Print(&b); err != nil {
			t.Error(err)
		}
		t.Errorf("%s", b.String())
	}
	preemptions := 0
	for _, s := range report.Settings {
		preemptions += s.Preemptions
	}
	if preemptions == 0 {
		t.Error("there was no pressure: nothing was preempted")
	}
}

// TestReference has the figures of the table that the workloads come from, for a budget of 4,096: C1 14 preemptions in
// about 1,510 passes, C2 28, C4 at most 11, C6 none.
func TestReference(t *testing.T) {
	for _, want := range []struct {
		name               string
		preemptions, steps int
	}{{"C1", 14, 1501}, {"C2", 28, 693}, {"C4", 10, 1536}, {"C6", 0, 2000}, {"C7", 0, 65}} {
		w, err := selectCases([]string{want.name}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := reference(w[0].shapes, cacheTokens, 4096); int(got.Preemptions) != want.preemptions || int(got.Steps) < want.steps {
			t.Errorf("%s: %d preemptions, %d steps; want %d, %d", want.name, got.Preemptions, got.Steps, want.preemptions, want.steps)
		}
	}
}

func TestFate(t *testing.T) {
	for _, c := range []struct {
		shape  shape
		want   fate
		tokens int
	}{
		{shape{prompt: 512, output: 256}, completes, 256},
		{shape{prompt: 4000, output: 97}, completes, 97}, // the last token needs no slot
		{shape{prompt: 4000, output: 98}, fills, 97},
		{shape{prompt: 4096, output: 1}, completes, 1},
		{shape{prompt: 4096, output: 2}, fills, 1},
		{shape{prompt: 4097, output: 1}, refused, 0},
	} {
		if got := c.shape.fate(cacheTokens); got != c.want || c.shape.tokens(cacheTokens) != c.tokens {
			t.Errorf("%+v: fate %d with %d tokens, want %d with %d", c.shape, got, c.shape.tokens(cacheTokens), c.want, c.tokens)
		}
	}
}

func TestSelectCases(t *testing.T) {
	if all, err := selectCases(nil, 1); err != nil || len(all) != 11 {
		t.Errorf("%d cases, %v", len(all), err)
	}
	if _, err := selectCases([]string{"C1", "C3"}, 1); err == nil || !strings.Contains(err.Error(), `unknown case "C3"`) {
		t.Errorf("C3: %v", err)
	}
}

// TestAnswersAreJudged gives the checker one wrong answer after the other: each must be a fault of its criterion.
func TestAnswersAreJudged(t *testing.T) {
	fits, full := request{shape{prompt: 4, output: 3}, []int32{1, 2, 3, 4}}, request{shape{prompt: 6, output: 9}, []int32{1, 2, 3, 4, 5, 6}}
	never := request{shape{prompt: 9, output: 1}, make([]int32, 9)}
	alone := answers{
		fits.key(): {TokenIDs: []int32{7, 8, 9}, Text: "abc"},
		full.key(): {TokenIDs: []int32{7, 8, 9, 1, 2, 3, 4, 5, 6}, Text: "abcdefghi"},
	}
	good := func() *bench.Record {
		return &bench.Record{Status: 200, OutputTokens: 3, TokenIDs: []int32{7, 8, 9}, Text: "abc", FinishReason: "length", Done: true}
	}
	refusal := func(status int, message string, after time.Duration) *bench.Record {
		return &bench.Record{Status: status, Err: errors.New(message), Latency: after}
	}
	for _, c := range []struct {
		name      string
		request   request
		record    *bench.Record
		change    func(*bench.Record)
		criterion int // 0 for none
	}{
		{"right", fits, good(), func(*bench.Record) {}, 0},
		{"right, ended by the full cache", full, good(), func(*bench.Record) {}, 0},
		{"no answer", fits, good(), func(r *bench.Record) { r.Err = errors.New("timeout") }, 1},
		{"cut off", fits, good(), func(r *bench.Record) { r.Done = false }, 1},
		{"ended by itself", fits, good(), func(r *bench.Record) { r.FinishReason = "stop" }, 1},
		{"a token short", fits, good(), func(r *bench.Record) { r.OutputTokens, r.TokenIDs = 2, r.TokenIDs[:2] }, 1},
		{"usage is wrong", fits, good(), func(r *bench.Record) { r.OutputTokens = 4 }, 1},
		{"another's token", fits, good(), func(r *bench.Record) { r.TokenIDs[1] = 1 }, 2},
		{"another's text", fits, good(), func(r *bench.Record) { r.Text = "abd" }, 2},
		{"another's token before the cache was full", full, good(), func(r *bench.Record) { r.TokenIDs[2] = 1 }, 2},
		{"refused", never, refusal(400, "prompt of 9 tokens exceeds the KV cache of 8", 0), func(*bench.Record) {}, 0},
		{"refused late", never, refusal(400, "9 exceeds 8", 2*time.Second), func(*bench.Record) {}, 1},
		{"refused without the limit", never, refusal(400, "9 is too long", 0), func(*bench.Record) {}, 1},
		{"refused as a fault of the server", never, refusal(500, "9 exceeds 8", 0), func(*bench.Record) {}, 1},
		{"answered though it cannot fit", never, good(), func(*bench.Record) {}, 1},
	} {
		c.change(c.record)
		judge := &checker{
			trial: &trial{kvTokens: 8, alone: alone}, row: &Row{Seconds: 1},
			requests: []request{c.request}, records: []*bench.Record{c.record},
		}
		judge.answers()
		switch faults := judge.row.Faults; {
		case c.criterion == 0 && len(faults) > 0:
			t.Errorf("%s: %v", c.name, faults)
		case c.criterion > 0 && (len(faults) != 1 || faults[0].Criterion != c.criterion):
			t.Errorf("%s: faults %v, want one of criterion %d", c.name, faults, c.criterion)
		}
	}
}
