package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/quire-ai/quire/gguf"
)

// inspectCmd shows what is in a model file.
type inspectCmd struct {
	Model   string `arg:"" help:"A path to a .gguf file, or a model that was pulled."`
	Tensors bool   `help:"List every tensor: name, type, shape, size, offset."`
	Full    bool   `help:"Show long texts and arrays whole."`
	JSON    bool   `help:"Print JSON, with long texts and arrays whole."`
}

// Help tells what is checked on the way.
func (inspectCmd) Help() string {
	return `Shows a model file's metadata and its tensors by type, without loading the weights. The file's structure is
checked whole: what is cut off or damaged is reported with the key or tensor and the byte where it was found.

  quire inspect smollm2:135m
  quire inspect --tensors model.gguf
  quire inspect --json model.gguf | jq '.metadata["general.architecture"]'`
}

// Run opens the file and prints it.
func (cmd *inspectCmd) Run(c *console) error {
	path, err := locateModel(cmd.Model)
	if err != nil {
		return err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if cmd.JSON {
		return writeInspectJSON(c.Out, f, cmd.Tensors)
	}
	out := &errWriter{w: c.Out}
	cmd.writeSummary(out, f)
	cmd.writeTypes(out, f)
	cmd.writeMetadata(out, f)
	if cmd.Tensors {
		cmd.writeTensors(out, f)
	}
	return out.err
}

// errWriter keeps the first error, so that a report can be written without checking each line.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.w.Write(p)
	e.err = err
	return n, err
}

// writeSummary prints what the file is.
func (cmd *inspectCmd) writeSummary(out io.Writer, f *gguf.File) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer w.Flush()
	architecture, _ := f.Metadata.StringOr("general.architecture", "")
	name, _ := f.Metadata.StringOr("general.name", "")
	if name != "" {
		fmt.Fprintf(w, "name\t%q\n", name)
	}
	fmt.Fprintf(w, "architecture\t%s\n", cmp.Or(strings.Trim(fmt.Sprintf("%q", architecture), `"`), "not given"))
	values := uint64(0)
	for i := range f.Tensors {
		values += f.Tensors[i].Elements()
	}
	fmt.Fprintf(w, "parameters\t%s\n", formatCount(values))
	fmt.Fprintf(w, "file\t%s\n", f.Path)
	fmt.Fprintf(w, "size\t%s (%d bytes)\n", formatBytes(f.Size), f.Size)
	fmt.Fprintf(w, "format\tGGUF version %d, %d keys, %d tensors, alignment %d, data from byte %d\n",
		f.Version, f.Metadata.Len(), len(f.Tensors), f.Alignment, f.DataStart)
}

// typeSum adds up the tensors of one type.
type typeSum struct {
	Type    gguf.DType
	Tensors int
	Values  uint64
	Bytes   uint64
}

// sumTypes adds up the tensors by type, most bytes first.
func sumTypes(f *gguf.File) []typeSum {
	var sums []typeSum
	for i := range f.Tensors {
		t := &f.Tensors[i]
		at := slices.IndexFunc(sums, func(s typeSum) bool { return s.Type == t.Type })
		if at < 0 {
			at = len(sums)
			sums = append(sums, typeSum{Type: t.Type})
		}
		sums[at].Tensors++
		sums[at].Values += t.Elements()
		sums[at].Bytes += t.Size
	}
	slices.SortStableFunc(sums, func(a, b typeSum) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return sums
}

// writeTypes prints the tensors by type.
func (cmd *inspectCmd) writeTypes(out io.Writer, f *gguf.File) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "\nTYPE\tTENSORS\tVALUES\tSIZE\tBITS/VALUE\t")
	for _, s := range sumTypes(f) {
		if !s.Type.Known() {
			fmt.Fprintf(w, "%v\t%d\t%s\tnot known\t\t\n", s.Type, s.Tensors, formatCount(s.Values))
			continue
		}
		fmt.Fprintf(w, "%v\t%d\t%s\t%s\t%.2f\t\n", s.Type, s.Tensors, formatCount(s.Values), formatBytes(int64(s.Bytes)),
			8*float64(s.Bytes)/float64(s.Values))
	}
}

// writeMetadata prints all keys in the file's order. Values are quoted, so that a file cannot send control characters to
// the terminal.
func (cmd *inspectCmd) writeMetadata(out io.Writer, f *gguf.File) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\nKEY\tKIND\tVALUE")
	for key, v := range f.Metadata.All() {
		kind := v.Kind().String()
		if v.Kind() == gguf.Array {
			kind = "[]" + v.ElementKind().String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", plain(key), kind, cmd.show(v))
	}
}

// show formats a value on one line, cut unless all of it was asked for.
func (cmd *inspectCmd) show(v gguf.Value) string {
	const shown = 100 // characters
	if cmd.Full && v.Kind() == gguf.Array {
		var parts []string
		for e := range v.Elements() {
			parts = append(parts, cmd.show(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	s := v.String()
	if text := []rune(s); !cmd.Full && v.Kind() == gguf.String && len(text) > shown {
		return fmt.Sprintf("%s…\" (%d bytes)", string(text[:shown]), len(s))
	}
	return s
}

// writeTensors prints one line for each tensor.
func (cmd *inspectCmd) writeTensors(out io.Writer, f *gguf.File) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\nTENSOR\tTYPE\tSHAPE\tBYTES\tOFFSET")
	for i := range f.Tensors {
		t := &f.Tensors[i]
		fmt.Fprintf(w, "%s\t%v\t%s\t%d\t%d\n", plain(t.Name), t.Type, formatShape(t.Shape), t.Size, t.Offset)
	}
}

// plain shows a name as it is, or quoted when it holds anything that a terminal might obey.
func plain(name string) string {
	if quoted := fmt.Sprintf("%q", name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// formatShape writes a shape in GGUF's order, row length first.
func formatShape(shape []uint64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = fmt.Sprint(d)
	}
	return strings.Join(parts, " × ")
}

// formatCount writes a number of values as people speak of models: 134.5 M.
func formatCount(n uint64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
