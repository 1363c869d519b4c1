package pressure

import (
	"fmt"
	"slices"
)

// workload is one workload of the pressure test: requests that are sent together to a KV cache too small for them.
type workload struct {
	name, what string
	shapes     []shape
	prefix     int    // tokens that all prompts share
	prompts    string // case whose prompts it sends; "" has its own
}

// shape is the length of one request, in tokens, and the manner of its client.
type shape struct {
	prompt, output int
	late           bool // it comes when the first of the others have begun to be answered
	leaves         bool // its client goes away then, and takes no answer
}

// clients is the number of clients of most cases.
const clients = 30

// cacheTokens is the size of the KV cache, in tokens.
const cacheTokens = 4096

// allCases are the workloads around the one of mistral.rs PR #2043 (30 completions at once on a cache of 4,096 tokens) and
// others of their kind, with all lengths divided by scale.
func allCases(scale int) []workload {
	equal := func(n, prompt, output int) []shape {
		return slices.Repeat([]shape{{prompt: prompt / scale, output: output / scale}}, n)
	}
	mixed := make([]shape, clients)
	for i := range mixed {
		mixed[i] = shape{prompt: (64 + 331*i%960) / scale, output: 256 / scale}
	}
	impossible := equal(clients, 512, 256)
	impossible[clients/2] = shape{prompt: 5000 / scale, output: 1}
	vanishing := equal(clients, 256, 256)
	for i := range vanishing {
		vanishing[i].leaves = i%3 == 2
	}
	late := append(equal(25, 200, 200), equal(5, 2000, 64)...)
	for i := 25; i < len(late); i++ {
		late[i].late = true
	}
	long := equal(clients, 100, 128)
	for i := 4; i < len(long); i += 5 {
		long[i] = shape{prompt: 2000 / scale, output: 64 / scale}
	}
	return []workload{
		{name: "C1", what: "steady preemption", shapes: equal(clients, 512, 256)},
		{name: "C2", what: "all admitted, all grow", shapes: equal(clients, 150, 256)},
		{name: "C4", what: "mixed lengths", shapes: mixed},
		{name: "C6", what: "two that cannot be together", shapes: equal(2, 2500, 1000)},
		{name: "C7", what: "one that outgrows the cache", shapes: equal(1, 4000, 500)},
		{name: "C8", what: "one that can never fit", shapes: impossible, prompts: "C1"},
		{name: "C10", what: "C1 with a shared beginning", shapes: equal(clients, 512, 256), prefix: 256 / scale},
		{name: "X1", what: "one long in five", shapes: long},
		{name: "X2", what: "exact boundaries", shapes: boundaries(cacheTokens / scale)},
		{name: "X3", what: "clients that vanish", shapes: vanishing},
		{name: "X4", what: "large ones that come late", shapes: late},
	}
}

// boundaries are requests that just fit a cache of n tokens, just fill it and just do not fit, among others around the
// bounds of blocks.
func boundaries(n int) []shape {
	shapes := []shape{
		{prompt: n, output: 1},
		{prompt: n - 1, output: 2},
		{prompt: n - 1, output: 3},
		{prompt: n, output: 2},
		{prompt: n + 1, output: 1},
		{prompt: 1, output: n / 8},
	}
	for _, block := range []int{8, 16, 32} {
		for _, prompt := range []int{block - 1, block, block + 1, 2 * block} {
			shapes = append(shapes, shape{prompt: prompt, output: 1}, shape{prompt: prompt, output: block + 1})
		}
	}
	return shapes
}

// selectCases returns the cases of the given names, all of them without names.
func selectCases(names []string, scale int) ([]workload, error) {
	all := allCases(scale)
	if len(names) == 0 {
		return all, nil
	}
	var selected []workload
	for _, name := range names {
		i := slices.IndexFunc(all, func(c workload) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown case %q: known are C1, C2, C4, C6, C7, C8, C10 and X1 to X4", name)
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}

// fate is how a request must end on a cache of so many tokens.
type fate int

const (
	completes fate = iota // with the tokens asked for
	fills                 // with reason length when the cache is full
	refused               // at once, since its prompt does not fit
)

// fate follows from lengths alone. The last token of an answer needs no slot in the cache.
func (s shape) fate(cacheTokens int) fate {
	switch {
	case s.prompt > cacheTokens:
		return refused
	case s.prompt+s.output > cacheTokens+1:
		return fills
	}
	return completes
}

// tokens is how many output tokens the request must get.
func (s shape) tokens(cacheTokens int) int {
	switch s.fate(cacheTokens) {
	case refused:
		return 0
	case fills:
		return cacheTokens + 1 - s.prompt
	}
	return s.output
}
