package chat

import "context"

// Limits bound one render. A zero field takes its default.
type Limits struct {
	Steps       int64 // evaluation steps; work on a long string or list counts as more than one. Default 20 million.
	Depth       int   // nesting of macro calls, recursive loops and printed values. Default 200; at most 1000.
	BuiltBytes  int64 // bytes of strings and lists built on the way, dead ones included. Default 256 MiB.
	OutputBytes int64 // bytes of the result. Default 32 MiB.
}

const (
	defaultSteps       = 20_000_000
	defaultDepth       = 200
	maxDepth           = 1000
	defaultBuiltBytes  = 256 << 20
	defaultOutputBytes = 32 << 20

	// bytesPerStep is how much scanning or copying costs as much as one evaluation step.
	bytesPerStep = 64
	// maxStack bounds the expressions and statements that are being evaluated inside one another, macro calls included,
	// and so Go's stack: about 1 KB each.
	maxStack = 20_000
	// stepsPerPoll is how often the context is looked at.
	stepsPerPoll = 1024

	// maxIntBits bounds big integers. Python refuses to print more than 4300 digits, which is 14,285 bits.
	maxIntBits = 1 << 14
	// maxRange is the longest range that Python's sandbox allows.
	maxRange = 100_000
)

func (l Limits) withDefaults() Limits {
	if l.Steps <= 0 {
		l.Steps = defaultSteps
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	l.Depth = min(l.Depth, maxDepth)
	if l.BuiltBytes <= 0 {
		l.BuiltBytes = defaultBuiltBytes
	}
	if l.OutputBytes <= 0 {
		l.OutputBytes = defaultOutputBytes
	}
	return l
}

// budget counts what a render has used. It is owned by one render.
type budget struct {
	limits Limits
	steps  int64
	built  int64
	depth  int
	stack  int
	poll   int64
	done   <-chan struct{}
	cause  func() error
}

func newBudget(ctx context.Context, l Limits) budget {
	return budget{limits: l.withDefaults(), done: ctx.Done(), cause: func() error { return context.Cause(ctx) }}
}

// step charges n evaluation steps.
func (b *budget) step(n int64) error {
	b.steps += n
	if b.steps > b.limits.Steps {
		return &LimitError{What: "evaluation steps", Limit: b.limits.Steps}
	}
	if b.steps < b.poll {
		return nil
	}
	b.poll = b.steps + stepsPerPoll
	select {
	case <-b.done:
		return b.cause()
	default:
		return nil
	}
}

// scan charges the reading of n bytes or elements.
func (b *budget) scan(n int) error {
	return b.step(int64(n)/bytesPerStep + 1)
}

// build charges the making of n bytes, before they are allocated.
func (b *budget) build(n int64) error {
	if n < 0 || n > b.limits.BuiltBytes-b.built {
		return &LimitError{What: "bytes built", Limit: b.limits.BuiltBytes}
	}
	b.built += n
	return b.step(n/bytesPerStep + 1)
}

// enter counts one more level of nesting; each successful enter is matched by a leave.
func (b *budget) enter() error {
	if b.depth >= b.limits.Depth {
		return &LimitError{What: "levels of nesting", Limit: int64(b.limits.Depth)}
	}
	b.depth++
	return b.step(1)
}

func (b *budget) leave() { b.depth-- }

// push counts one more node being evaluated; each successful push is matched by a pop.
func (b *budget) push() error {
	if b.stack >= maxStack {
		return &LimitError{What: "nodes evaluated inside one another", Limit: maxStack}
	}
	b.stack++
	return b.step(1)
}

func (b *budget) pop() { b.stack-- }
