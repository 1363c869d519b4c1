package kvevent

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/quire-ai/quire/kv"
)

// lines returns the events of a batch, decoded, one a line, with the fields that tell them apart.
func lines(t *testing.T, b *batch) []string {
	t.Helper()
	v, err := msgpack.NewDecoder(bytes.NewReader(b.payload(1))).DecodeInterface()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range v.([]any)[1].([]any) {
		m := e.(map[string]any)
		line := m["type"].(string)
		if line != "AllBlocksCleared" {
			line += fmt.Sprint(" ", m["medium"], " ", m["block_hashes"])
		}
		if line = strings.TrimPrefix(line, "Block"); m["parent_block_hash"] != nil {
			line += fmt.Sprint(" after ", m["parent_block_hash"])
		}
		list = append(list, line)
	}
	return list
}

func hashOf(n uint64) (h kv.Hash) {
	binary.BigEndian.PutUint64(h[24:], n)
	return h
}

// event reads events as tests write them: "+ 1 2 3" stores three blocks behind each other, the first beginning a sequence,
// "+ 1> 2" stores 2 behind 1, "- 1" removes, "x" clears; a leading "ram" moves the event there.
func event(text string) kv.Event {
	var e kv.Event
	for _, word := range strings.Fields(text) {
		var n uint64
		switch word {
		case "ram":
			e.Medium = kv.InRAM
		case "+":
			e.Kind = kv.BlockStored
		case "-":
			e.Kind = kv.BlockRemoved
		case "x":
			e.Kind = kv.AllBlocksCleared
		default:
			fmt.Sscan(strings.TrimSuffix(word, ">"), &n)
			if strings.HasSuffix(word, ">") {
				e.Parent, e.HasParent = hashOf(n), true
				continue
			}
			e.Hashes = append(e.Hashes, hashOf(n))
			e.Tokens = append(e.Tokens, int32(n), int32(n))
		}
	}
	return e
}

// TestView holds what readers are told of what happens to the pool and the memory behind it.
func TestView(t *testing.T) {
	cases := []struct {
		name   string
		events []string
		want   []string // told
		all    []string // by a snapshot
	}{
		{
			"a chain",
			[]string{"+ 1 2 3", "+ 3> 4", "- 4", "- 3"},
			[]string{"Stored GPU [1 2 3]", "Stored GPU [4] after 3", "Removed GPU [4]", "Removed GPU [3]"},
			[]string{"AllBlocksCleared", "Stored GPU [1 2]"},
		},
		{
			// Two requests computed the same tokens at the same time: two blocks of memory, one content.
			"twice",
			[]string{"+ 1 2", "+ 1 2 3", "- 2", "- 1", "- 3", "- 2"},
			[]string{"Stored GPU [1 2]", "Stored GPU [3] after 2", "Removed GPU [3]", "Removed GPU [2]"},
			[]string{"AllBlocksCleared", "Stored GPU [1]"},
		},
		{
			"known in the middle",
			[]string{"+ 1 2", "- 1", "+ 1 2 3"},
			[]string{"Stored GPU [1 2]", "Removed GPU [1]", "Stored GPU [1]", "Stored GPU [3] after 2"},
			[]string{"AllBlocksCleared", "Stored GPU [1 2 3]"}, // 1 came last, and still stands first
		},
		{
			"a tree",
			[]string{"+ 1 2", "+ 1> 3", "+ 2> 4"},
			[]string{"Stored GPU [1 2]", "Stored GPU [3] after 1", "Stored GPU [4] after 2"},
			[]string{"AllBlocksCleared", "Stored GPU [1 2]", "Stored GPU [3] after 1", "Stored GPU [4] after 2"},
		},
		{
			"out to ram and back",
			[]string{"+ 1 2", "ram + 2", "- 2", "+ 1> 2", "- 2", "- 1", "ram - 2"},
			[]string{
				"Stored GPU [1 2]", "Stored CPU [2] after 1", "Removed GPU [2]", "Stored GPU [2] after 1", "Removed GPU [2]",
				"Removed GPU [1]", "Removed CPU [2]",
			},
			[]string{"AllBlocksCleared"},
		},
		{
			"in both",
			[]string{"+ 1 2 3", "ram + 3", "ram + 2", "- 3"},
			[]string{"Stored GPU [1 2 3]", "Stored CPU [3] after 2", "Stored CPU [2] after 1", "Removed GPU [3]"},
			[]string{"AllBlocksCleared", "Stored GPU [1]", "Stored GPU [2] after 1", "Stored CPU [2] after 1", "Stored CPU [3] after 2"},
		},
		{
			"the pool is cleared, ram is not",
			[]string{"+ 1 2", "ram + 1", "x", "+ 1 2"},
			[]string{"Stored GPU [1 2]", "Stored CPU [1]", "AllBlocksCleared", "Stored CPU [1]", "Stored GPU [1 2]"},
			[]string{"AllBlocksCleared", "Stored GPU [1]", "Stored CPU [1]", "Stored GPU [2] after 1"},
		},
		{
			"ram without its parents",
			[]string{"+ 1 2 3", "ram + 3", "x", "ram - 3"},
			[]string{"Stored GPU [1 2 3]", "Stored CPU [3] after 2", "AllBlocksCleared"},
			[]string{"AllBlocksCleared"},
		},
		{
			"the parent left first",
			[]string{"+ 1 2", "ram + 2", "- 2", "- 1"},
			[]string{"Stored GPU [1 2]", "Stored CPU [2] after 1", "Removed GPU [2]", "Removed GPU [1]"},
			[]string{"AllBlocksCleared"},
		},
		{
			"of what is not known", []string{"- 1", "ram + 1", "ram - 1"}, nil, []string{"AllBlocksCleared"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v, out := newView(), &batch{}
			for _, text := range c.events {
				v.apply(new(event(text)), out)
			}
			if diff := cmp.Diff(c.want, lines(t, out)); diff != "" {
				t.Errorf("told, -want +got\n%s", diff)
			}
			v.account(out)
			if diff := cmp.Diff(c.all, lines(t, out)); diff != "" {
				t.Errorf("snapshot, -want +got\n%s", diff)
			}
		})
	}
}

// TestBytes holds the bytes of both forms: the example of docs/kv-events.md.
func TestBytes(t *testing.T) {
	e := kv.Event{Kind: kv.BlockStored, Hashes: []kv.Hash{hashOf(7), hashOf(8)}, Tokens: []int32{1, 200, 3000, 150_000}, Salt: "s"}
	for form, want := range map[Form]string{
		Array: "93 cb3ff8000000000000 92 9b ab426c6f636b53746f726564 92 cf0000000000000007 cf0000000000000008 c0" +
			" 94 01 ccc8 cd0bb8 ce000249f0 02 c0 a3475055 c0 92 91 a173 c0 00 ae66756c6c5f617474656e74696f6e" +
			" 94 ac426c6f636b52656d6f766564 91 cf0000000000000007 a3475055 00 00",
		Map: "93 cb3ff8000000000000 92 8b a474797065 ab426c6f636b53746f726564 ac626c6f636b5f686173686573 92 cf0000000000000007" +
			" cf0000000000000008 b1706172656e745f626c6f636b5f68617368 c0 a9746f6b656e5f696473 94 01 ccc8 cd0bb8 ce000249f0" +
			" aa626c6f636b5f73697a65 02 a76c6f72615f6964 c0 a66d656469756d a3475055 a96c6f72615f6e616d65 c0" +
			" aa65787472615f6b657973 92 91 a173 c0 a967726f75705f696478 00" +
			" b26b765f63616368655f737065635f6b696e64 ae66756c6c5f617474656e74696f6e" +
			" 84 a474797065 ac426c6f636b52656d6f766564 ac626c6f636b5f686173686573 91 cf0000000000000007 a66d656469756d a3475055" +
			" a967726f75705f696478 00 00",
	} {
		v, out := newView(), &batch{form: form}
		v.apply(&e, out)
		v.apply(&kv.Event{Kind: kv.BlockRemoved, Hashes: []kv.Hash{hashOf(7)}}, out)
		if got := hex.EncodeToString(out.payload(1.5)); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("form %d: got\n%s\nwant\n%s", form, got, strings.ReplaceAll(want, " ", ""))
		}
	}
}

// TestKeys holds what a block's hash covers beside its tokens, and how sliding windows are named.
func TestKeys(t *testing.T) {
	v, out := newView(), &batch{groups: []kv.Group{{}, {Window: 64}}}
	v.apply(&kv.Event{
		Kind: kv.BlockStored, Group: 1, Hashes: []kv.Hash{hashOf(1), hashOf(2)}, Tokens: []int32{1, 2}, LoRA: "l", Salt: "s",
	}, out)
	v.apply(&kv.Event{Kind: kv.BlockStored, Hashes: []kv.Hash{hashOf(1)}, Tokens: []int32{1}, LoRA: "l"}, out)
	x, err := msgpack.NewDecoder(bytes.NewReader(out.payload(1))).DecodeInterface()
	if err != nil {
		t.Fatal(err)
	}
	events := x.([]any)[1].([]any)
	for i, want := range []map[string]any{
		{
			"lora_name": "l", "extra_keys": []any{[]any{"l", "s"}, []any{"l"}}, "group_idx": int8(1),
			"kv_cache_spec_kind": "sliding_window", "kv_cache_spec_sliding_window": int8(64),
		},
		{
			"lora_name": "l", "extra_keys": []any{[]any{"l"}}, "group_idx": int8(0), "kv_cache_spec_kind": "full_attention",
			"kv_cache_spec_sliding_window": nil,
		},
	} {
		for name, value := range want {
			if got := events[i].(map[string]any)[name]; !cmp.Equal(got, value) {
				t.Errorf("event %d: %s = %#v; want %#v", i, name, got, value)
			}
		}
	}
}

// TestWideValues holds the longer forms of arrays and texts.
func TestWideValues(t *testing.T) {
	for _, n := range []int{0, 15, 16, 31, 32, 255, 256, 65_535, 65_536} {
		text := strings.Repeat("x", n)
		b := appendArray(nil, n)
		for range n {
			b = appendInt(b, n)
		}
		b = appendText(b, text)
		d := msgpack.NewDecoder(bytes.NewReader(b))
		list, err := d.DecodeSlice()
		if err != nil || len(list) != n || n > 0 && fmt.Sprint(list[n-1]) != fmt.Sprint(n) {
			t.Errorf("array of %d: %d values, %v", n, len(list), err)
		}
		if got, err := d.DecodeString(); err != nil || got != text {
			t.Errorf("text of %d: %d bytes, %v", n, len(got), err)
		}
	}
}
