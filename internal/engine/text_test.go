package engine_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

// pieces is a detokenizer over a table of byte strings. It holds back an unfinished character.
type pieces struct {
	table []string
	held  string
}

func (p *pieces) Push(id int32) string {
	text := p.held + p.table[id]
	n := 0
	for n < len(text) && utf8.FullRuneInString(text[n:]) {
		_, size := utf8.DecodeRuneInString(text[n:])
		n += size
	}
	p.held = text[n:]
	return text[:n]
}

func (p *pieces) Flush() string {
	if p.held == "" {
		return ""
	}
	p.held = ""
	return "\uFFFD"
}

// script is a request whose tokens are the pieces of a table, in order, and how its text should come.
type script struct {
	table   []string
	eos     bool // the last piece is EOS
	max     int  // 0 is len(table)
	options engine.TextOptions
}

// play runs a script and returns the text of each delta, the last delta and the handle.
func play(t *testing.T, s script) (deltas []string, last engine.Delta) {
	t.Helper()
	tokens := each(len(s.table), func(i int) int32 { return int32(i) })
	e, _ := newEngine(shape{toy: executortest.Options{Script: executortest.Play(tokens...)}})
	defer e.Close()
	r := greedy(prompt(1, 5), len(s.table))
	if s.max > 0 {
		r.MaxTokens = s.max
	}
	if s.eos {
		r.EOS = []int32{int32(len(s.table) - 1)}
	}
	h, err := e.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	stream := engine.NewTextStream(h, &pieces{table: s.table}, s.options)
	for {
		d, err := stream.Next(context.Background())
		if errors.Is(err, io.EOF) {
			drained(t, e)
			return deltas, last
		}
		if err != nil {
			t.Fatal(err)
		}
		deltas, last = append(deltas, d.Text), d
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name   string
		script script
		want   string // deltas, joined by "|"
		reason sched.Reason
		stop   string
	}{
		{
			"stop string across tokens (vllm #3574)",
			script{table: []string{"AB", "C", "D E", "F", "G"}, options: engine.TextOptions{Stop: []string{"CD E"}}},
			"AB||", sched.ReasonStop, "CD E",
		},
		{
			"near miss delays only a prefix of the stop (vllm #3574)",
			script{table: []string{"AB", "C", "D E", "F"}, options: engine.TextOptions{Stop: []string{"CD X"}}},
			"AB||CD E|F", sched.ReasonLength, "",
		},
		{
			"the stop string may stay",
			script{table: []string{"AB", "C", "D E", "F"}, options: engine.TextOptions{Stop: []string{"CD"}, IncludeStop: true}},
			"AB||CD", sched.ReasonStop, "CD",
		},
		{
			"nothing after the stop leaks (vllm #45636)",
			script{table: []string{"one stop two", "three"}, options: engine.TextOptions{Stop: []string{" stop"}}},
			"one", sched.ReasonStop, " stop",
		},
		{
			"what is complete first wins, not what is listed first",
			script{table: []string{"abcdef"}, options: engine.TextOptions{Stop: []string{"cdef", "d"}}},
			"abc", sched.ReasonStop, "d",
		},
		{
			"of two complete at once the longer wins",
			script{table: []string{"abc"}, options: engine.TextOptions{Stop: []string{"c", "bc"}}},
			"a", sched.ReasonStop, "bc",
		},
		{
			"a stop string may overlap itself",
			script{table: []string{"a", "a", "a", "b", "c"}, options: engine.TextOptions{Stop: []string{"aab"}}},
			"||a|", sched.ReasonStop, "aab",
		},
		{
			"characters are never split (qwisp #134)",
			script{table: []string{"a\xf0\x9f", "\x98\x80b", "c"}},
			"a|😀b|c", sched.ReasonLength, "",
		},
		{
			"half a character before EOS is flushed (qwisp #134, lattice #751)",
			script{table: []string{"a", "\xf0\x9f", "</s>"}, eos: true},
			"a||\uFFFD", sched.ReasonStop, "",
		},
		{
			"half a character at the limit is flushed",
			script{table: []string{"a", "\xf0\x9f"}},
			"a|\uFFFD", sched.ReasonLength, "",
		},
		{
			"text held back is given out at the end",
			script{table: []string{"ab", "c"}, options: engine.TextOptions{Stop: []string{"bcd"}}},
			"a|bc", sched.ReasonLength, "",
		},
		{
			"text held back is given out at EOS",
			script{table: []string{"ab", "c", "</s>"}, eos: true, options: engine.TextOptions{Stop: []string{"bcd"}}},
			"a||bc", sched.ReasonStop, "",
		},
		{
			"the text of EOS is not part of the answer",
			script{table: []string{"a", "</s>"}, eos: true},
			"a|", sched.ReasonStop, "",
		},
		{
			"unless asked for",
			script{table: []string{"a", "</s>"}, eos: true, options: engine.TextOptions{IncludeStop: true}},
			"a|</s>", sched.ReasonStop, "",
		},
		{
			"no stop string counts before min_tokens",
			script{table: []string{"x.", "y.", "z.", "w"}, options: engine.TextOptions{Stop: []string{"."}, MinTokens: 2}},
			"x.|y.|z", sched.ReasonStop, ".",
		},
		{
			"a stop string in the flush",
			script{table: []string{"a", "\xf0\x9f"}, options: engine.TextOptions{Stop: []string{"\uFFFD"}}},
			"a|", sched.ReasonStop, "\uFFFD",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deltas, last := play(t, c.script)
				if got := strings.Join(deltas, "|"); got != c.want {
					t.Errorf("deltas %q; want %q", got, c.want)
				}
				if last.Finish.Reason != c.reason || last.Finish.StopString != c.stop {
					t.Errorf("finish %v %q; want %v %q", last.Finish.Reason, last.Finish.StopString, c.reason, c.stop)
				}
				if last.Finish.OutputTokens != len(deltas) {
					t.Errorf("%d output tokens counted; want %d", last.Finish.OutputTokens, len(deltas))
				}
			})
		})
	}
}

// FuzzText: for any text, cut into any tokens, with any stop strings, the deltas are the text up to the first complete stop
// string, and what is held back is a beginning of one.
func FuzzText(f *testing.F) {
	f.Add(uint64(1), "ababcabcabd, and so on", "abcabd", "so")
	f.Add(uint64(2), "aaaaaaab", "aab", "b")
	f.Add(uint64(3), "héllo wörld 😀 end", "😀 e", "ö")
	f.Fuzz(func(t *testing.T, seed uint64, text, stop1, stop2 string) {
		valid := utf8.ValidString(text) && utf8.ValidString(stop1) && utf8.ValidString(stop2)
		if !valid || stop1 == "" || stop2 == "" || text == "" || len(text) > 60 {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		var table []string
		for rest := text; rest != ""; {
			n := 1 + rng.IntN(min(5, len(rest)))
			table = append(table, rest[:n])
			rest = rest[n:]
		}
		want, stop := text, ""
		for end := range len(text) + 1 {
			for _, s := range []string{stop1, stop2} {
				if strings.HasSuffix(text[:end], s) && len(s) > len(stop) {
					want, stop = text[:end-len(s)], s
				}
			}
			if stop != "" {
				break
			}
		}
		synctest.Test(t, func(t *testing.T) {
			deltas, last := play(t, script{table: table, options: engine.TextOptions{Stop: []string{stop1, stop2}}})
			if got := strings.Join(deltas, ""); got != want || last.Finish.StopString != stop {
				t.Fatalf("text %q, stop %q; want %q, %q", got, last.Finish.StopString, want, stop)
			}
			given := ""
			for i, d := range deltas[:len(deltas)-1] {
				given += d
				have := strings.Join(table[:i+1], "")
				for !utf8.ValidString(have) { // bytes of a character that waits for its end
					have = have[:len(have)-1]
				}
				held := strings.TrimPrefix(have, given)
				if !strings.HasPrefix(stop1, held) && !strings.HasPrefix(stop2, held) {
					t.Errorf("%q is held back after %q; it begins neither %q nor %q", held, given, stop1, stop2)
				}
			}
		})
	})
}
