package cpu

import (
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quire-ai/quire/internal/tensor"
)

// TestTilesUnderSignals multiplies on two workers while the collector runs without a pause, a profile is taken, and
// signals arrive that stop threads wherever they are: the kernel saves tiles when it delivers one.
func TestTilesUnderSignals(t *testing.T) {
	needAMX(t)
	calls := 20_000
	if testing.Short() {
		calls = 20
	}
	if err := pprof.StartCPUProfile(io.Discard); err == nil { // SIGPROF; an error is a profile by -cpuprofile
		defer pprof.StopCPUProfile()
	}
	var done atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer done.Store(true)
	for _, disturb := range []func(){
		runtime.GC,
		func() { _ = unix.Kill(os.Getpid(), unix.SIGURG) },
	} {
		others.Go(func() {
			for !done.Load() {
				disturb()
				runtime.Gosched()
			}
		})
	}
	d := newDevice(t, AMX, 2)
	r := seeded(3)
	const rows, outputs, cols = 33, 320, 576
	m, err := d.Pack(tensor.Q8_0, outputs, cols, randomWeights(r, tensor.Q8_0, outputs, cols))
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.NewActs(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(rows)
	copy(x.F32, normals(r, rows*cols))
	want := make([]float32, rows*outputs)
	d.MatMul(want, m, x)
	for i := range calls {
		got := make([]float32, rows*outputs) // garbage, for the collector
		d.MatMul(got, m, x)
		if s := differ(got, want); s != "" {
			t.Fatalf("call %d: %s", i, s)
		}
	}
}
