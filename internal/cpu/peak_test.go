package cpu

import "testing"

func TestMeasurePeak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	for _, level := range Levels() {
		p, err := newDevice(t, level, 2).MeasurePeak()
		if level == Generic {
			if err == nil {
				t.Errorf("generic: %+v, want an error", p)
			}
			continue
		}
		if err != nil || p.GopsInt <= p.GopsReal || p.GopsReal <= 0 || p.GBps <= 0 {
			t.Errorf("%v: %+v, %v; want more integer than float operations, and some of each", level, p, err)
		}
		t.Logf("%v: %+v", level, p)
	}
}
