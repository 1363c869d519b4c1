package pressure

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what the test found.
type Report struct {
	Model       string    `json:"model"`
	CacheTokens int       `json:"kv_cache_tokens"`
	Scale       int       `json:"scale"`
	SoloRuns    int       `json:"solo_runs"`
	Rows        []*Row    `json:"waves"`
	Settings    []Setting `json:"settings"`
}

// Row is one wave of one workload.
type Row struct {
	config
	Case string `json:"case"`
	What string `json:"what"`
	Wave int    `json:"wave"`

	Requests int `json:"requests"`
	Answered int `json:"answered"` // with the tokens asked for
	Refused  int `json:"refused"`  // that had to be
	Left     int `json:"left"`     // whose clients went away, and were to
	Equal    int `json:"equal"`    // answered with the tokens and text of the solo run

	Steps                int `json:"steps"`
	Preemptions          int `json:"preemptions"`
	ReferencePreemptions int `json:"reference_preemptions"`
	MaxPreemptions       int `json:"max_preemptions"` // of one request
	Recomputed           int `json:"recomputed_tokens"`
	ReferenceRecomputed  int `json:"reference_recomputed_tokens"`

	OutputTokens    int     `json:"output_tokens"`
	Seconds         float64 `json:"seconds"`
	TokensPerSecond float64 `json:"output_tokens_per_second"`

	Faults []Fault `json:"faults"`
}

// Setting is what was found of one setting after its last wave.
type Setting struct {
	config
	Preemptions int     `json:"preemptions"`
	Plans       int     `json:"replayed_plans"` // made again by a scheduler without a model, all equal
	Replayed    int     `json:"replayed_preemptions"`
	IdleCPU     float64 `json:"idle_cpu"` // share of a core
	Faults      []Fault `json:"faults"`
}

func (s *Setting) fault(criterion int, format string, args ...any) {
	s.Faults = append(s.Faults, Fault{criterion, fmt.Sprintf(format, args...)})
}

// Fault is a criterion that does not hold.
type Fault struct {
	Criterion int    `json:"criterion"` // number in the package comment
	What      string `json:"what"`
}

// String gives the criterion and what was found.
func (f Fault) String() string { return fmt.Sprintf("criterion %d: %s", f.Criterion, f.What) }

// Faults counts all that does not hold.
func (r *Report) Faults() int {
	n := 0
	for _, row := range r.Rows {
		n += len(row.Faults)
	}
	for _, s := range r.Settings {
		n += len(s.Faults)
	}
	return n
}

// maxFaultLines is how many faults of a wave are printed.
const maxFaultLines = 5

// Print writes the report as a table, one for each setting, with the faults below the rows they belong to.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, KV cache of %d tokens, %d solo runs\n", r.Model, r.CacheTokens, r.SoloRuns)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var last config
	for i, row := range r.Rows {
		if i == 0 || row.config != last {
			last = row.config
			fmt.Fprintf(table, "\n%s\n", last)
			fmt.Fprintln(table, "case\twave\trequests\tanswered\trefused\tleft\tas alone\tpreemptions\treference\tmost of one"+
				"\trecomputed\treference\tsteps\ttokens\tseconds\ttokens/s\tverdict\t")
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.1f\t%s\t\n", row.Case, row.Wave, row.Requests,
			row.Answered, row.Refused, row.Left, row.Equal, row.Preemptions, row.ReferencePreemptions, row.MaxPreemptions, row.Recomputed,
			row.ReferenceRecomputed, row.Steps, row.OutputTokens, row.Seconds, row.TokensPerSecond, verdict(row.Faults))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		printFaults(w, fmt.Sprintf("%s, %s wave %d", row.config, row.Case, row.Wave), row.Faults)
	}
	for _, s := range r.Settings {
		fmt.Fprintf(w, "%s: %d preemptions; %d plans replayed, %d preemptions; idle CPU %.2f %%\n",
			s.config, s.Preemptions, s.Plans, s.Replayed, 100*s.IdleCPU)
		printFaults(w, s.config.String(), s.Faults)
	}
	_, err := fmt.Fprintf(w, "%d waves, %d faults\n", len(r.Rows), r.Faults())
	return err
}

func verdict(faults []Fault) string {
	if len(faults) == 0 {
		return "ok"
	}
	return "FAULT"
}

func printFaults(w io.Writer, where string, faults []Fault) {
	for _, f := range faults[:min(len(faults), maxFaultLines)] {
		fmt.Fprintf(w, "%s: %s\n", where, f)
	}
	if more := len(faults) - maxFaultLines; more > 0 {
		fmt.Fprintf(w, "%s: and %d more\n", where, more)
	}
}
