package sim

import "slices"

// Explorations returns the searches that `quire sim explore` and the tests run: two or three requests on three to five
// blocks of one or two tokens, under both policies, with one step in flight and with two.
func Explorations() []Exploration {
	return slices.Concat(ordinary(), failing(), large())
}

func ordinary() []Exploration {
	return []Exploration{
		{
			Name: "two under pressure", Pool: "blocks=3 block-size=1 budget=4 seqs=2 no-cache", Most: 20000,
			Requests: []string{"a prompt=1 out=2", "b prompt=1 out=2"}, Aborts: 1, Resets: 1, Rows: 1,
		},
		{
			Name: "three under pressure", Pool: "blocks=4 block-size=2 budget=3 seqs=2", Most: 200000,
			Requests: []string{"a prompt=3 out=4", "b prefix=a shared=2 prompt=3 out=3", "c prompt=1 out=3"}, Aborts: 1, Resets: 1,
		},
		{
			Name: "three by priority", Pool: "blocks=4 block-size=2 budget=3 seqs=3 policy=priority", Most: 200000,
			Requests: []string{
				"a prompt=3 out=3 priority=2", "b prefix=a shared=2 prompt=3 out=3 priority=1", "c prompt=2 out=2 priority=1",
			}, Aborts: 1, Resets: 1, Rows: 1,
		},
		{
			Name: "preempted, then loaded", Pool: "blocks=4 block-size=1 budget=4 seqs=2 no-cache connector", Most: 200000,
			Requests: []string{"a prompt=1 out=3", "b prompt=2 out=2"}, External: []string{"b tokens=1"}, Aborts: 1, Fails: 1,
		},
		{
			Name: "a victim already planned", Pool: "blocks=7 block-size=1 budget=8 threshold=2 seqs=3 policy=priority", Most: 200000,
			Requests: []string{
				"a prompt=7 out=1 priority=5", "b prompt=1 out=2 priority=1", "c prefix=a shared=6 prompt=7 out=1 priority=1",
			},
		},
		{
			Name: "one-token prompt", Pool: "blocks=3 block-size=2 budget=4 seqs=2 connector", Most: 20000,
			Requests: []string{"a prompt=1 out=2", "b prompt=2 out=2"}, External: []string{"a tokens=1", "b tokens=2"}, Aborts: 1, Fails: 2,
		},
		{
			Name: "loaded behind a head", Pool: "blocks=4 block-size=1 budget=4 seqs=2 policy=priority no-cache connector", Most: 200000,
			Requests: []string{"a prompt=3 out=1 priority=5", "b prompt=4 out=1 priority=1"}, External: []string{"a tokens=2"},
			Aborts: 1, Fails: 1,
		},
		{
			Name: "three loads", Pool: "blocks=5 block-size=1 budget=3 seqs=2 connector", Most: 400000,
			Requests: []string{"a prompt=3 out=2", "b prompt=2 out=2", "c prompt=2 out=1"},
			External: []string{"a tokens=2", "b tokens=2", "c tokens=1"}, Aborts: 1, Fails: 1,
		},
		{
			Name: "lone prefill", Pool: "blocks=4 block-size=1 budget=2 seqs=1 policy=priority no-full-check no-cache connector", Most: 200000,
			Requests: []string{"a prompt=4 out=1 priority=1", "b prompt=3 out=1 priority=5"}, External: []string{"b tokens=2"},
			Aborts: 1, Fails: 1,
		},
		{
			Name: "two in flight", Pool: "blocks=4 block-size=2 budget=4 seqs=2 depth=2 async connector", Most: 200000,
			Requests: []string{"a prompt=3 out=3", "b prompt=2 out=3"}, External: []string{"b tokens=2"}, Aborts: 1, Fails: 1, Resets: 1,
		},
	}
}

// failing are searches in which loads and rows fail, and of two steps in flight.
func failing() []Exploration {
	return []Exploration{
		{
			Name: "a bad row and who shares it", Pool: "blocks=4 block-size=1 budget=3 seqs=2", Most: 200000,
			Requests: []string{"a prompt=3 out=2", "b prefix=a shared=2 prompt=3 out=2"}, Aborts: 1, Resets: 1, Rows: 2,
		},
		{
			Name: "a synchronous load that fails",
			Pool: "blocks=4 block-size=1 budget=4 seqs=2 connector", Most: 200000,
			Requests: []string{"a prompt=2 out=2", "b prefix=a shared=2 prompt=3 out=2"},
			External: []string{"a tokens=1 sync fails=2"}, Aborts: 1,
		},
		{
			Name: "two in flight, lone prefill", Most: 200000,
			Pool:     "blocks=4 block-size=1 budget=2 seqs=1 depth=2 async policy=priority no-full-check no-cache connector",
			Requests: []string{"a prompt=4 out=1 priority=1", "b prompt=3 out=1 priority=5"}, External: []string{"b tokens=2"},
			Aborts: 1, Fails: 1,
		},
		{
			Name: "two in flight, a load that fails in its step",
			Pool: "blocks=4 block-size=1 budget=4 seqs=2 depth=2 async connector",
			Most: 200000, Requests: []string{"a prompt=2 out=2", "b prompt=2 out=2"}, External: []string{"b tokens=1 sync fails=1"},
			Aborts: 1, Rows: 1,
		},
	}
}

// large are searches of minutes.
func large() []Exploration {
	return []Exploration{
		{
			Name: "large: three loads, late and lost", Most: 1 << 20, Large: true,
			Pool:     "blocks=5 block-size=1 budget=3 seqs=2 policy=priority connector",
			Requests: []string{"a prompt=3 out=3 priority=1", "b prompt=3 out=2 priority=2", "c prompt=2 out=2 priority=1"},
			External: []string{"a tokens=2", "b tokens=2", "c tokens=2"}, Aborts: 1, Fails: 2, Resets: 1,
		},
		{
			Name: "large: three sharing, two aborts", Most: 1 << 20, Large: true,
			Pool:     "blocks=5 block-size=2 budget=4 seqs=2",
			Requests: []string{"a prompt=4 out=5", "b prefix=a shared=4 prompt=5 out=4", "c prompt=2 out=6"}, Aborts: 2, Resets: 2, Rows: 1,
		},
		{
			Name: "large: synchronous loads that fail", Most: 1 << 20, Large: true,
			Pool:     "blocks=5 block-size=1 budget=4 seqs=3 connector",
			Requests: []string{"a prompt=3 out=2", "b prefix=a shared=2 prompt=3 out=3", "c prefix=a shared=1 prompt=2 out=2"},
			External: []string{"a tokens=2 sync fails=1", "b tokens=2 sync fails=1"}, Aborts: 1, Resets: 1, Rows: 1,
		},
		{
			Name: "large: rows that fail in flight", Most: 1 << 20, Large: true,
			Pool:     "blocks=5 block-size=1 budget=3 seqs=3 depth=2 async",
			Requests: []string{"a prompt=3 out=2", "b prefix=a shared=2 prompt=3 out=3", "c prefix=a shared=1 prompt=2 out=2"},
			Aborts:   1, Resets: 1, Rows: 2,
		},
		{
			Name: "large: rows that fail beside loads in flight", Most: 1 << 20, Large: true,
			Pool:     "blocks=4 block-size=1 budget=3 seqs=2 depth=2 async connector policy=priority",
			Requests: []string{"a prompt=3 out=2 priority=2", "b prefix=a shared=2 prompt=3 out=2 priority=1"},
			External: []string{"a tokens=2", "b tokens=2 sync fails=1"},
			Aborts:   1, Resets: 1, Rows: 2, Fails: 1,
		},
		{
			Name: "large: three in flight", Most: 1 << 20, Large: true,
			Pool:     "blocks=5 block-size=1 budget=3 seqs=2 depth=2 async connector",
			Requests: []string{"a prompt=3 out=2", "b prompt=2 out=2", "c prompt=1 out=2"}, External: []string{"b tokens=1"},
			Aborts: 1, Fails: 1, Resets: 1,
		},
	}
}
