package sim

import (
	"fmt"
	"strings"
	"testing"
)

// TestDraftsOnAFullPool_sglang26399: speculation with a pool for exactly the committed tokens. Drafts are shortened to what
// fits, and every output arrives.
func TestDraftsOnAFullPool_sglang26399(t *testing.T) {
	for _, eagle := range []bool{false, true} {
		for blocks := 3; blocks < 8; blocks++ {
			h := &Header{
				Type: "header", Format: 1, Name: "full pool", Config: TraceConfig{
					BlockSize: 4, NumBlocks: blocks + 1, MaxNumSeqs: 2, MaxNumBatchedTokens: 64, MaxModelLen: 1000, Policy: "fcfs",
					EnableChunkedPrefill: true, ReserveFullISL: true, LoadFailurePolicy: "recompute", EnablePrefixCaching: true,
					Groups: []string{"full"}, NumSpecTokens: 3, Eagle: eagle,
				},
				Requests: []TraceRequest{
					{ID: "a", Prompt: [][3]int{{1, 0, 9}}, MaxTokens: 4*blocks - 9 + 1}, // known tokens end one past the pool
					{ID: "b", Index: 1, Prompt: [][3]int{{2, 0, 5}}, MaxTokens: 200, ArrivalTime: 1},
				},
			}
			if out := Run(h, false); out.Fault != "" {
				t.Errorf("%d blocks, drafter with KV %t: %s", blocks, eagle, out.Fault)
			}
		}
	}
}

// TestAbortsLeaveNothingBehind_sglang30053: a request is aborted in each kind of wait, more often than there are blocks;
// then one with a hit too small to matter runs.
func TestAbortsLeaveNothingBehind_sglang30053(t *testing.T) {
	p := &play{}
	do := func(line string) {
		t.Helper()
		fields := strings.Fields(line)
		if err := p.command(fields[0], newArguments(fields[1:])); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	do("pool blocks=8 block-size=4 connector")
	for i := range 20 {
		for _, kind := range []string{"new", "deferred", "loading", "loaded"} {
			id := fmt.Sprintf("%s%d", kind, i)
			switch kind {
			case "deferred":
				do("external " + id + " later")
			case "loading", "loaded":
				do("external " + id + " tokens=8")
			}
			do("add " + id + " prompt=9 out=2")
			if kind != "new" {
				do("step quiet")
			}
			if kind == "loaded" {
				do("load-done " + id)
			}
			do("abort " + id)
			if kind == "loading" {
				do("load-done " + id)
			}
		}
	}
	if st := p.s.Stats(); st.FreeBlocks != 8 || st.Waiting+st.Deferred+st.Running > 0 {
		t.Errorf("after the aborts: %+v", st)
	}
	do("external small tokens=1")
	do("add small prompt=9 out=2")
	do("step quiet")
	do("load-done small")
	do("drain")
	if out := p.out.String(); !strings.Contains(out, "small length after 2 tokens") || strings.Contains(out, "left:") {
		t.Errorf("the last request:\n%s", out)
	}
}
