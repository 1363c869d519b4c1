package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/record"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// config is a pool in which the requests of drive do not fit together.
var config = sched.Config{Blocks: 24, BlockSize: 4, MaxNumSeqs: 8, MaxNumBatchedTokens: 16, MaxModelLen: 96}

// drive runs a seeded load with aborts through s until nothing is left.
func drive(t *testing.T, s *record.Scheduler, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 12 {
		prompt := make([]int32, 4+rng.IntN(20))
		for k := range prompt {
			prompt[k] = rng.Int32N(100)
		}
		id := sched.RequestID(fmt.Sprintf("r%02d", i))
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: prompt, MaxTokens: 4 + rng.IntN(24)}})
	}
	for step := range 1000 {
		plan := s.Schedule(float64(step))
		if plan.Idle() {
			return
		}
		done := sched.StepDone{Step: plan.Step}
		for _, r := range plan.Requests {
			if r.Sample {
				done.Outputs = append(done.Outputs, sched.StepOutput{ID: r.ID, Tokens: []int32{rng.Int32N(100) + 3}})
			}
		}
		if step == 20 {
			s.Apply(sched.Abort{ID: "r03"})
		}
		s.Apply(&done)
	}
	t.Fatal("the load does not end")
}

func recorded(t *testing.T, cfg sched.Config) (string, sched.Stats) {
	t.Helper()
	var buf bytes.Buffer
	s := record.New(cfg, &buf)
	drive(t, s, 7)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.String(), s.Stats()
}

func TestReplayEqualsTheRun(t *testing.T) {
	windows := config
	windows.Blocks, windows.Groups = 40, []kv.Group{{}, {Window: 9}}
	for _, cfg := range []sched.Config{config, windows} {
		text, want := recorded(t, cfg)
		got, err := record.Replay(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.Stats != want || got.Requests != 12 || got.Plans < 20 {
			t.Errorf("replay: %+v\nthe run: %+v", got, want)
		}
		if want.Preemptions == 0 {
			t.Error("the load preempts nobody: it shows nothing")
		}
	}
}

// fakeStore answers every first question with "ask later" and then with nothing; it keeps no blocks.
type fakeStore struct{ asked map[sched.RequestID]bool }

func (f fakeStore) Match(q sched.MatchQuery) sched.Match {
	deferred := !f.asked[q.Request.ID]
	f.asked[q.Request.ID] = true
	return sched.Match{Deferred: deferred}
}

func (fakeStore) Finished(sched.RequestID, sched.Epoch, sched.Reason) bool { return false }

func TestReplayGivesAConnectorsAnswers(t *testing.T) {
	cfg := config
	cfg.Connector = fakeStore{map[sched.RequestID]bool{}}
	var buf bytes.Buffer
	s := record.New(cfg, &buf)
	s.Apply(sched.AddRequest{Request: &sched.Request{ID: "a", Prompt: []int32{1, 2, 3}, MaxTokens: 1}})
	s.Schedule(0) // it is told to ask later
	plan := s.Schedule(0)
	s.Apply(&sched.StepDone{Step: plan.Step, Outputs: []sched.StepOutput{{ID: "a", Tokens: []int32{9}}}})
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := record.Replay(&buf)
	if err != nil || got.Stats != s.Stats() || got.Stats.GeneratedTokens != 1 {
		t.Errorf("replay: %+v, %v\nthe run: %+v", got, err, s.Stats())
	}
}

func TestReplayFindsADifference(t *testing.T) {
	text, _ := recorded(t, config)
	changed := strings.Replace(text, `"n":16`, `"n":15`, 1)
	if changed == text {
		t.Fatal("no plan of 16 tokens to change")
	}
	_, err := record.Replay(strings.NewReader(changed))
	var diff *record.DifferenceError
	if !errors.As(err, &diff) {
		t.Errorf("replay of a changed record: %v, want a DifferenceError", err)
	}
}

func TestReplayRefusesBadRecords(t *testing.T) {
	text, _ := recorded(t, config)
	header, _, _ := strings.Cut(text, "\n")
	cases := map[string]string{
		"empty":           "",
		"not JSON":        "GGUF\n",
		"another version": strings.Replace(header, `"version":1`, `"version":9`, 1) + "\n",
		"bad config":      strings.Replace(header, `"Blocks":24`, `"Blocks":0`, 1) + "\n",
		"empty line":      header + "\n{}\n",
		"two plans":       text[:strings.Index(text, `{"done"`)] + `{"schedule":9}` + "\n",
		"no plan":         header + "\n" + `{"schedule":1}` + "\n" + `{"schedule":2}` + "\n",
	}
	for name, bad := range cases {
		if _, err := record.Replay(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: replayed, want an error", name)
		}
	}
	if res, err := record.Replay(strings.NewReader(text[:len(text)-5])); err != nil || !res.Cut {
		t.Errorf("a record cut within its last line: %+v, %v; want it replayed up to there", res, err)
	}
}

// failingWriter fails after some bytes, as a full disk does.
type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestAFullDiskEndsTheRecordNotTheRun(t *testing.T) {
	_, want := recorded(t, config)
	s := record.New(config, &failingWriter{left: 100})
	drive(t, s, 7)
	if err := s.Flush(); err == nil || s.Stats() != want {
		t.Errorf("flush: %v, want an error; stats %+v, want %+v", err, s.Stats(), want)
	}
}

func TestNothingIsRecordedWithoutAWriter(t *testing.T) {
	s := record.New(config, nil)
	drive(t, s, 7)
	if err := s.Flush(); err != nil {
		t.Error(err)
	}
}
