package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/cpu"
)

// doctorCmd looks at the machine.
type doctorCmd struct {
	CPU  string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels that would be used; auto takes the fastest."`
	JSON bool   `help:"Print JSON."`

	Measure bool `help:"Measure what the processor and the memory can do at best; takes seconds."`
}

// Help tells what is looked at.
func (doctorCmd) Help() string {
	return `Shows what Quire finds on this machine: the instructions and threads it will compute with, memory and huge
pages, the folder of models, and what could be changed to make it faster. Nothing is sent or fetched.`
}

// diagnosis is what doctor found.
type diagnosis struct {
	Version  string   `json:"version"`
	System   string   `json:"system"`
	Level    string   `json:"cpu_level"`
	Levels   []string `json:"cpu_levels"`
	Missing  []string `json:"cpu_features_missing"` // for the fastest kernels
	Refused  string   `json:"cpu_level_refused"`    // why not AMX, which processors have that systems do not give
	Affinity int      `json:"cores_affinity"`
	Quota    float64  `json:"cores_quota"` // 0 is none
	Threads  int      `json:"threads"`
	machine
	Cache  cacheFolder `json:"models"`
	Peak   *cpu.Peak   `json:"peak,omitempty"` // with all threads, if measured
	Advice []string    `json:"advice"`
}

// cacheFolder is where models are kept.
type cacheFolder struct {
	Dir      string `json:"dir"`
	Fault    string `json:"fault,omitempty"`
	Models   int    `json:"count"`
	FreeDisk int64  `json:"disk_free_bytes"`
}

// Run prints the diagnosis.
func (cmd *doctorCmd) Run(c *console) error {
	level, err := cpu.Detect(cmd.CPU)
	if err != nil {
		return err
	}
	d := diagnose("/", level)
	if cmd.Measure {
		if d.Peak, err = measurePeak(level); err != nil {
			return err
		}
	}
	if cmd.JSON {
		if err := json.MarshalWrite(c.Out, d, jsontext.WithIndent("  ")); err != nil {
			return err
		}
		_, err := io.WriteString(c.Out, "\n")
		return err
	}
	return d.write(c.Out)
}

// diagnose looks at everything. root is "/" except in tests.
func diagnose(root string, level cpu.Level) *diagnosis {
	cores := cpu.ReadCores()
	d := &diagnosis{
		Version: version(), System: runtime.GOOS + "/" + runtime.GOARCH, Level: level.String(),
		Affinity: cores.Affinity, Quota: cores.Quota, Threads: cores.Default,
		machine: readMachine(root), Cache: readCacheFolder(), Advice: []string{},
	}
	for _, l := range cpu.Levels() {
		d.Levels = append(d.Levels, l.String())
	}
	if err := cpu.AMX.Check(); err != nil && runtime.GOARCH == "amd64" {
		d.Refused = err.Error()
	}
	if len(d.CPUFlags) > 0 && runtime.GOARCH == "amd64" {
		for _, flag := range []string{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} {
			if !slices.Contains(d.CPUFlags, flag) {
				d.Missing = append(d.Missing, flag)
			}
		}
	}
	d.advise()
	return d
}

// measurePeak measures with as many threads as serve would use.
func measurePeak(level cpu.Level) (*cpu.Peak, error) {
	device, err := cpu.NewDevice(cpu.Options{Level: level})
	if err != nil {
		return nil, err
	}
	p, err := device.MeasurePeak()
	return &p, errors.Join(err, device.Close())
}

// readCacheFolder looks at the folder of models.
func readCacheFolder() cacheFolder {
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return cacheFolder{Fault: err.Error()}
	}
	f := cacheFolder{Dir: cfg.Dir}
	if err := writable(cfg.Dir); err != nil {
		f.Fault = err.Error()
	}
	entries, err := catalog.New(cfg).List()
	if err != nil {
		f.Fault = err.Error()
	}
	for _, e := range entries {
		if e.Path != "" {
			f.Models++
		}
	}
	f.FreeDisk = freeDisk(existing(cfg.Dir))
	return f
}

// advise says what could be changed, most useful first.
func (d *diagnosis) advise() {
	add := func(format string, args ...any) { d.Advice = append(d.Advice, fmt.Sprintf(format, args...)) }
	if d.Level == cpu.Generic.String() && len(d.Levels) > 1 {
		add("plain Go was asked for, which is many times slower than %s: leave out QUIRE_CPU", d.Levels[len(d.Levels)-1])
	} else if d.Level == cpu.Generic.String() {
		add("the kernels are plain Go, many times slower than assembly: AVX2, or the dot product of arm64, would be used at once")
	} else if slices.Contains(d.Missing, "avx512_vnni") {
		add("a processor with AVX-512 VNNI computes prompts about twice as fast as AVX2")
	}
	if d.Refused != "" && slices.Contains(d.CPUFlags, "amx_int8") {
		add("the processor has AMX, which would compute prompts and batches faster, but %s: Linux gives it from 5.16 on", d.Refused)
	}
	if d.Quota > 0 && d.Quota < float64(d.Affinity) {
		add("the control group allows %.3g of %d processors: raise its CPU limit, or make it a whole number", d.Quota, d.Affinity)
	}
	if d.HugePages == "never" {
		add("huge pages are off: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) makes memory faster")
	}
	free := d.MemoryFree
	if d.MemoryLimit > 0 {
		free = min(free, d.MemoryLimit)
	}
	if free > 0 && free < 1<<30 {
		add("only %s of memory is free: choose a small model and --kv-cache-memory", formatBytes(free))
	}
	if d.Cache.Fault != "" {
		add("models cannot be kept: %s; set QUIRE_HOME to a folder that can be written", d.Cache.Fault)
	} else if d.Cache.Models == 0 {
		add("no model is here yet: quire pull fetches the default one")
	}
}

// write prints the diagnosis for people.
func (d *diagnosis) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("quire", "%s, %s", d.Version, d.System)
	row("processor", "%s", orUnknown(d.CPUModel))
	row("kernels", "%s (this machine has %s)", d.Level, strings.Join(d.Levels, ", "))
	if len(d.Missing) > 0 {
		row("", "missing for the fastest: %s", strings.Join(d.Missing, ", "))
	}
	if d.Refused != "" {
		row("", "no amx: %s", d.Refused)
	}
	quota := "no quota"
	if d.Quota > 0 {
		quota = fmt.Sprintf("quota of %.3g", d.Quota)
	}
	row("threads", "%d (%d processors, %s)", d.Threads, d.Affinity, quota)
	if p := d.Peak; p != nil {
		row("at best", "%.0f Gop/s of bytes, %.0f of floats; %.1f GB/s from memory", p.GopsInt, p.GopsReal, p.GBps)
	}
	limit := "no limit"
	if d.MemoryLimit > 0 {
		limit = "limit " + formatBytes(d.MemoryLimit)
	}
	row("memory", "%s free of %s, %s", formatBytes(d.MemoryFree), formatBytes(d.MemoryTotal), limit)
	row("huge pages", "%s", orUnknown(d.HugePages))
	row("models", "%s: %d, %s of disk free", d.Cache.Dir, d.Cache.Models, formatBytes(d.Cache.FreeDisk))
	if err := w.Flush(); err != nil {
		return err
	}
	if len(d.Advice) == 0 {
		_, err := fmt.Fprintln(out, "\nNothing to change.")
		return err
	}
	fmt.Fprintln(out, "\nWhat to change:")
	for _, a := range d.Advice {
		if _, err := fmt.Fprintf(out, "  - %s\n", a); err != nil {
			return err
		}
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
