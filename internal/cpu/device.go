package cpu

import (
	"fmt"
	"unsafe"
)

// Options say how a Device computes.
type Options struct {
	Level   Level // see Detect
	Threads int   // workers, the caller included; 0 takes DefaultThreads
}

// Device computes: a level's kernels and a pool of workers, and the memory of the weights packed for it. One goroutine
// at a time may call its methods.
type Device struct {
	level   Level
	kernels kernels
	pool    *pool
	memory  arena
	// Of each worker, grown as needed; what a kernel call leaves there is of no use to the next.
	scratch  [][]float32
	unpacked [][]byte
	tables   [][]unsafe.Pointer

	// The jobs of the methods, kept here so that a step allocates nothing.
	matmul    matmulJob
	gated     gatedJob
	split     splitJob
	rows      rowsJob
	kvWrite   kvWriteJob
	quantize  quantizeJob
	attention attentionJob
	call      callJob
}

// NewDevice starts the workers. Close ends them.
func NewDevice(o Options) (*Device, error) {
	if !o.Level.Supported() {
		return nil, fmt.Errorf("cpu device: level %v is not supported here", o.Level)
	}
	if o.Threads == 0 {
		o.Threads = DefaultThreads()
	}
	if o.Threads < 1 || o.Threads > 1024 {
		return nil, fmt.Errorf("cpu device: %d threads, want 1 to 1024", o.Threads)
	}
	return &Device{
		level:    o.Level,
		kernels:  kernelsOf(o.Level),
		pool:     newPool(o.Threads),
		scratch:  make([][]float32, o.Threads),
		unpacked: make([][]byte, o.Threads),
		tables:   make([][]unsafe.Pointer, o.Threads),
	}, nil
}

// Close ends the workers and frees the memory of every Matrix and Acts made by the device.
func (d *Device) Close() error {
	d.pool.close()
	return d.memory.release()
}

// Level is the level the device was made with.
func (d *Device) Level() Level { return d.level }

// Threads is the number of workers, the caller of the methods included.
func (d *Device) Threads() int { return len(d.pool.sleepers) }

// Run calls f for every chunk of 0 to n-1, on all workers at once, and returns when all calls have. Worker 0 is the
// caller; at any time a worker runs one chunk.
func (d *Device) Run(n int, f func(worker, chunk int)) {
	d.call.f = f
	d.pool.do(n, &d.call)
	d.call.f = nil
}

type callJob struct{ f func(worker, chunk int) }

func (c *callJob) run(worker, chunk int) { c.f(worker, chunk) }

// buffer returns n floats of the worker's scratch memory.
func (d *Device) buffer(worker, n int) []float32 {
	if cap(d.scratch[worker]) < n {
		d.scratch[worker] = make([]float32, n+n/4)
	}
	return d.scratch[worker][:n]
}

// bytes returns n bytes of the worker's memory for unpacked numbers, aligned.
func (d *Device) bytes(worker, n int) []byte {
	if cap(d.unpacked[worker]) < n {
		b := make([]byte, n+n/4+alignment)
		d.unpacked[worker] = b[-uintptr(unsafe.Pointer(&b[0]))&(alignment-1):]
	}
	return d.unpacked[worker][:n]
}

// table returns the worker's memory for n pointers to panels.
func (d *Device) table(worker, n int) []unsafe.Pointer {
	if cap(d.tables[worker]) < n {
		d.tables[worker] = make([]unsafe.Pointer, n+n/4)
	}
	return d.tables[worker][:n]
}
