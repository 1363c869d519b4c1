package interop

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const eventTopic = "kv@10.0.0.7:8000@smollm2:135m"

// router is kv_events_client.py, which follows one server by libzmq.
type router struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// view is what a router knows.
type view struct {
	Next    uint64
	Known   map[string][]uint64
	Replays int
	ZMQ     string
}

func newRouter(t *testing.T, live, replay string) *router {
	t.Helper()
	python := exec.Command(cmp.Or(os.Getenv("QUIRE_ZMQ"), "/usr/bin/python3"), "kv_events_client.py", live, replay, eventTopic)
	python.Stderr = os.Stderr
	in, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := python.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := python.Wait(); err != nil {
			t.Errorf("kv_events_client.py: %v", err)
		}
	})
	r := &router{t: t, in: in, out: bufio.NewScanner(out)}
	r.out.Buffer(nil, 1<<20)
	t.Logf("libzmq %s", r.answer().ZMQ)
	return r
}

func (r *router) answer() (v view) {
	r.t.Helper()
	if !r.out.Scan() {
		r.t.Fatalf("kv_events_client.py ended: %v", r.out.Err())
	}
	if err := json.Unmarshal(r.out.Bytes(), &v); err != nil {
		r.t.Fatalf("%s: %v", r.out.Bytes(), err)
	}
	return v
}

func (r *router) ask(command string) view {
	r.t.Helper()
	fmt.Fprintln(r.in, command)
	return r.answer()
}

// get returns the body of a page of the server.
func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return body
}

// held returns the blocks that the pool itself says it holds.
func held(t *testing.T, url string) []uint64 {
	t.Helper()
	var pool struct{ Blocks []uint64 }
	if err := json.Unmarshal(get(t, url+"/kv_cache/blocks"), &pool); err != nil {
		t.Fatal(err)
	}
	return pool.Blocks
}

// published returns the number of batches published so far.
func published(t *testing.T, url string) uint64 {
	t.Helper()
	m := regexp.MustCompile(`quire_kv_events_published_total\{.*\} (\S+)`).FindSubmatch(get(t, url+"/metrics"))
	if m == nil {
		t.Fatal("no quire_kv_events_published_total")
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

// work has the server answer prompts at random: branches of a tree, so that prefixes are shared, four at a time.
func work(t *testing.T, url string, rng *rand.Rand, requests int) {
	t.Helper()
	var wg sync.WaitGroup
	for range requests / 4 {
		for range 4 {
			var prompt strings.Builder
			for range 1 + rng.IntN(4) {
				fmt.Fprintf(&prompt, "Chapter %d. %s", rng.IntN(3), strings.Repeat("The fox and the dog met again. ", 1+rng.IntN(5)))
			}
			salt := []string{"", "", `,"cache_salt":"tenant"`}[rng.IntN(3)]
			body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d%s}`, prompt.String(), 1+rng.IntN(20), salt)
			wg.Go(func() {
				resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("%s: %s, %v", resp.Status, text, err)
				}
			})
		}
		wg.Wait()
	}
}

// agree waits until what a router knows is what the pool holds.
func agree(t *testing.T, url string, ask func() view) view {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		v, pool := ask(), held(t, url)
		if slices.Equal(v.Known["GPU"], pool) {
			if len(pool) == 0 {
				t.Fatal("the pool holds nothing: there was nothing to compare")
			}
			return v
		}
		if time.Now().After(deadline) {
			t.Fatalf("the router knows %d blocks, the pool holds %d\n%x\n%x", len(v.Known["GPU"]), len(pool), v.Known["GPU"], pool)
		}
	}
}

// TestKVEvents has a router that speaks libzmq follow the real server through gaps, replays and a restart, and compares what
// it knows with what the pool holds.
func TestKVEvents(t *testing.T) {
	needE2E(t)
	live, replay := "tcp://"+freeAddress(t), "tcp://"+freeAddress(t)
	r := newRouter(t, live, replay)
	rng := rand.New(rand.NewPCG(1, 2))
	config := fmt.Sprintf(`{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"@%s","replay_endpoint":"@%s","topic":%q,`+
		`"buffer_steps":8}`, live, replay, eventTopic)
	for _, life := range []string{"first", "second"} {
		t.Run(life, func(t *testing.T) {
			url := serve(t, "--dev-endpoints", "--kv-cache-tokens=1024", "--kv-disk=off", "--kv-ram=8MiB", "--kv-events-config="+config)
			follow := func() view { return r.ask(fmt.Sprintf("sync %d", published(t, url)-1)) }
			if v := r.ask("reborn"); v.Next != 1 || len(v.Known) > 0 {
				t.Fatalf("after batch 0 the router needs batch %d and knows %v", v.Next, v.Known)
			}
			work(t, url, rng, 8)
			before := agree(t, url, follow)
			r.ask("deaf")
			work(t, url, rng, 32)
			r.ask("hear")
			work(t, url, rng, 4)
			after := agree(t, url, follow)
			if after.Replays == before.Replays {
				t.Error("nothing was missed")
			}
			fresh := agree(t, url, func() view { return r.ask("fresh") })
			if first := r.ask(fmt.Sprintf("req %d", fresh.Next-1)); first.Next != fresh.Next-1 {
				t.Errorf("a REQ socket got batch %d; want %d", first.Next, fresh.Next-1)
			}
			t.Logf("%d batches, %d blocks in the pool, %d in host memory, %d replays", fresh.Next, len(fresh.Known["GPU"]),
				len(fresh.Known["CPU"]), after.Replays)
		})
	}
}
