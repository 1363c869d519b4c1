package sim

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
)

// FuzzScheduler plays a scenario for each seed, with every check on.
func FuzzScheduler(f *testing.F) {
	for i := range uint64(12) {
		f.Add(i*1000, uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, profile uint8) {
		name := Profiles()[int(profile)%len(Profiles())]
		h, err := Scenario(seed, name)
		if err != nil {
			t.Fatal(err)
		}
		if out := Run(h, false); out.Fault != "" {
			t.Errorf("quire sim run --profile %s --seed %d --count 1: %s", name, seed, out.Fault)
		}
	})
}

// FuzzReadTrace feeds the reader what is no trace. It may refuse it, never more.
func FuzzReadTrace(f *testing.F) {
	h := &Header{
		Type: "header", Format: 1, Name: "tiny", Config: TraceConfig{
			BlockSize: 4, NumBlocks: 5, MaxNumSeqs: 2, MaxNumBatchedTokens: 8, MaxModelLen: 16, Policy: "fcfs",
			LoadFailurePolicy: "recompute", EnablePrefixCaching: true, Groups: []string{"full"},
		},
		Requests: []TraceRequest{{ID: "a", Prompt: [][3]int{{1, 0, 6}}, MaxTokens: 2}},
	}
	var good bytes.Buffer
	if err := WriteTrace(&good, h, Run(h, true)); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	header, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header)
	f.Add([]byte{0x1f, 0x8b, 0})
	f.Add([]byte(`{"t":"header","format":1,"config":{"block_size":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := ReadTrace(bytes.NewReader(data))
		if err != nil {
			return
		}
		tokens := 0
		for _, r := range trace.Header.Requests {
			tokens += len(r.promptTokens()) + r.MaxTokens
		}
		if tokens > 200 || trace.Header.Config.NumBlocks > 1000 {
			return // well formed, and long
		}
		Replay(trace)
	})
}

// FuzzScript feeds the interpreter of plays what is no play.
func FuzzScript(f *testing.F) {
	f.Add([]byte("pool blocks=4 block-size=4\nadd a prompt=6 out=2\ndrain\n----\n"))
	f.Add([]byte("pool blocks=-1\n----\n"))
	f.Add([]byte("add a\n----\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			return
		}
		_, _ = RunScript(data)
	})
}
