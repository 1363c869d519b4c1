package connector_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
)

// sharedStore is a store of chunks of four toy blocks in the server.
func sharedStore(t *testing.T, url string) connector.Store {
	t.Helper()
	s, err := valkey.New(valkey.Config{URL: url, Format: chunk.Format{Blocks: 4, BlockBytes: 8 * blockSize}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits for what happens in the background.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func (r *rig) tier() connector.TierStats { return r.chain.Stats()[0] }

// fillShared serves a prompt on a replica of its own, so that the server has its chunks.
func fillShared(t *testing.T, url string, p []int32) {
	t.Helper()
	r := newRig(t, tiers{blocks: 64, stores: []connector.Store{sharedStore(t, url)}})
	r.serve(p, 4)
	eventually(t, "the chunks are stored", func() bool { return r.tier().Stored.Blocks == uint64(len(p)/blockSize/4*4) })
	r.close()
}

// TestReplicaIsWarm: a replica that never saw a prompt takes it from the server, in whole chunks.
func TestReplicaIsWarm(t *testing.T) {
	server := valkeytest.Start(t)
	p := prompt(1, 10*blockSize+3)
	fillShared(t, server.URL, p)
	r := newRig(t, tiers{blocks: 32, ramBlocks: 0, stores: []connector.Store{sharedStore(t, server.URL)}})
	defer r.close()
	if f := r.serve(p, 20); f.LoadedTokens != 8*blockSize {
		t.Errorf("%d tokens loaded, want the two chunks of 64", f.LoadedTokens)
	}
	if f := r.serve(prompt(2, 100), 4); f.LoadedTokens != 0 {
		t.Errorf("%d tokens loaded of a prompt that nobody saw", f.LoadedTokens)
	}
}

// TestLyingServer: whatever the server returns under the keys, the text is right, and the bad keys go.
func TestLyingServer(t *testing.T) {
	for name, lie := range map[string]func(value string) string{
		"a bit":      func(v string) string { return v[:500] + string(v[500]^1) + v[501:] },
		"header":     func(v string) string { return "X" + v[1:] },
		"short":      func(v string) string { return v[:len(v)-1] },
		"long":       func(v string) string { return v + "x" },
		"empty":      func(string) string { return "" },
		"not a blob": nil,
	} {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Start(t)
			p := prompt(1, 10*blockSize+3)
			fillShared(t, server.URL, p)
			o, err := redis.ParseURL(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			c := redis.NewClient(o)
			defer c.Close()
			ctx := context.Background()
			keys := c.Keys(ctx, "quire:kv:1:*").Val()
			if len(keys) != 2 {
				t.Fatalf("keys %v, want two", keys)
			}
			for _, k := range keys {
				if lie == nil {
					c.Del(ctx, k)
					err = c.LPush(ctx, k, "x").Err()
				} else {
					err = c.Set(ctx, k, lie(c.Get(ctx, k).Val()), 0).Err()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			r := newRig(t, tiers{blocks: 32, stores: []connector.Store{sharedStore(t, server.URL)}})
			defer r.close()
			if f := r.serve(p, 20); f.LoadedTokens != 0 {
				t.Errorf("%d tokens loaded from a server that lies", f.LoadedTokens)
			}
			st := r.tier()
			if st.Failures["corrupt"]+st.Failures["read"] == 0 {
				t.Errorf("no failure was counted: %v", st.Failures)
			}
		})
	}
}

// TestAbsentServer: the engine starts and serves without the server, and uses it when it is there.
func TestAbsentServer(t *testing.T) {
	server := valkeytest.Start(t)
	server.Kill()
	r := newRig(t, tiers{blocks: 64, stores: []connector.Store{sharedStore(t, server.URL)}})
	defer r.close()
	for i := range 5 {
		r.serve(prompt(i, 5*blockSize), 4)
	}
	eventually(t, "the breaker opens", func() bool { return r.tier().Open })
	server.Run()
	eventually(t, "chunks are stored again", func() bool {
		r.serve(prompt(int(time.Now().UnixNano()%1e6), 5*blockSize), 1)
		return r.tier().Stored.Blocks > 0
	})
}

// TestPausedServer: a server that hangs under load costs no request, and is used again when it goes on.
func TestPausedServer(t *testing.T) {
	server := valkeytest.Start(t)
	known := prompt(1, 10*blockSize+3)
	fillShared(t, server.URL, known)
	r := newRig(t, tiers{blocks: 64, stores: []connector.Store{sharedStore(t, server.URL)}})
	defer r.close()
	server.Pause()
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for k := range 6 {
				got, _, err := read(r.engine, request(prompt(100*i+k, 5*blockSize), 4))
				if want := alone(prompt(100*i+k, 5*blockSize), 4); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("client %d: %v, %v; alone it is %v", i, got, err, want)
				}
			}
		})
	}
	clients.Wait()
	if !r.tier().Open {
		t.Errorf("the breaker is closed while the server hangs: %+v", r.tier())
	}
	server.Resume()
	eventually(t, "the server is used again", func() bool {
		r.serve(append([]int32{int32(time.Now().UnixNano() % 64)}, prompt(7, 4*blockSize)...), 1)
		return !r.tier().Open && r.tier().Stored.Blocks > 0
	})
	if f := r.serve(known, 20); f.LoadedTokens != 8*blockSize {
		t.Errorf("%d tokens loaded after the pause, want 128", f.LoadedTokens)
	}
}
