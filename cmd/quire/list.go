package main

import (
	"cmp"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/internal/catalog"
)

// listCmd shows the models that are here and those that can be pulled.
type listCmd struct {
	JSON bool `help:"Print JSON: an array with name, size, sha256, licence, and path and source of what was pulled."`
}

// Help tells what a name is for.
func (listCmd) Help() string {
	return `Shows the models that were pulled, and those of the catalogue that can be. Wherever a command wants a
model, it takes a name from this list, hf:org/repo/file.gguf, or a path to a .gguf file.`
}

// Run prints a table or JSON.
func (cmd *listCmd) Run(c *console) error {
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	entries, err := catalog.New(cfg).List()
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.MarshalWrite(c.Out, entries, jsontext.WithIndent("  "))
	}
	w := tabwriter.NewWriter(c.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSIZE\tHERE\tLICENCE\tABOUT")
	for _, e := range entries {
		here := "no"
		if e.Path != "" {
			here = "yes"
		}
		about := cmp.Or(e.About, "from "+e.Source)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Name, formatBytes(e.Size), here, cmp.Or(e.License, "-"), about)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "\nFiles are kept in %s\n", cfg.Dir)
	return err
}
